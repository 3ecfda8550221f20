"""The grown database: PostgreSQL, for several Parlours at the same time."""

from __future__ import annotations

import asyncio
import random
import select
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg
from psycopg.pq import ExecStatus
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from core.bridge.cancellation import run_to_end
from core.errors import StorageError
from core.observing import record
from core.storage.migrations.postgres import bring_up_to_date
from core.storage.notes import GENERATION, keep_note, note_of
from core.storage.postgres_engine import PATIENCE, engine_of, named
from core.storage.postgres_errors import (
    is_conflict,
    is_duplicate,
    is_passing,
    is_undone,
    met_at_work,
    unsure,
)
from core.storage.postgres_line import PostgresLine
from core.storage.postgres_notices import notices
from core.storage.transactions import DURATION, LINE, READ, WRITE, Transactions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from sqlalchemy import Connection, Engine
    from sqlalchemy.pool import ConnectionPoolEntry


T = TypeVar("T")

CONNECTIONS: Final = 4
"""Connections of one process for reading, and as many for writing."""
_SHORTEST_WAIT: Final = 0.002
_LONGEST_WAIT: Final = 0.25
_MOST_SELECTED: Final = 1024  # numbers of descriptors that `select` takes
_TO_READ: Final = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_TO_WRITE: Final = b"BEGIN ISOLATION LEVEL SERIALIZABLE"
_TO_HOLD: Final = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_QUICKLY: Final = b"; SET LOCAL synchronous_commit = off"
_FAILURES: Final = (DBAPIError, PoolTimeoutError, psycopg.Error)


class PostgresDatabase(Transactions):
    """A database of a PostgreSQL server, by a synchronous driver in threads.

    Writes are serializable: PostgreSQL refuses one whose outcome depends on the order in which it ran beside others,
    and it runs again, as it does where the server went away before its end. So what holds for SQLite's one writer
    holds here. Of those that read and write one page of a table, whichever rows of it, PostgreSQL refuses some in vain:
    in a burst of replies most of them, again and again. What replies are made of holds its rows itself, and sees with
    each statement what others have stored by then.
    """

    def __init__(self, address: str) -> None:
        self.place = address
        self.name = named(address)
        self._readers, self._writers = engine_of(address, CONNECTIONS), engine_of(address, CONNECTIONS, writes=True)
        for engine in (self._readers, self._writers):
            event.listen(engine, "connect", _begin_line)
            event.listen(engine, "before_cursor_execute", _send_before)
        self._reading = ThreadPoolExecutor(CONNECTIONS, "database-read")
        self._writing = ThreadPoolExecutor(CONNECTIONS, "database-write")
        self._closing = threading.Event()
        self._again = threading.Lock()
        self._others = count()

    @classmethod
    async def at(cls, address: str) -> PostgresDatabase:
        """The database, its tables made or brought up to date first. Raises as `Database.open`."""
        await asyncio.to_thread(bring_up_to_date, address)
        return cls(address)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """As of `Transactions`."""
        return await run_to_end(self._run(self._reading, self._readers, _TO_READ, work))

    def read_here(self, work: Callable[[Connection], T]) -> T:
        """As of `Transactions`."""
        if self._closing.is_set():
            raise StorageError("The database is closed.")
        return self._patiently(self._readers, _TO_READ, work)

    async def write(self, work: Callable[[Connection], T], *, durable: bool = True, holds: bool = False) -> T:
        """As of `Transactions`; key `storage_unsure` where the connection was lost at the very end."""
        opening = (_TO_HOLD if holds else _TO_WRITE) + (b"" if durable else _QUICKLY)
        return await run_to_end(self._run(self._writing, self._writers, opening, work))

    def others(self) -> int:
        """As of `Transactions`; nothing tells it here, so it is always another one."""
        return next(self._others)

    async def look_for_others(self) -> None:
        """As of `Transactions`."""

    def notices(self) -> AsyncGenerator[str, None]:
        """As of `Transactions`."""
        return notices(str(self.place))

    async def aclose(self) -> None:
        """Close all connections; nothing can be read or written any more."""
        self._closing.set()
        for engine, threads in ((self._readers, self._reading), (self._writers, self._writing)):
            await asyncio.to_thread(threads.shutdown)  # what was begun is done; nothing is tried again
            await asyncio.to_thread(engine.dispose)

    def counted(self, connection: Connection) -> int:
        """As of `Transactions`."""
        return int(note_of(connection, GENERATION) or 0)

    def count(self, connection: Connection, number: int) -> None:
        """As of `Transactions`."""
        keep_note(connection, GENERATION, str(number))

    async def _run(
        self, threads: ThreadPoolExecutor, engine: Engine, opening: bytes, work: Callable[[Connection], T]
    ) -> T:
        if self._closing.is_set():
            raise StorageError("The database is closed.")
        began = time.perf_counter()
        done = await asyncio.get_running_loop().run_in_executor(threads, self._patiently, engine, opening, work)
        record(DURATION, time.perf_counter() - began, READ if engine is self._readers else WRITE)
        return done

    def _patiently(self, engine: Engine, opening: bytes, work: Callable[[Connection], T]) -> T:
        """Run a work, again where another transaction came between, or the server was away for a moment."""
        until, wait, seen, met = time.monotonic() + PATIENCE, _SHORTEST_WAIT, False, False
        while True:
            try:
                with self._again if met else nullcontext():  # those of one process meet no second time
                    return _transaction(engine, opening, work, self.name)
            except _FAILURES as error:
                duplicate = is_duplicate(error) and not seen
                seen = seen or duplicate
                met = is_conflict(error)
                again = met or is_passing(error) or duplicate
                if not again or self._closing.is_set() or time.monotonic() > until:
                    raise met_at_work(error, self.name) from error
            self._closing.wait(wait * random.random())  # noqa: S311 - so that two do not meet again and again
            wait = min(wait * 2, _LONGEST_WAIT)


