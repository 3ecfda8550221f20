"""Runs and their events."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.dialects.sqlite import insert as insert_or
from sqlalchemy.exc import IntegrityError

from core.errors import NotFoundError
from core.messages.message import Usage
from core.storage.base import EventRow, RunRecord, StoredMessage, busy, file_ids, new_id
from core.storage.conversations import clean, dumped, insert_message, message_of, use_files
from core.storage.tables import conversations, messages, run_events, runs
from core.storage.thoughts import ThoughtStore, insert_thoughts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.messages.message import Message
    from core.storage.base import AgentThought, RunStatus
    from core.storage.database import Database


class RunStore:
    """Runs of owners. What is somebody else's does not exist."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.thoughts = ThoughtStore(database)

    async def create(  # noqa: PLR0913 - the columns of a turn
        self,
        owner: str,
        conversation_id: str,
        *,
        user: Sequence[Message] | None,
        parent_id: str | None,
        model: str = "",
        worker: str = "",
        title: str = "",
    ) -> tuple[RunRecord, StoredMessage]:
        """Store a user's message (where there is one), the reply's empty place and the run, all or nothing.

        Args:
            owner: Whose conversation it is.
            conversation_id: The conversation.
            user: The user's turn.
            parent_id: The turn before it.
            model: The name of the model.
            worker: The process that answers.
            title: For a conversation that has none yet.

        Returns:
            The run, and the reply's place.

        Raises:
            ConflictError: key `busy`: the conversation has a live run.
            NotFoundError: The conversation or the parent is not the owner's.
        """
        now, run_id = time.time(), new_id()
        # A moment later, so that the reply is the newest turn by its time too.
        place = StoredMessage(new_id(), conversation_id, parent_id, "assistant", (), run_id, "running", now + 1e-3)
        record = RunRecord(run_id, owner, conversation_id, place.id, "running", None, model, None, now, None)

        def begin(connection: Connection) -> StoredMessage:
            reply = place
            if user is not None:
                asked = StoredMessage(new_id(), conversation_id, parent_id, "user", tuple(user), None, "complete", now)
                insert_message(connection, owner, asked)
                reply = replace(place, parent_id=asked.id)
            insert_message(connection, owner, reply)
            _insert_run(connection, record, worker)
            untitled = (conversations.c.id == conversation_id) & (conversations.c.title == "")
            connection.execute(update(conversations).where(untitled).values(title=clean(title)))
            return reply

        return record, await self._database.write(begin)

    async def get(self, owner: str, run_id: str) -> RunRecord:
        """One run. Raises NotFoundError."""
        return await self._database.read(lambda c: _run_of(c, owner, run_id))

    async def append(self, run_id: str, rows: Sequence[EventRow], *, durable: bool = False) -> None:
        """Store events of a run; one that is there already is passed over.

        Raises:
            NotFoundError: The run is gone, with its conversation.
        """

        def store(connection: Connection) -> None:
            owner = connection.execute(select(runs.c.owner_id).where(runs.c.id == run_id)).scalar()
            if owner is None:
                raise _missing()
            _append(connection, owner, run_id, rows)

        if rows:
            await self._database.write(store, durable=durable)

    async def events(self, owner: str, run_id: str, after: int = 0) -> list[EventRow]:
        """The run's events after number `after`. Raises NotFoundError."""

        def load(connection: Connection) -> list[EventRow]:
            _run_of(connection, owner, run_id)
            return _events(connection, run_id, after)

        return await self._database.read(load)

    async def finish(  # noqa: PLR0913 - what is known at the end
        self,
        owner: str,
        run_id: str,
        status: RunStatus,
        *,
        parts: Sequence[Message],
        error: dict[str, Any] | None = None,
        usage: Usage | None = None,
        rows: Sequence[EventRow] = (),
        thoughts: Sequence[AgentThought] = (),
    ) -> None:
        """Store the end: the last events, the whole reply, its steps and the status, all or nothing.

        Raises:
            NotFoundError: The run is gone, with its conversation, or is not the owner's.
        """

        def end(connection: Connection) -> None:
            record = _run_of(connection, owner, run_id)
            _append(connection, owner, run_id, rows)
            spent = usage.model_dump() if usage is not None else None
            values = {"status": status, "error": error, "usage": spent, "finished_at": time.time()}
            connection.execute(update(runs).where(runs.c.id == run_id).values(values))
            reply = {"parts": dumped(parts), "status": status}
            connection.execute(update(messages).where(messages.c.id == record.message_id).values(reply))
            insert_thoughts(connection, owner, record.message_id, thoughts)
            use_files(connection, owner, record.conversation_id, file_ids(parts))  # what the model made

        await self._database.write(end)

    async def running(self) -> list[tuple[RunRecord, str]]:
        """Every run that is marked as running, of all owners, each with its worker: for the start of a process."""
        query = select(runs).where(runs.c.status == "running").order_by(runs.c.started_at)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [(run_record(row), row.worker) for row in rows]

    async def take_over(self, run_id: str, worker: str, new_worker: str, rows: Sequence[EventRow]) -> None:
        """Let another process go on with a run, its events written anew.

        Args:
            run_id: A run that is marked as running.
            worker: The dead process.
            new_worker: The one that goes on.
            rows: All its events so far, numbered as the new process counts them.

        Raises:
            ConflictError: key `busy`: another process has taken it already.
        """
        is_left = (runs.c.id == run_id) & (runs.c.status == "running") & (runs.c.worker == worker)

        def take(connection: Connection) -> None:
            owner = connection.execute(select(runs.c.owner_id).where(is_left)).scalar()
            if owner is None:
                raise busy()
            connection.execute(update(runs).where(is_left).values(worker=new_worker))
            connection.execute(delete(run_events).where(run_events.c.run_id == run_id))
            _append(connection, owner, run_id, rows)

        await self._database.write(take)

    async def place(self, owner: str, run_id: str) -> StoredMessage:
        """The message that the run writes. Raises NotFoundError."""
        return await self._database.read(lambda c: message_of(c, owner, _run_of(c, owner, run_id).message_id))


