"""The place of a second reply: a conversation that is not listed, until the reply stands beside the first one.

A conversation has one running reply. A reply that another model writes at the same time to the same question runs in a
conversation of its own, and is moved when it is over: its message, its run and its files, with all their ids.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from core.errors import NotFoundError
from core.storage.base import new_id
from core.storage.conversations import TEMPORARY, conversation_of, message_of
from core.storage.dialects import upsert
from core.storage.tables import conversations, file_uses, message_texts, messages, runs

if TYPE_CHECKING:
    from core.storage.database import Database

COMPARED: Final = "compared"
"""In a conversation's settings: the question that two models answer, and where the second reply is."""
_BELONGS_TO: Final = "second_reply_to"  # in the settings of the place: the conversation and the question


class SecondReplyStore:
    """The places of one owner's second replies. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def open(self, conversation_id: str, question_id: str) -> str:
        """A place for a second reply to a question, from now on shown with it; its id.

        Raises:
            NotFoundError: There is no such question in a conversation of this owner.
        """

        def begin(connection: Connection) -> str:
            message_of(connection, self._owner, question_id, conversation_id)
            fresh, now = new_id(), time.time()
            belongs = {"conversation": conversation_id, "question": question_id}
            inserted = insert(conversations).values(
                id=fresh,
                owner_id=self._owner,
                title="",
                created_at=now,
                updated_at=now,
                settings={TEMPORARY: True, _BELONGS_TO: belongs},
            )
            connection.execute(inserted)
            _note(connection, conversation_id, {"question": question_id, "place": fresh})
            return fresh

        return await self._database.write(begin)

    async def is_place(self, conversation_id: str) -> bool:
        """Whether a conversation is such a place. Raises NotFoundError."""
        return await self._database.read(lambda c: _belongs_to(c, self._owner, conversation_id) is not None)

    async def close(self, place_id: str) -> str | None:
        """Move the reply to its question, as one of its versions, and delete the place.

        Returns:
            The conversation that the reply is in now; `None` where it goes on, or its question is gone, so that it
            stays where it is.

        Raises:
            NotFoundError: There is no such place of this owner: it was closed already.
        """

        def move(connection: Connection) -> str | None:
            belongs = _belongs_to(connection, self._owner, place_id)
            if belongs is None:
                raise NotFoundError("There is no such place.", kind="conversation")
            target, question = str(belongs.get("conversation")), str(belongs.get("question"))
            written = connection.execute(select(messages.c.id, messages.c.status).where(_in(messages, place_id))).all()
            if not written or any(one.status == "running" for one in written):
                return None
            try:
                message_of(connection, self._owner, question, target)
            except NotFoundError:  # edited away with its conversation
                return None
            to = {"conversation_id": target}
            connection.execute(update(messages).where(_in(messages, place_id)).values(**to, parent_id=question))
            connection.execute(update(runs).where(_in(runs, place_id)).values(**to))
            connection.execute(update(message_texts).where(_in(message_texts, place_id)).values(**to))
            for row in connection.execute(select(file_uses).where(_in(file_uses, place_id))).mappings().all():
                connection.execute(upsert(file_uses).values({**row, **to}).on_conflict_do_nothing())
            connection.execute(delete(conversations).where(conversations.c.id == place_id))
            compared: dict[str, str] = _settings(connection, target).get(COMPARED) or {}
            if compared.get("place") == place_id:
                _note(connection, target, {"question": question, "reply": str(written[0].id)})
            return target

        return await self._database.write(move)


def _belongs_to(connection: Connection, owner: str, place_id: str) -> dict[str, Any] | None:
    conversation_of(connection, owner, place_id)
    return _settings(connection, place_id).get(_BELONGS_TO)


def _settings(connection: Connection, conversation_id: str) -> dict[str, Any]:
    query = select(conversations.c.settings).where(conversations.c.id == conversation_id)
    return dict(connection.execute(query).scalar() or {})


def _note(connection: Connection, conversation_id: str, compared: dict[str, str]) -> None:
    values = {**_settings(connection, conversation_id), COMPARED: compared}
    connection.execute(update(conversations).where(conversations.c.id == conversation_id).values(settings=values))


def _in(table: Any, conversation_id: str) -> Any:
    return table.c.conversation_id == conversation_id
