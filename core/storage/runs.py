"""Runs, their events, and the steps of replies as rows."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, Select, delete, func, select, update
from sqlalchemy.exc import StatementError

from core.errors import LeaseLostError, NotFoundError
from core.messages.message import Usage
from core.storage import base, statements
from core.storage.base import AgentThought, EventRow, Lease, RunRecord, StoredMessage, busy, file_ids, new_id
from core.storage.conversations import clean, dumped, insert_message, message_of, use_files
from core.storage.database import first_of, rows_of, send
from core.storage.dialects import clock, notify
from core.storage.message_texts import keep_title, kept_text
from core.storage.queued_messages import take_queued
from core.storage.tables import run_events, runs
from core.storage.thoughts import ThoughtStore, add_thoughts, missing_thoughts
from core.storage.use import UNLIMITED, UsualLimits, check_use, count_use

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from core.messages.message import Message
    from core.storage.base import QueuedMessage, RunStatus, WholeLog
    from core.storage.database import Database


# How long a lease lasts that is not renewed. With one folder it tells exports and people alone, and who takes a run
# over does not ask the clock; where several machines share a database, its clock is asked.
LEASE_SECONDS = 20.0

_RUNNING = statements.IS_RUNNING
_BATCH = 50  # runs in one transaction: nobody's message waits long behind it


@dataclass(eq=False, slots=True)
class _Checkpoint:
    """Events of one run that wait to be stored; `done` gets its error, if any."""

    owner: str
    run_id: str
    rows: Sequence[EventRow]
    epoch: int
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Checkpoints:
    """Stores checkpoints of many runs in one transaction: those of one tick, or that come while another is written.

    Each has its own outcome: a run that was taken over, or is gone, takes no other along.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Checkpoint] = []
        self._writing: asyncio.Task[None] | None = None

    async def append(self, checkpoint: _Checkpoint) -> None:
        """Wait until it is stored. Raises as `RunStore.append`."""
        self._waiting.append(checkpoint)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="checkpoints")
        await checkpoint.done

    async def _write(self) -> None:
        batch: list[_Checkpoint] = []
        try:
            while self._waiting:
                await asyncio.sleep(0)  # the others of this tick
                batch, self._waiting = self._waiting, []
                failed = await self._stored(batch)
                for one in batch:
                    _settle(one.done, failed.get(one))
        finally:
            self._writing = None
            for one in (*batch, *self._waiting):  # the loop is being closed: nobody waits for ever
                one.done.cancel()

    async def _stored(self, batch: Sequence[_Checkpoint]) -> Mapping[_Checkpoint, Exception]:
        """Store what may be stored; the errors of the others."""
        try:
            return await self._database.write(partial(_store_all, batch), durable=False, holds=True)
        except Exception as error:  # noqa: BLE001 - each of those who wait gets it
            if len(batch) == 1 or not isinstance(error, StatementError):
                return dict.fromkeys(batch, error)
        each = [await self._stored([one]) for one in batch]  # something in one of them is no JSON
        return {one: error for some in each for one, error in some.items()}


