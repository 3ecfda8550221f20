"""The database: used one whole transaction at a time, whatever is behind it; and whether it is an older copy."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from sqlalchemy import create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from core.bridge.cancellation import run_to_end
from core.errors import StorageError, extra_for
from core.observing import record
from core.storage.addresses import check_kind
from core.storage.data_folder import drafted, translated
from core.storage.message_texts import is_of_index, make_index_anew
from core.storage.migrations.upgrade import bring_up_to_date
from core.storage.transactions import DURATION, LINE, READ, WRITE, Transactions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Connection, Engine, Executable


T = TypeVar("T")

_LOG = logging.getLogger(__name__)


class Database:
    """All rows, for one event loop, in whatever form they are kept. Use `Database.open`.

    Args:
        form: Runs the transactions, as `Transactions` says.

    Attributes:
        name: What it is called in a sentence: the path of the file, or the place of the server.
        place: What `open` opened.
    """

    def __init__(self, form: Transactions) -> None:
        self._form = form
        self.name, self.place = form.name, form.place

    @staticmethod
    async def open(place: Path | str) -> Database:
        """Open the database, making its tables or bringing them up to date first.

        Args:
            place: A file, which is made where there is none; or the address of a PostgreSQL database, as in
                `postgresql://name:password@host/database`.

        Raises:
            MissingExtraError: What speaks to PostgreSQL is not installed.
            SettingsError: The address is wrong, or what it names lets nobody in by it.
            StorageError: It is damaged (key `storage_damaged`), newer than this program (`storage_newer`),
                or cannot be used.
        """
        if isinstance(place, str):
            check_kind(place)
            with extra_for("A PostgreSQL database"):
                from core.storage.postgres_database import PostgresDatabase
            return Database(await PostgresDatabase.at(place))
        return Database(await SqliteDatabase.at(place))

    def read(self, work: Callable[[Connection], T]) -> Awaitable[T]:
        """As of `Transactions`."""
        return self._form.read(work)

    def read_here(self, work: Callable[[Connection], T]) -> T:
        """As of `Transactions`."""
        return self._form.read_here(work)

    def write(self, work: Callable[[Connection], T], *, durable: bool = True, holds: bool = False) -> Awaitable[T]:
        """As of `Transactions`."""
        return self._form.write(work, durable=durable, holds=holds)

    def counted(self, connection: Connection) -> int:
        """As of `Transactions`."""
        return self._form.counted(connection)

    def count(self, connection: Connection, number: int) -> None:
        """As of `Transactions`."""
        self._form.count(connection, number)

    def others(self) -> int:
        """As of `Transactions`."""
        return self._form.others()

    async def look_for_others(self) -> None:
        """As of `Transactions`."""
        await self._form.look_for_others()

    def notices(self) -> AsyncGenerator[str, None]:
        """As of `Transactions`."""
        return self._form.notices()

    async def aclose(self) -> None:
        """Close all connections; nothing can be read or written any more."""
        await self._form.aclose()


_BUSY_TIMEOUT = 5.0
_READERS = 2  # more of them would only wait for the interpreter's lock


class SqliteDatabase(Transactions):
    """An SQLite file in WAL mode.

    There is one writing connection, so writers queue fairly instead of spinning on SQLite's lock, and a few reading
    ones. Callers wait without blocking their loop: a transaction is a plain function of a connection, and all of it
    runs in one thread, for an asynchronous driver hops between threads at each statement and fetch, which costs
    several times the statement. It runs in a task of its own, so that cancelling the caller never leaves one half
    done.
    """

    def __init__(self, path: Path) -> None:
        self.path = self.place = path
        self.name = str(path)
        self._writer = _engine(path, size=1)
        self._readers = _engine(path, size=_READERS)
        self._closed = False
        self._others = 0
        self._writing = ThreadPoolExecutor(1, "database-write")
        self._reading = ThreadPoolExecutor(_READERS, "database-read")

    @classmethod
    async def at(cls, path: Path) -> Self:
        """The file, made or brought up to date first (with a copy beside it). Raises as `Database.open`."""
        await asyncio.to_thread(bring_up_to_date, path)
        return cls(path)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """As of `Transactions`."""
        return await run_to_end(self._run(self._reading, self._readers, ("BEGIN",), work))

    def read_here(self, work: Callable[[Connection], T]) -> T:
        """As of `Transactions`."""
        if self._closed:
            raise StorageError("The database is closed.")
        try:
            return _transaction(self._readers, ("BEGIN",), work)
        except (DBAPIError, PoolTimeoutError, sqlite3.Error, OSError) as error:
            raise translated(error, self.path) from error

    async def write(self, work: Callable[[Connection], T], *, durable: bool = True, holds: bool = False) -> T:
        """As of `Transactions`; there is one writer, who needs to hold nothing."""
        del holds
        return await run_to_end(self._run(self._writing, self._writer, _to_write(durable=durable), work))

    async def aclose(self) -> None:
        """Close all connections; nothing can be read or written any more."""
        self._closed = True
        for engine, threads in ((self._readers, self._reading), (self._writer, self._writing)):
            await asyncio.to_thread(threads.shutdown)  # what was begun is done: else its connection stays open
            await asyncio.to_thread(engine.dispose)

    def others(self) -> int:
        """As of `Transactions`."""
        return self._others

    async def look_for_others(self) -> None:
        """As of `Transactions`; one connection writes here, and SQLite tells it of what any other one committed."""
        if self._closed:
            raise StorageError("The database is closed.")
        try:
            self._others = await asyncio.get_running_loop().run_in_executor(self._writing, _foreign, self._writer)
        except (DBAPIError, PoolTimeoutError, sqlite3.Error, OSError) as error:
            raise translated(error, self.path) from error

    def counted(self, connection: Connection) -> int:
        """As of `Transactions`."""
        return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())

    def count(self, connection: Connection, number: int) -> None:
        """As of `Transactions`."""
        connection.exec_driver_sql(f"PRAGMA user_version={number}")

    async def _run(
        self, threads: ThreadPoolExecutor, engine: Engine, opening: tuple[str, ...], work: Callable[[Connection], T]
    ) -> T:
        if self._closed:
            raise StorageError("The database is closed.")
        loop, began = asyncio.get_running_loop(), perf_counter()
        try:
            try:
                done = await loop.run_in_executor(threads, _transaction, engine, opening, work)
                record(DURATION, perf_counter() - began, READ if engine is self._readers else WRITE)
                return done
            except (DBAPIError, sqlite3.Error) as error:
                if not is_of_index(error):
                    raise
            await self._mend_index()
            return await loop.run_in_executor(threads, _transaction, engine, opening, work)
        except (DBAPIError, PoolTimeoutError, sqlite3.Error, OSError) as error:
            raise translated(error, self.path) from error

    async def _mend_index(self) -> None:
        """Make the index of words anew, which holds nothing that the tables do not."""
        _LOG.warning("The index of the words of messages in %s was damaged; it is made anew.", self.path)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writing, _transaction, self._writer, _to_write(durable=True), make_index_anew)


def _to_write(*, durable: bool) -> tuple[str, str]:
    """The statements that begin a transaction that writes."""
    return f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}", "BEGIN IMMEDIATE"


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


def _foreign(engine: Engine) -> int:
    """A number that changes with what other connections commit."""
    with engine.connect() as connection:
        plain: Any = connection.connection.driver_connection
        return int(plain.execute("PRAGMA data_version").fetchone()[0])


def _engine(path: Path, *, size: int) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        isolation_level="AUTOCOMMIT",  # transactions are begun and ended above, by hand
        json_serializer=_json,
        hide_parameters=True,  # what people wrote stands in no log
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


NAME: Final = "generation"


@dataclass(frozen=True, slots=True)
class Behind:
    """That the database is older than its data folder.

    Args:
        conversations: How many it has.
        note: The file to delete for who means it to be so.
    """

    conversations: int
    note: str


async def count_opening(database: Database, home: Path) -> Behind | None:
    """Count this opening, unless the database is behind; then nothing is counted until it is mended.

    Raises:
        StorageError: The database failed.
    """
    note = home / NAME
    noted = await asyncio.to_thread(_read, note)

    def count(connection: Connection) -> tuple[int, int]:
        counted = database.counted(connection)
        if counted >= noted:
            counted = counted + 1 if counted < 2**31 - 1 else 1
            database.count(connection, counted)
            return counted, 0
        return 0, int(connection.exec_driver_sql("SELECT count(*) FROM conversations").scalar_one())

    counted, conversations = await database.write(count)
    if counted:
        await asyncio.to_thread(_write, note, counted)
        return None
    _LOG.warning(
        "The database %s is older than its data folder, with %s conversations in it: it was copied without its -wal "
        "file, or is an older copy. Put the newer one back, or restore a backup; until then no document is taken out "
        "of an index. If it is meant to be so, delete %s.",
        database.name,
        conversations,
        note,
    )
    return Behind(conversations, str(note))


def _read(note: Path) -> int:
    with suppress(OSError, ValueError):
        return int(note.read_text("ascii"))
    return 0


def _write(note: Path, number: int) -> None:
    try:
        with drafted(note) as draft:
            draft.write_text(f"{number}\n", "ascii")
    except OSError as error:  # no reason not to open: the next opening counts again
        _LOG.debug("The generation is not noted: %s", error)


# ---- statements of which many are made: what SQLAlchemy and its driver do for one takes several times as long as
# PostgreSQL does, and waits for each answer


class Line(Protocol):
    """The way to a server that takes several statements at a time."""

    def send(
        self, statement: Executable, values: Mapping[str, Any], refused: Callable[[], Exception] | None = None
    ) -> None:
        """Send it with the next ones, as `send` says."""
        ...

    def rows(self, statement: Executable, values: Mapping[str, Any]) -> Sequence[Any]:
        """Send it with what waits, and give its rows."""
        ...

    def flush(self) -> None:
        """Send what waits. Raises as the statements do."""
        ...


def send(
    connection: Connection,
    statement: Executable,
    *values: Mapping[str, Any],
    refused: Callable[[], Exception] | None = None,
) -> None:
    """Run a statement that gives nothing, once for each of some values, inside a transaction.

    It may wait for what comes after it, at the latest for the end of the transaction, and its error is raised there.

    Args:
        statement: One that lives as long as the program.
        refused: Makes the error to raise where a rule of the tables forbids it.
    """
    line: Line | None = connection.info.get(LINE)
    if line is not None:
        for one in values:
            line.send(statement, one, refused)
        return
    try:
        if values:
            connection.execute(statement, values[0] if len(values) == 1 else values)
    except IntegrityError as error:
        if refused is None:
            raise
        raise refused() from error


def rows_of(connection: Connection, statement: Executable, values: Mapping[str, Any]) -> Sequence[Any]:
    """The rows that a statement gives, inside a transaction; each has its columns by their names.

    Args:
        statement: One that lives as long as the program.
    """
    line: Line | None = connection.info.get(LINE)
    return line.rows(statement, values) if line is not None else connection.execute(statement, values).all()


def first_of(connection: Connection, statement: Executable, values: Mapping[str, Any]) -> Any:
    """The first of these rows; `None` where there is none."""
    return next(iter(rows_of(connection, statement, values)), None)
