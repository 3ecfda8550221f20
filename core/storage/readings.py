"""The documents of all owners that are to be read: who reads them, and taking over what a dead reader left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Integer, Row, bindparam, func, select, text, update

from core.errors import ConflictError
from core.storage.base import QUEUED, Lease
from core.storage.database import rows_of
from core.storage.dialects import clock, notify, upsert
from core.storage.documents import document_record
from core.storage.reading_rows import first_epoch, shut_out
from core.storage.tables import documents, readings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.storage.base import DocumentRecord
    from core.storage.database import Database

_IS_UNREAD: Final = text("documents.status = 'reading'")  # as the partial index has it
_PLAIN: Final = ("epoch", "worker", "lease_until", "due", "progress", "asked", "restores", "lost", "passed")
_UNREAD: Final = (
    select(documents, *(readings.c[name] for name in _PLAIN), (readings.c.lease_until < clock()).label("over"))
    .outerjoin(readings, readings.c.document_id == documents.c.id)
    .where(_IS_UNREAD)
)
_OLDEST: Final = _UNREAD.order_by(
    func.coalesce(readings.c.worker == QUEUED, False),
    documents.c.created_at,
).limit(bindparam("most", type_=Integer))


@dataclass(frozen=True, slots=True)
class Unread:
    """A document that is being read, or waits for it.

    Args:
        epoch: Of its reading; 0 where nobody has noted one.
        lease: Who reads it.
        due: When its turn is.
        progress: How far its reader said that it is.
        asked: What its reader is to do: `stop`, or nothing.
        restores: Whether it is read again because the index had lost it.
        lost: How many of its readers died.
        passed: How many had not its bytes.
    """

    record: DocumentRecord
    epoch: int
    lease: Lease
    due: float = 0.0
    progress: Mapping[str, Any] | None = None
    asked: str | None = None
    restores: bool = False
    lost: int = 0
    passed: int = 0

    @property
    def id(self) -> str:
        """The document's."""
        return self.record.id

    @property
    def owner_id(self) -> str:
        """The document's."""
        return self.record.owner_id


@dataclass(frozen=True, slots=True)
class Taken:
    """A document that this process reads from now on.

    Args:
        unread: As it is now.
        before: What it was, if it is read anew or on.
        password: Opens it, sealed.
    """

    unread: Unread
    before: DocumentRecord | None = None
    password: str = ""


