"""The database: opened, brought up to date, and used one whole transaction at a time."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import create_async_engine

from core.storage.migrations.upgrade import bring_up_to_date
from core.storage.trouble import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncEngine

T = TypeVar("T")

_BUSY_TIMEOUT = 5.0
_READERS = 4


class Database:
    """An SQLite file in WAL mode, for one event loop. Use `Database.open`.

    There is one writing connection, so writers queue fairly instead of spinning on SQLite's lock, and a few reading
    ones. A transaction is a plain function of a connection; it runs in a task of its own, so that cancelling the
    caller never leaves one half done.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = _engine(path, size=1)
        self._readers = _engine(path, size=_READERS)

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
        return await self._whole(self._run(self._readers, ("BEGIN",), work))

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
        return await self._whole(self._run(self._writer, (f"PRAGMA synchronous={level}", "BEGIN IMMEDIATE"), work))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._readers.dispose()
        await self._writer.dispose()

    async def _run(self, engine: AsyncEngine, opening: tuple[str, ...], work: Callable[[Connection], T]) -> T:
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(_transaction, opening, work)
        except (DBAPIError, PoolTimeoutError, sqlite3.Error, OSError) as error:
            raise translated(error, self.path) from error

    @staticmethod
    async def _whole(work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            while not task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # it is the caller's no more, but nobody shall report it as forgotten
            raise


def _transaction(connection: Connection, opening: tuple[str, ...], work: Callable[[Connection], T]) -> T:
    for statement in opening:
        connection.exec_driver_sql(statement)
    try:
        result = work(connection)
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with suppress(OperationalError):  # a full disk has ended the transaction by itself
            connection.exec_driver_sql("ROLLBACK")
        raise
    return result


def _engine(path: Path, *, size: int) -> AsyncEngine:
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{path}",
        isolation_level="AUTOCOMMIT",  # transactions are begun and ended above, by hand
        json_serializer=_json,
        pool_size=size,
        max_overflow=0,
        pool_timeout=_BUSY_TIMEOUT * 2,
        connect_args={"timeout": _BUSY_TIMEOUT},
    )
    event.listen(engine.sync_engine, "connect", _set_up)
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