def _settle(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():  # whoever waited was cancelled
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _store_all(batch: Sequence[_Checkpoint], connection: Connection) -> dict[_Checkpoint, Exception]:
    """Store what may be stored; the errors of the others."""
    held = {row.id: row for row in _held(connection, {one.run_id for one in batch})}
    failed: dict[_Checkpoint, Exception] = {}
    values: list[dict[str, Any]] = []
    for one in batch:
        try:
            _check_held(held.get(one.run_id), one.owner, one.epoch)
            values += _event_values(one.owner, one.run_id, one.rows)
        except (LeaseLostError, NotFoundError) as error:
            failed[one] = error
    send(connection, statements.ADD_EVENTS, *values)
    return failed


class RunStore:
    """The runs of one owner. What is somebody else's does not exist.

    Args:
        together: Stores checkpoints, those of other owners' runs along with them.
        limits: How much may be asked.
    """

    def __init__(self, database: Database, owner: str, together: Checkpoints, limits: UsualLimits) -> None:
        self._database, self._owner, self._limits = database, owner, limits
        self._together = together

    @property
    def thoughts(self) -> ThoughtStore:
        """The steps of the owner's replies."""
        return ThoughtStore(self._database, self._owner)

    async def create(  # noqa: PLR0913 - the columns of a turn
        self,
        conversation_id: str,
        *,
        user: Sequence[Message] | None,
        parent_id: str | None,
        model: str = "",
        worker: str = "",
        title: str = "",
        retitled: Sequence[str] = (),
        queued: QueuedMessage | None = None,
        lasts: float = LEASE_SECONDS,
        rows: Sequence[EventRow] = (),
    ) -> tuple[RunRecord, StoredMessage]:
        """Store a user's message (where there is one), the reply's empty place and the run, all or nothing.

        Args:
            model: The name of the model.
            title: For a conversation that has none yet.
            retitled: Titles that it takes the place of as well.
            queued: The waiting message that becomes the question, and waits no more.
            lasts: Seconds of the lease.
            rows: What the run begins with.

        Returns:
            The run, and the reply's place.

        Raises:
            ConflictError: key `busy`: the conversation has a live run; `queue_changed`: what waits was changed.
            NotFoundError: The conversation or the parent is not the owner's, or the message does not wait any more.
            TooManyRequestsError: A limit is reached, as `check_use` says.
        """
        now, run_id = time.time(), new_id()
        # A moment later, so that the reply is the newest turn by its time too.
        place = StoredMessage(new_id(), conversation_id, parent_id, "assistant", (), run_id, "running", now + 1e-3)
        record = RunRecord(run_id, self._owner, conversation_id, place.id, "running", None, model, None, now, None)

        def begin(connection: Connection) -> StoredMessage:
            turns = [place]
            _refuse_second(connection, conversation_id)
            if user is not None:
                asked = StoredMessage(new_id(), conversation_id, parent_id, "user", tuple(user), None, "complete", now)
                turns = [asked, replace(place, parent_id=asked.id)]
            before = insert_message(connection, self._owner, *turns)  # which holds the conversation from here on
            if queued is not None:
                take_queued(connection, self._owner, queued)
            _insert_run(connection, record, worker, lasts)
            _append(connection, self._owner, run_id, rows)
            if worker == base.QUEUED:
                notify(connection, "queued")
            named = {"conversation": conversation_id, "named": clean(title)}
            if not before.title:
                send(connection, statements.NAME_UNNAMED, named)
            if retitled:
                connection.execute(statements.NAME_ANEW, {**named, "former": [*map(clean, retitled)]})
            if retitled or not before.title:
                keep_title(connection, conversation_id)
            count_use(connection, self._owner, now, messages=1)  # from here on the owner's other questions wait
            check_use(connection, self._owner, now, self._limits, counted=1)
            return turns[-1]

        return record, await self._database.write(begin, holds=True)

    async def add_whole(
        self, record: RunRecord, place: StoredMessage, rows: Sequence[EventRow], thoughts: Sequence[AgentThought]
    ) -> None:
        """Store a reply that is whole, its run, its events and its steps, all or nothing.

        Raises:
            ConflictError: key `busy`: the conversation has a live run.
            NotFoundError: The conversation or the parent is not the owner's.
        """

        def add(connection: Connection) -> None:
            insert_message(connection, self._owner, place)  # which holds the conversation from here on
            running = select(runs.c.id).where(_RUNNING, runs.c.conversation_id == record.conversation_id)
            if connection.execute(running).first() is not None:
                raise busy()
            _insert_run(connection, record, "", None)
            _append(connection, self._owner, record.id, rows)
            add_thoughts(connection, self._owner, place.id, thoughts)

        await self._database.write(add, holds=True)

    async def get(self, run_id: str) -> RunRecord:
        """One run. Raises NotFoundError."""
        return await self._database.read(lambda c: _run_of(c, self._owner, run_id))

    async def append(
        self, run_id: str, rows: Sequence[EventRow], *, epoch: int, durable: bool = False, leave: bool = False
    ) -> None:
        """Store events of a run; one that is there already is passed over.

        Args:
            epoch: The one in which the writer holds the run.
            durable: As of `Database.write`.
            leave: Give the run up as well: another process may go on with it at once.

        Raises:
            LeaseLostError: Another process has taken the run over; nothing was stored.
            NotFoundError: The run is gone, with its conversation, or is not the owner's.
        """

        def store(connection: Connection) -> None:
            _refuse_unheld(connection, self._owner, run_id, epoch)
            _append(connection, self._owner, run_id, rows)
            if leave:
                connection.execute(update(runs).where(runs.c.id == run_id).values(lease_until=None))

        if durable or leave:
            await self._database.write(store, durable=durable, holds=True)
        elif rows:
            await self._together.append(_Checkpoint(self._owner, run_id, rows, epoch))

    async def rest(self, run_id: str, rows: Sequence[EventRow], *, epoch: int, until: float) -> None:
        """Store events of a run that waits for its user, and let go of it.

        Args:
            epoch: As of `append`.
            until: When silence counts as an answer, in Unix seconds of this machine.

        Raises:
            LeaseLostError: As `append`.
            NotFoundError: As `append`.
        """

        def store(connection: Connection) -> None:
            _refuse_unheld(connection, self._owner, run_id, epoch)
            _append(connection, self._owner, run_id, rows)
            left = clock() + (until - time.time())
            connection.execute(update(runs).where(runs.c.id == run_id).values(worker=base.WAITING, lease_until=left))

        await self._database.write(store, holds=True)

    async def events(self, run_id: str, after: int = 0, *, without: Collection[str] = ()) -> list[EventRow]:
        """The run's events, in order.

        Args:
            after: Those after this number.
            without: Not those of these kinds.

        Raises:
            NotFoundError: The run is not the owner's.
        """

        def load(connection: Connection) -> list[EventRow]:
            _run_of(connection, self._owner, run_id)
            return _events(connection, run_id, after, without)

        return await self._database.read(load)

    async def account(self, conversation_id: str) -> list[EventRow]:
        """The lines of all model calls of a conversation, in all its branches; none where it is somebody else's."""
        mine = (runs.c.conversation_id == conversation_id) & (runs.c.owner_id == self._owner)
        query = select(run_events).join(runs, runs.c.id == run_events.c.run_id).where(mine)
        query = query.where(run_events.c.kind == "model_called").order_by(runs.c.started_at, run_events.c.seq)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [EventRow(row.seq, row.at, row.kind, row.payload) for row in rows]

    async def finish(  # noqa: PLR0913 - what is known at the end
        self,
        run_id: str,
        status: RunStatus,
        *,
        epoch: int,
        parts: Sequence[Message],
        error: dict[str, Any] | None = None,
        usage: Usage | None = None,
        rows: Sequence[EventRow] = (),
        whole: WholeLog | None = None,
        thoughts: Sequence[AgentThought] = (),
    ) -> None:
        """Store the end: the last events, the whole reply, its steps and the status, all or nothing.

        Args:
            rows: The last events.
            whole: Where given, events that are not there any more, or twice, are all stored anew.
            thoughts: The steps; those that a process before this one has stored are passed over.

        Raises:
            LeaseLostError: Another process has taken the run over, or it has ended.
            NotFoundError: The run is gone, with its conversation, or is not the owner's.
        """
        this = {"run": run_id}

        def end(connection: Connection) -> None:
            record = _run_of(connection, self._owner, run_id, statements.RUN_TO_END)
            _check_held(record, self._owner, epoch)
            last = rows
            if whole is not None and first_of(connection, statements.COUNT_EVENTS, this)[0] != whole.before:
                send(connection, statements.FORGET_EVENTS, this)
                last = whole.rows()
            _append(connection, self._owner, run_id, last)
            spent = usage.model_dump() if usage is not None else None
            values = {"ended": status, "trouble": error, "spent": spent, "time": time.time()}
            send(connection, statements.END_RUN, {**this, **values})
            send(connection, statements.FORGET_REQUESTS, this)
            said = {"said": dumped(parts), "ended": status}
            send(connection, statements.END_MESSAGE, {"message": record.message_id, **said})
            send(connection, *kept_text(self._owner, record.conversation_id, record.message_id, "assistant", parts))
            missing = thoughts if epoch == 1 else missing_thoughts(connection, record.message_id, thoughts)
            add_thoughts(connection, self._owner, record.message_id, missing)
            use_files(connection, self._owner, record.conversation_id, file_ids(parts))  # what the model made
            if usage is not None:
                count_use(connection, self._owner, time.time(), tokens=usage.total_tokens, cost=usage.cost or 0.0)

        await self._database.write(end, holds=True)

    async def revise(self, run_id: str, kind: str, revised: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Add an event to a run that is over, made from its last one of that kind; without one, nothing happens.

        Args:
            revised: The payload of the new event, from that of the last one.

        Raises:
            ConflictError: key `busy`: the run is not over.
            NotFoundError: The run is gone, with its conversation, or is not the owner's.
        """

        def revise(connection: Connection) -> None:
            if _run_of(connection, self._owner, run_id).status == "running":
                raise busy()
            events = _events(connection, run_id, 0)
            last = next((one for one in reversed(events) if one.kind == kind), None)
            if last is not None:
                row = EventRow(events[-1].seq + 1, time.time(), kind, revised(last.payload))
                _append(connection, self._owner, run_id, [row])

        await self._database.write(revise)

    async def add(self, run_id: str, kind: str, payload: dict[str, Any]) -> None:
        """Add an event to a run that is over, as its last one.

        Raises:
            ConflictError: key `busy`: the run is not over.
            NotFoundError: The run is gone, with its conversation, or is not the owner's.
        """

        def add(connection: Connection) -> None:
            record = _run_of(connection, self._owner, run_id)
            if record.status == "running":
                raise busy()
            last = select(func.max(run_events.c.seq)).where(run_events.c.run_id == run_id)
            seq = (connection.execute(last).scalar() or 0) + 1
            row = EventRow(seq, time.time() - record.started_at, kind, payload)
            _append(connection, self._owner, run_id, [row])

        await self._database.write(add)

    async def running(self, conversation_id: str) -> tuple[RunRecord, Lease] | None:
        """The run that is being written in a conversation, with who holds it; `None` where none is."""
        mine = (runs.c.owner_id == self._owner) & (runs.c.conversation_id == conversation_id)
        row = await self._database.read(lambda c: c.execute(WITH_LEASES.where(_RUNNING, mine)).first())
        return (run_record(row), lease_of(row)) if row is not None else None

    async def place(self, run_id: str) -> StoredMessage:
        """The message that the run writes. Raises NotFoundError."""
        return await self._database.read(
            lambda c: message_of(c, self._owner, _run_of(c, self._owner, run_id).message_id)
        )


class AllRuns:
    """The runs of all owners: for whoever renews their leases, and picks up what a dead process left."""

    def __init__(self, database: Database, limits: UsualLimits = UNLIMITED) -> None:
        self._database, self._limits = database, limits
        self._together = Checkpoints(database)

    def of(self, owner: str) -> RunStore:
        """Those of one owner."""
        return RunStore(self._database, owner, self._together, self._limits)

    async def running(self) -> list[tuple[RunRecord, Lease]]:
        """Every run that is marked as running, of all owners, each with who holds it: to find what was left behind."""
        rows = await self._database.read(lambda c: rows_of(c, _ALL_RUNNING, {}))
        return [(run_record(row), lease_of(row)) for row in rows]

    async def renew(self, held: Mapping[str, int], lasts: float = LEASE_SECONDS) -> set[str]:
        """Renew the leases of runs, all in one transaction.

        Args:
            held: The runs, each with the epoch in which the caller holds it.
            lasts: Seconds of the lease.

        Returns:
            Those that it holds no more: taken over, ended or deleted.
        """

        def renewed(connection: Connection) -> set[str]:
            rows = _held(connection, held)
            still = [row.id for row in rows if row.status == "running" and held[row.id] == row.epoch]
            send(connection, statements.RENEW_RUN, *({"run": run_id, "lasts": lasts} for run_id in still))
            return held.keys() - {*still}

        return await self._database.write(renewed, durable=False, holds=True)

    async def take_over(
        self,
        record: RunRecord,
        lease: Lease,
        worker: str,
        rows: Sequence[EventRow] | None = None,
        *,
        seen: int | None = None,
        lasts: float = LEASE_SECONDS,
    ) -> RunRecord:
        """Take a run that another process has left; from now on that one can write to it no more.

        Args:
            record: A run that is marked as running.
            lease: Who held it when it was looked at.
            worker: The process that goes on.
            rows: All its events so far, numbered as the new process counts them; left out, they stay as they are.
            seen: The number of its last event when they were read, 0 for none: what came since would be lost.
            lasts: Seconds of the lease.

        Returns:
            The run, in its new epoch.

        Raises:
            ConflictError: key `busy`: the lease was renewed meanwhile, another process was quicker, or there is more
                of the run than was seen.
        """
        same = runs.c.lease_until.is_not_distinct_from(lease.until) & (runs.c.worker == lease.worker)
        is_left = (runs.c.id == record.id) & (runs.c.epoch == record.epoch) & _RUNNING & same
        taken = {"worker": worker, "epoch": record.epoch + 1, "lease_until": clock() + lasts}
        last = select(func.max(run_events.c.seq)).where(run_events.c.run_id == record.id)

        def take(connection: Connection) -> None:
            if not connection.execute(update(runs).where(is_left).values(taken)).rowcount:
                raise busy()
            if seen is not None and (connection.execute(last).scalar() or 0) != seen:
                raise busy()
            if rows is not None:
                send(connection, statements.FORGET_EVENTS, {"run": record.id})
                _append(connection, record.owner_id, record.id, rows)

        await self._database.write(take, holds=True)
        return replace(record, epoch=record.epoch + 1)

    async def prune(self, before: float, keep: Collection[str]) -> int:
        """Delete events of runs that are over, some runs at a time.

        Args:
            before: Runs that ended before this time (Unix seconds).
            keep: The kinds of events that stay.

        Returns:
            How many runs there were.
        """
        goes = run_events.c.kind.not_in(keep)
        has_some = select(run_events.c.seq).where(run_events.c.run_id == runs.c.id, goes).exists()
        offered = runs.c.owner_id == base.DEMONSTRATIONS  # played in their times for as long as they are offered
        query = select(runs.c.id).where(runs.c.finished_at < before, runs.c.status != "running", has_some, ~offered)
        found = await self._database.read(lambda c: c.execute(query).scalars().all())
        for some in (found[at : at + _BATCH] for at in range(0, len(found), _BATCH)):
            deletion = delete(run_events).where(run_events.c.run_id.in_(some), goes)
            await self._database.write(lambda c, deletion=deletion: c.execute(deletion).rowcount, durable=False)
        return len(found)


def _insert_run(connection: Connection, record: RunRecord, worker: str, lasts: float | None) -> None:
    values = {name: getattr(record, name) for name in RunRecord.__slots__}
    send(connection, statements.ADD_RUN, {**values, "worker": worker, "lasts": lasts}, refused=busy)


def _refuse_unheld(connection: Connection, owner: str, run_id: str, epoch: int) -> None:
    """Nothing, where the writer still holds the owner's run. Raises LeaseLostError, NotFoundError."""
    _check_held(first_of(connection, statements.RUN_HELD, {"run": run_id}), owner, epoch)


def _held(connection: Connection, wanted: Iterable[str]) -> Sequence[Any]:
    """The rows of runs, which nobody else changes until the transaction ends."""
    quickly = connection.dialect.name != "sqlite"
    query = statements.RUNS_HELD_QUICKLY if quickly else statements.RUNS_HELD
    return rows_of(connection, query, {"wanted": [*wanted]})


def _check_held(row: Row[*tuple[Any, ...]] | RunRecord | None, owner: str, epoch: int) -> None:
    if row is None or row.owner_id != owner:
        raise _missing()
    if row.epoch != epoch or row.status != "running":
        raise LeaseLostError("Another process has taken this run over, or ended it.", kind="run")


def _append(connection: Connection, owner: str, run_id: str, rows: Sequence[EventRow]) -> None:
    send(connection, statements.ADD_EVENTS, *_event_values(owner, run_id, rows))


def _event_values(owner: str, run_id: str, rows: Sequence[EventRow]) -> list[dict[str, Any]]:
    return [
        {"run_id": run_id, "owner_id": owner, "seq": row.seq, "at": row.at, "kind": row.kind, "payload": row.payload}
        for row in rows
    ]


def _events(connection: Connection, run_id: str, after: int, without: Collection[str] = ()) -> list[EventRow]:
    query = select(run_events).where(run_events.c.run_id == run_id, run_events.c.seq > after)
    query = query.where(run_events.c.kind.not_in(without)) if without else query
    rows = connection.execute(query.order_by(run_events.c.seq)).all()
    return [EventRow(row.seq, row.at, row.kind, row.payload) for row in rows]


def _run_of(
    connection: Connection, owner: str, run_id: str, query: Select[tuple[Any, ...]] = statements.RUN
) -> RunRecord:
    row = first_of(connection, query, {"run": run_id, "owner": owner})
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
        usage=Usage.model_validate(row.usage) if row.usage else None,
        started_at=row.started_at,
        finished_at=row.finished_at,
        epoch=row.epoch,
    )


WITH_LEASES: Final = select(runs, (runs.c.lease_until < clock()).label("over"))
"""Rows of `runs`, each with whether its lease is over."""
_ALL_RUNNING: Final = WITH_LEASES.where(_RUNNING).order_by(runs.c.started_at)


def lease_of(row: Row[Any]) -> Lease:
    """Who holds a run, from a row of `WITH_LEASES`."""
    return Lease(row.worker, row.lease_until, bool(row.over))


def _missing() -> NotFoundError:
    return NotFoundError("There is no such run.", kind="run")


def _refuse_second(connection: Connection, conversation_id: str) -> None:
    """Nothing, where no other transaction begins a run in the conversation now, or can until this one ends.

    A second one would wait, and might then find that the first one's run is over already. Where there is one writer,
    there is never a second one.

    Raises:
        ConflictError: key `busy`.
    """
    if connection.dialect.name != "sqlite":
        (taken,) = first_of(connection, statements.TAKE_NAME, {"name": f"run of {conversation_id}"})
        if not taken:
            raise busy()