def _insert_run(connection: Connection, record: RunRecord, worker: str) -> None:
    values = {name: getattr(record, name) for name in RunRecord.__slots__}
    try:
        connection.execute(insert(runs).values({**values, "worker": worker}))
    except IntegrityError as error:
        raise busy() from error


def _append(connection: Connection, owner: str, run_id: str, rows: Sequence[EventRow]) -> None:
    if rows:
        values = [
            {
                "run_id": run_id,
                "owner_id": owner,
                "seq": row.seq,
                "at": row.at,
                "kind": row.kind,
                "payload": row.payload,
            }
            for row in rows
        ]
        connection.execute(insert_or(run_events).on_conflict_do_nothing(), values)


def _events(connection: Connection, run_id: str, after: int) -> list[EventRow]:
    query = select(run_events).where(run_events.c.run_id == run_id, run_events.c.seq > after)
    rows = connection.execute(query.order_by(run_events.c.seq)).all()
    return [EventRow(row.seq, row.at, row.kind, row.payload) for row in rows]


def _run_of(connection: Connection, owner: str, run_id: str) -> RunRecord:
    row = connection.execute(select(runs).where(runs.c.id == run_id, runs.c.owner_id == owner)).first()
    if row is None:
        raise _missing()
    return run_record(row)


def run_record(row: Row[Any]) -> RunRecord:
    """A row of the table `runs`."""
    return RunRecord(
        id=row.id,
        owner_id=row.owner_id,
        conversation_id=row.conversation_id,
        message_id=row.message_id,
        status=row.status,
        error=row.error,
        model=row.model,
        usage=Usage(**row.usage) if row.usage else None,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def _missing() -> NotFoundError:
    return NotFoundError("There is no such run.", kind="run")