class AllReadings:
    """What is to be read, of all owners."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def unread(self, most: int) -> list[Unread]:
        """What is being read, and after it what waits, the oldest first; `most` at most. Raises StorageError."""
        rows = await self._database.read(lambda c: rows_of(c, _OLDEST, {"most": most}))
        return [_unread(row) for row in rows]

    async def waiting(self, each: int) -> list[Unread]:
        """What waits for a process, who is due first coming first; `each` of one owner at most. Raises StorageError."""
        turn = func.row_number().over(partition_by=readings.c.owner_id, order_by=readings.c.due)
        waits = select(readings.c.document_id, turn.label("turn")).where(readings.c.worker == QUEUED)
        # A program that knows nothing of readings may have left rows: they take nobody's turn.
        numbered = waits.join(documents, documents.c.id == readings.c.document_id).where(_IS_UNREAD).subquery()
        query = _UNREAD.join(numbered, numbered.c.document_id == documents.c.id).where(numbered.c.turn <= each)
        rows = await self._database.read(lambda c: c.execute(query.order_by(readings.c.due)).all())
        return [_unread(row) for row in rows]

    async def of(self, document_id: str) -> Unread | None:
        """One document; `None` if it is not being read. Raises StorageError."""
        row = await self._database.read(lambda c: c.execute(_UNREAD.where(documents.c.id == document_id)).first())
        return _unread(row) if row is not None else None

    async def take(self, unread: Unread, worker: str, *, lasts: float) -> Taken:
        """Read a document from now on, which waits or was left.

        Args:
            unread: As it was when somebody looked.
            worker: The process that reads.
            lasts: Seconds of the lease.

        Raises:
            ConflictError: key `busy`: another process was quicker, its reader lives, or it is read.
        """

        def take(connection: Connection) -> Taken:
            lease = {"worker": worker, "lease_until": clock() + lasts}
            _change(connection, unread, lease)
            row = connection.execute(_UNREAD.where(documents.c.id == unread.id)).first()
            if row is None:
                raise _busy()
            kept = select(readings.c.before, readings.c.password).where(readings.c.document_id == unread.id)
            before, password = connection.execute(kept).one()
            now = _unread(row)
            return Taken(now, replace(now.record, **before) if before is not None else None, password or "")

        return await self._database.write(take, holds=True)

    async def put_back(self, unread: Unread, *, died: bool = False) -> None:
        """Let another process read a document.

        Args:
            unread: As it was when somebody looked.
            died: Its reader did.

        Raises:
            ConflictError: key `busy`: somebody holds it, or it is read.
        """
        more = {"lost": unread.lost + died, "progress": None}

        def put(connection: Connection) -> None:
            _change(connection, unread, {"worker": QUEUED, "lease_until": None, **more})
            if died:
                shut_out(connection, unread.lease.worker)
            notify(connection, "document")

        await self._database.write(put, holds=True)

    async def give_up(self, held: Mapping[str, int], *, queue: bool, passed: bool = False) -> None:
        """Let others go on with documents at once. Raises StorageError.

        Args:
            held: The documents, each with the epoch in which the caller reads it.
            queue: Whether they wait for whoever has room; else whoever looks takes them.
            passed: Whether the caller had not their bytes.
        """

        def give(connection: Connection) -> None:
            values: dict[str, Any] = {"lease_until": None, **({"worker": QUEUED} if queue else {})}
            if passed:
                values["passed"] = readings.c.passed + 1
            for document_id, epoch in sorted(held.items()):
                mine = (readings.c.document_id == document_id) & (readings.c.epoch == epoch)
                connection.execute(update(readings).where(mine).values(**values))
            if queue:
                notify(connection, "document")

        await self._database.write(give, holds=True)

    async def renew(self, held: Mapping[str, int], lasts: float) -> set[str]:
        """Renew leases, as `AllRuns.renew`."""

        def renewed(connection: Connection) -> set[str]:
            still = _held(connection, held)
            if still:
                these = readings.c.document_id.in_(still)
                connection.execute(update(readings).where(these).values(lease_until=clock() + lasts))
            return held.keys() - still.keys()

        return await self._database.write(renewed, durable=False, holds=True)

    async def tell(self, held: Mapping[str, int], progress: Mapping[str, Mapping[str, Any]]) -> dict[str, str | None]:
        """Say how far readings are, and hear what is asked of their reader. Raises StorageError.

        Args:
            held: The documents, each with the epoch in which the caller reads it.
            progress: How far those of them are that have come further.

        Returns:
            Those that the caller still reads, each with what is asked.
        """

        def told(connection: Connection) -> dict[str, str | None]:
            still = _held(connection, held)
            for document_id in sorted(progress.keys() & still.keys()):
                this = readings.c.document_id == document_id
                connection.execute(update(readings).where(this).values(progress=dict(progress[document_id])))
            return still

        if progress:
            return await self._database.write(told, durable=False, holds=True)
        return await self._database.read(lambda c: _held(c, held, locked=False))


def _held(connection: Connection, held: Mapping[str, int], *, locked: bool = True) -> dict[str, str | None]:
    """Those of the readings that are still in these epochs, each with what is asked of its reader."""
    query = (
        select(readings.c.document_id, readings.c.epoch, readings.c.asked)
        .join(documents, documents.c.id == readings.c.document_id)
        .where(readings.c.document_id.in_([*held]), _IS_UNREAD)
    )
    if locked:  # in one order, so that no two wait for each other
        query = query.order_by(readings.c.document_id).with_for_update(of=readings)
    rows = connection.execute(query).all()
    return {row.document_id: row.asked for row in rows if row.epoch == held[row.document_id]}


def _change(connection: Connection, unread: Unread, values: Mapping[str, Any]) -> None:
    """Begin the next epoch of a reading that is as it was. Raises ConflictError."""
    lease = unread.lease
    if unread.epoch:
        same = readings.c.lease_until.is_not_distinct_from(lease.until) & (readings.c.worker == lease.worker)
        same &= (readings.c.document_id == unread.id) & (readings.c.epoch == unread.epoch)
        change = update(readings).where(same).values(epoch=unread.epoch + 1, **values)
        done = bool(connection.execute(change).rowcount)
    else:
        fresh: dict[str, Any] = {"due": unread.record.created_at, "restores": False, "lost": 0, "passed": 0, **values}
        adding = upsert(readings).values(document_id=unread.id, owner_id=unread.owner_id, epoch=first_epoch(), **fresh)
        adding = adding.on_conflict_do_nothing().returning(readings.c.epoch)
        done = connection.execute(adding).first() is not None
    if not done:
        raise _busy()


def _unread(row: Row[Any]) -> Unread:
    record = document_record(row)
    if row.epoch is None:
        return Unread(record, 0, Lease("", None), record.created_at)
    lease = Lease(row.worker, row.lease_until, bool(row.over))
    return Unread(
        record,
        row.epoch,
        lease,
        row.due,
        row.progress,
        row.asked,
        bool(row.restores),
        row.lost,
        row.passed,
    )


def _busy() -> ConflictError:
    hint = "Wait until it is read."
    return ConflictError("This document is read by another process.", hint=hint, key="busy")
