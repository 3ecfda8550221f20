"""Messages that wait until the reply of their conversation ends."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from core.errors import ConflictError, NotFoundError
from core.storage.base import QueuedMessage, new_id
from core.storage.conversations import clean, conversation_of, held_conversation, use_files
from core.storage.database import rows_of
from core.storage.statements import QUEUED
from core.storage.tables import file_uses, queued_messages, runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.storage.database import Database


_newest = select(runs.c.status).where(runs.c.conversation_id == queued_messages.c.conversation_id)
_newest = _newest.order_by(runs.c.started_at.desc(), runs.c.id).limit(1).correlate(queued_messages)
_DUE: Final = (
    select(queued_messages.c.owner_id, queued_messages.c.conversation_id, queued_messages.c.id)
    .where(_newest.scalar_subquery() == "complete")
    .order_by(queued_messages.c.position.desc(), queued_messages.c.id.desc())
)


class QueuedMessages:
    """The waiting messages of one owner's conversations. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def list(self, conversation_id: str) -> list[QueuedMessage]:
        """The conversation's, the next one first. Raises NotFoundError."""

        def load(connection: Connection) -> list[QueuedMessage]:
            conversation_of(connection, self._owner, conversation_id)
            return _listed(connection, conversation_id)

        return await self._database.read(load)

    async def add(self, conversation_id: str, text: str, file_ids: Sequence[str] = ()) -> QueuedMessage:
        """Let a message wait as the last one; its files are the conversation's from now on. Raises NotFoundError."""

        def keep(connection: Connection) -> QueuedMessage:
            held_conversation(connection, self._owner, conversation_id)
            last = select(func.max(queued_messages.c.position)).where(_in(conversation_id))
            position = (connection.execute(last).scalar() or 0.0) + 1.0
            now = time.time()
            fresh = QueuedMessage(new_id(), conversation_id, clean(text), tuple(file_ids), position, now)
            values = {name: getattr(fresh, name) for name in QueuedMessage.__slots__}
            row = {**values, "owner_id": self._owner, "file_ids": list(file_ids)}
            connection.execute(insert(queued_messages).values(row))
            use_files(connection, self._owner, conversation_id, file_ids)
            return fresh

        return await self._database.write(keep, holds=True)

    async def change(self, message_id: str, *, text: str | None = None, position: float | None = None) -> None:
        """Change its words or its place; what is left out stays. Raises NotFoundError: it was sent or removed."""
        given = {"text": None if text is None else clean(text), "position": position}
        values = {name: value for name, value in given.items() if value is not None}

        def change(connection: Connection) -> None:
            self._of(connection, message_id)
            if values:
                connection.execute(update(queued_messages).where(queued_messages.c.id == message_id).values(**values))

        await self._database.write(change)

    async def move(self, message_id: str, before: str) -> None:
        """Put one in front of another of its conversation, or at the end.

        Args:
            before: The other one's id; "" for the end, where one that is not there any more leads to as well.

        Raises:
            NotFoundError: It was sent or removed.
        """

        def move(connection: Connection) -> None:
            moved = self._of(connection, message_id)
            waiting = _listed(connection, moved.conversation_id)
            places = [one.position for one in waiting]
            order = [one for one in waiting if one.id != moved.id]
            at = next((at for at, one in enumerate(order) if one.id == before), len(order))
            at = at if before != moved.id else waiting.index(moved)
            order.insert(at, moved)
            for one, place in zip(order, places, strict=True):
                if one.position != place:
                    these = queued_messages.c.id == one.id
                    connection.execute(update(queued_messages).where(these).values(position=place))

        await self._database.write(move)

    async def remove(self, message_id: str) -> QueuedMessage:
        """Take one out, and return it; its files are not the conversation's any more.

        Raises:
            NotFoundError: It was sent or removed.
        """

        def take(connection: Connection) -> QueuedMessage:
            found = self._of(connection, message_id)
            connection.execute(delete(queued_messages).where(queued_messages.c.id == message_id))
            uses = (file_uses.c.conversation_id == found.conversation_id) & file_uses.c.file_id.in_(found.file_ids)
            connection.execute(delete(file_uses).where(uses))
            return found

        return await self._database.write(take)

    async def get(self, message_id: str) -> QueuedMessage:
        """One of them. Raises NotFoundError: it was sent or removed."""
        return await self._database.read(lambda c: self._of(c, message_id))

    async def due(self, conversation_id: str) -> QueuedMessage | None:
        """The next one, if it is time to send it: the conversation's newest reply is whole. Raises NotFoundError."""

        def load(connection: Connection) -> QueuedMessage | None:
            conversation_of(connection, self._owner, conversation_id)
            newest = select(runs.c.status).where(runs.c.conversation_id == conversation_id)
            status = connection.execute(newest.order_by(runs.c.started_at.desc(), runs.c.id).limit(1)).scalar()
            if status != "complete":
                return None
            return next(iter(_listed(connection, conversation_id)), None)

        return await self._database.read(load)

    def _of(self, connection: Connection, message_id: str) -> QueuedMessage:
        these = (queued_messages.c.id == message_id) & (queued_messages.c.owner_id == self._owner)
        row = connection.execute(select(queued_messages).where(these)).first()
        if row is None:
            raise _gone()
        return _message(row)


class AllQueuedMessages:
    """Those of all owners: for whoever sends what a dead process left unsent."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self) -> list[tuple[str, str, str]]:
        """Owner, conversation and message of what could be sent now, one for each conversation.

        Where the newest reply failed or was stopped, what waits is its owner's to send.
        """
        rows = await self._database.read(lambda c: rows_of(c, _DUE, {}))
        firsts = {str(row.conversation_id): (str(row.owner_id), str(row.id)) for row in rows}
        return [(owner, conversation, message) for conversation, (owner, message) in firsts.items()]

    async def any_in(self, conversation_id: str) -> bool:
        """Whether something waits in a conversation. Raises StorageError."""
        some = select(queued_messages.c.id).where(_in(conversation_id)).limit(1)
        return await self._database.read(lambda c: c.execute(some).first() is not None)


def take_queued(connection: Connection, owner: str, message: QueuedMessage) -> None:
    """Take one out inside the transaction that makes it a question, so that it is sent once.

    Raises:
        ConflictError: key `queue_changed`: it was changed since it was read.
        NotFoundError: It was sent or removed.
    """
    these = (queued_messages.c.id == message.id) & (queued_messages.c.owner_id == owner)
    row = connection.execute(select(queued_messages).where(these).with_for_update()).first()
    if row is None:
        raise _gone()
    if _message(row) != message:
        raise ConflictError("This message was changed.", hint="Look at it again.", key="queue_changed")
    connection.execute(delete(queued_messages).where(these))


def _gone() -> NotFoundError:
    return NotFoundError("This message does not wait any more.", key="queue_gone", kind="queued_message")


def _listed(connection: Connection, conversation_id: str) -> list[QueuedMessage]:
    return [_message(row) for row in connection.execute(QUEUED, {"conversation": conversation_id}).all()]


def _message(row: Row[Any]) -> QueuedMessage:
    return QueuedMessage(
        row.id, row.conversation_id, row.text, tuple(row.file_ids), position=row.position, created_at=row.created_at
    )


def _in(conversation_id: str) -> Any:
    return queued_messages.c.conversation_id == conversation_id
