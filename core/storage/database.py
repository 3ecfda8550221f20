"""The database: opened, brought up to date, and used one whole transaction at a time."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from core.bridge.whole import whole
from core.errors import StorageError
from core.storage.migrations.upgrade import bring_up_to_date
from core.storage.trouble import translated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection, Engine

T = TypeVar("T")

_BUSY_TIMEOUT = 5.0
_READERS = 2  # more of them would only wait for the interpreter's lock


class Database:
    """An SQLite file in WAL mode, for one event loop. Use `Database.open`.

    There is one writing connection, so writers queue fairly instead of spinning on SQLite's lock, and a few reading
    ones. Callers wait without blocking their loop: a transaction is a plain function of a connection, and all of it
    runs in one thread, for an asynchronous driver hops between threads at each statement and fetch, which costs
    several times the statement. It runs in a task of its own, so that cancelling the caller never leaves one half
    done. Nothing outside this class knows how, so another database may be reached by an asynchronous driver.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = _engine(path, size=1)
        self._readers = _engine(path, size=_READERS)
        self._closed = False
        self._writing = ThreadPoolExecutor(1, "database-write")
        self._reading = ThreadPoolExecutor(_READERS, "database-read")

    @classmethod
    async def open(cls, path: Path) -> Database:
        """Open the file, making it or bringing it up to date first (with a copy beside it).

        Raises:
            StorageError: It is damaged (key `storage_damaged`), newer than this program (`storage_newer`),
                or cannot be used.
        """
        await asyncio.to_thread(bring_up_to_date, path)
        return cls(path)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on a snapshot of the database.

        Raises:
            StorageError: The database failed.
        """
        return await whole(self._run(self._reading, self._readers, ("BEGIN",), work))

    async def write(self, work: Callable[[Connection], T], *, durable: bool = True) -> T:
        """Run `work` as one transaction: all of it is stored, or nothing.

        Args:
            work: What to do, with the connection; it may run no other transaction.
            durable: Whether it must survive a power failure. Checkpoints of a stream need not: they survive the
                death of the process, and cost a sixtieth.

        Raises:
            NoSpaceError: The disk is full.
            ConflictError: A rule of the tables forbids it, or the database is busy (key `storage_busy`).
            StorageError: The database failed otherwise.
        """
        level = "FULL" if durable else "NORMAL"
        opening = (f"PRAGMA synchronous={level}", "BEGIN IMMEDIATE")
        return await whole(self._run(self._writing, self._writer, opening, work))

    async def aclose(self) -> None:
        """Close all connections; nothing can be read or written any more."""
        self._closed = True
        for engine, threads in ((self._readers, self._reading), (self._writer, self._writing)):
            await asyncio.to_thread(engine.dispose)
            threads.shutdown(wait=False)

    async def _run(
        self, threads: ThreadPoolExecutor, engine: Engine, opening: tuple[str, ...], work: Callable[[Connection], T]
    ) -> T:
        if self._closed:
            raise StorageError("The database is closed.")
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, _transaction, engine, opening, work)
        except (DBAPIError, PoolTimeoutError, sqlite3.Error, OSError) as error:
            raise translated(error, self.path) from error


def _transaction(engine: Engine, opening: tuple[str, ...], work: Callable[[Connection], T]) -> T:
    with engine.connect() as connection:
        # The driver's own connection: these go past what SQLAlchemy does for a statement, which is most of their cost.
        plain: Any = connection.connection.driver_connection
        for statement in opening:
            plain.execute(statement)
        try:
            result = work(connection)
            plain.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.OperationalError):  # a full disk has ended the transaction by itself
                plain.execute("ROLLBACK")
            raise
        return result


def _engine(path: Path, *, size: int) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        isolation_level="AUTOCOMMIT",  # transactions are begun and ended above, by hand
        json_serializer=_json,
        pool_size=size,
        max_overflow=0,
        pool_timeout=_BUSY_TIMEOUT * 2,
        connect_args={"timeout": _BUSY_TIMEOUT},
    )
    event.listen(engine, "connect", _set_up)
    return engine


def _set_up(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _json(value: object) -> str:
    """JSON as it reads; a half of a surrogate pair, which no file can hold, stays escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if _encodable(text) else json.dumps(value, separators=(",", ":"))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