def _transaction(engine: Engine, opening: bytes, work: Callable[[Connection], T], name: str) -> T:
    with engine.connect() as connection:
        plain: psycopg.Connection[Any] = connection.connection.driver_connection  # pyright: ignore[reportAssignmentType]
        line: PostgresLine = connection.info[LINE]
        try:
            _say(plain, opening)
            result = work(connection)
            line.flush()
            if opening is not _TO_READ:
                _check_there(plain)
        except BaseException as error:
            line.forget()
            _undo(plain)
            if plain.closed or (isinstance(error, _FAILURES) and is_passing(error)):
                connection.invalidate()  # the next one is made anew, perhaps to another server
            raise
        try:
            _say(plain, b"COMMIT", b"COMMIT")
        except psycopg.Error as error:
            if plain.closed:
                connection.invalidate()
            if opening is _TO_READ or is_undone(error):
                raise
            raise unsure(name) from error
        return result


def _begin_line(plain: psycopg.Connection[Any], record: ConnectionPoolEntry) -> None:
    record.info[LINE] = PostgresLine(plain)


def _send_before(connection: Connection, *_: object) -> None:
    """What was said before goes before."""
    line: PostgresLine = connection.info[LINE]
    line.flush()


def _say(plain: psycopg.Connection[Any], statement: bytes, answer: bytes = b"") -> None:
    """Statements past the driver's cursor, which costs as much as they do. Raises psycopg.Error."""
    done = plain.pgconn.exec_(statement)
    if done.status not in {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK}:
        said = done.error_message.decode(errors="replace").strip()
        if plain.pgconn.status != psycopg.pq.ConnStatus.OK and not done.error_field(
            psycopg.pq.DiagnosticField.SQLSTATE
        ):
            raise psycopg.OperationalError(said or "the connection is closed")
        raise psycopg.errors.error_from_result(done)
    if answer and done.command_status != answer:  # a statement of it had failed, and the work went on
        raise psycopg.errors.InFailedSqlTransaction("the transaction had failed already, and was undone")


def _check_there(plain: psycopg.Connection[Any]) -> None:
    """Nothing, where the server has not hung up: noticed now, nothing was stored. Raises psycopg.Error."""
    number = plain.pgconn.socket
    if number < _MOST_SELECTED and select.select([number], [], [], 0)[0]:
        _say(plain, b"SELECT 1")


def _undo(plain: psycopg.Connection[Any]) -> None:
    with suppress(psycopg.Error):
        if not plain.closed:
            plain.pgconn.exec_(b"ROLLBACK")
