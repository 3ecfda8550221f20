"""How runs of other processes go on, and what processes ask of each other's runs."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text, update

from core.errors import ConflictError
from core.storage import statements
from core.storage.base import QUEUED, WAITING, EventRow
from core.storage.database import rows_of
from core.storage.dialects import notify
from core.storage.runs import WITH_LEASES, lease_of, run_record
from core.storage.tables import run_events, run_requests, runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.storage.base import Lease, RunRecord, RunStatus
    from core.storage.database import Database


@dataclass(frozen=True, slots=True)
class News:
    """What the tables say of a run.

    Args:
        epoch: The one that it is in.
        status: Whether it goes on.
        error: Why it ended, if something went wrong.
        rows: Its events after the one that was asked about.
    """

    epoch: int
    status: RunStatus
    error: dict[str, Any] | None
    rows: Sequence[EventRow]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What somebody asks of the process that holds a run.

    Args:
        key: What it is about: of several with one key the first counts.
        kind: What is to be done.
        payload: With what.
    """

    run_id: str
    key: str
    kind: str
    payload: dict[str, Any]


# Each run is looked up by itself, whatever the planner believes: a few rows of each are new.
_NEWS: Final = {
    dialect: text(said).columns(
        *(runs.c[name] for name in ("id", "epoch", "status", "error")),
        *(run_events.c[name] for name in ("seq", "at", "kind", "payload")),
    )
    for dialect, said in {
        "postgresql": """
            SELECT run.id, run.epoch, run.status, run.error, new.seq, new.at, new.kind, new.payload
            FROM json_each_text(CAST(:wanted AS json)) AS known CROSS JOIN LATERAL (
                SELECT id, epoch, status, error FROM runs WHERE id = known.key OFFSET 0) AS run LEFT JOIN LATERAL (
                SELECT seq, at, kind, payload FROM run_events
                WHERE run_id = known.key AND seq > CAST(known.value AS integer) ORDER BY seq OFFSET 0) AS new
            ON TRUE""",
        "sqlite": """
            SELECT runs.id, runs.epoch, runs.status, runs.error, new.seq, new.at, new.kind, new.payload
            FROM json_each(:wanted) AS known CROSS JOIN runs ON runs.id = known.key LEFT JOIN run_events AS new
            ON new.run_id = known.key AND new.seq > known.value ORDER BY runs.id, new.seq""",
    }.items()
}
_OPEN: Final = (
    select(run_requests)
    .join(runs, runs.c.id == run_requests.c.run_id)
    .where(statements.IS_RUNNING, runs.c.worker == bindparam("holder"), run_requests.c.answer.is_(None))
    .order_by(run_requests.c.at)
)
_QUEUED: Final = WITH_LEASES.where(runs.c.worker == QUEUED, statements.IS_RUNNING).order_by(runs.c.started_at)
_ANSWERS_STAY: Final = 600.0  # seconds; whoever asked has read them, or is gone


class RunNews:
    """What becomes of runs, whoever writes them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, wanted: Mapping[str, int]) -> dict[str, News]:
        """How runs go on; one that is gone is left out.

        Args:
            wanted: The runs, each with the number of the last event that is known of it.

        Raises:
            StorageError: The database failed.
        """

        def load(connection: Connection) -> dict[str, News]:
            found: dict[str, News] = {}
            events: list[EventRow] = []
            for run, epoch, status, error, *row in rows_of(connection, _NEWS[connection.dialect.name], asked):
                if run not in found:
                    events = []
                    found[run] = News(epoch, status, error, events)
                if row[0] is not None:  # else nothing is new
                    events.append(EventRow(*row))
            return found

        asked = {"wanted": json.dumps(dict(wanted))}
        return await self._database.read(load)

    async def queued(self) -> tuple[list[tuple[RunRecord, Lease]], dict[str, int]]:
        """The runs that wait for a process, the oldest first, and how many of their owners' are being written."""

        def load(connection: Connection) -> tuple[list[tuple[RunRecord, Lease]], dict[str, int]]:
            found = [(run_record(row), lease_of(row)) for row in rows_of(connection, _QUEUED, {})]
            if not found:  # nearly always
                return [], {}
            whose, written = {record.owner_id for record, _ in found}, runs.c.worker.not_in({QUEUED, WAITING})
            count = select(runs.c.owner_id, func.count()).where(
                statements.IS_RUNNING, written, runs.c.owner_id.in_(whose)
            )
            counts = connection.execute(count.group_by(runs.c.owner_id)).all()
            return found, {str(owner): int(number) for owner, number in counts}

        return await self._database.read(load)


class RunRequests:
    """What processes ask of each other's runs. It outlives both: who takes a run over finds what was asked of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(self, record: RunRecord, request: RunRequest) -> bool:
        """Ask the process that holds a run, whichever it is then; whether nobody was quicker. Raises StorageError.

        Of a run that is over nothing is asked: nobody would take in what somebody typed.
        """
        values = {"key": request.key, "kind": request.kind, "payload": request.payload, "at": time.time()}

        def add(connection: Connection) -> bool:
            row = connection.execute(statements.RUN_HELD, {"run": request.run_id}).first()
            known = select(run_requests.c.key).where(_this(request.run_id, request.key))
            if row is None or row.status != "running" or connection.execute(known).first() is not None:
                return False
            connection.execute(insert(run_requests).values(run_id=request.run_id, owner_id=record.owner_id, **values))
            notify(connection, "asked")
            return True

        try:
            return await self._database.write(add, holds=True)
        except ConflictError as error:  # the run is gone, or another process was quicker
            if error.words_key != ConflictError.key:
                raise
            return False

    async def answer(self, run_id: str, key: str) -> dict[str, Any] | None:
        """The answer; `None` while there is none. Raises StorageError."""
        query = select(run_requests.c.answer).where(_this(run_id, key))
        return await self._database.read(lambda c: c.execute(query).scalar())

    async def open(self, holder: str) -> list[RunRequest]:
        """What is asked of the runs of a process, the oldest first. Raises StorageError."""
        rows = await self._database.read(lambda c: rows_of(c, _OPEN, {"holder": holder}))
        return [RunRequest(row.run_id, row.key, row.kind, row.payload) for row in rows]

    async def settle(self, request: RunRequest, answer: Mapping[str, Any]) -> None:
        """Answer a request; what it came with is kept no longer. Raises StorageError."""

        def settled(connection: Connection) -> None:
            past = run_requests.c.answer.is_not(None) & (run_requests.c.at < time.time() - _ANSWERS_STAY)
            connection.execute(delete(run_requests).where(past))
            change = update(run_requests).where(_this(request.run_id, request.key))
            connection.execute(change.values(answer=dict(answer), payload={}))

        await self._database.write(settled)


def _this(run_id: str, key: str) -> Any:
    return (run_requests.c.run_id == run_id) & (run_requests.c.key == key)
