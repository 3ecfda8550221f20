"""The database: used one whole transaction at a time, whatever is behind it; and whether it is an older copy."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from core.errors import extra_for
from core.storage.data_folder import put_in_place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from sqlalchemy import Connection

    from core.storage.transactions import Transactions


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
            with extra_for("A PostgreSQL database"):
                from core.storage.postgres_database import PostgresDatabase
            return Database(await PostgresDatabase.at(place))
        from core.storage.sqlite_database import SqliteDatabase

        return Database(await SqliteDatabase.at(place))

    def read(self, work: Callable[[Connection], T]) -> Awaitable[T]:
        """Run `work` on a snapshot of the database.

        Raises:
            StorageError: The database failed.
        """
        return self._form.read(work)

    def read_here(self, work: Callable[[Connection], T]) -> T:
        """`read` in this thread, which it blocks: for what works in threads and must know what is so at this moment.

        Raises:
            StorageError: The database failed.
        """
        return self._form.read_here(work)

    def write(self, work: Callable[[Connection], T], *, durable: bool = True) -> Awaitable[T]:
        """Run `work` as one transaction, as if no other ran at the same time: all of it is stored, or nothing.

        Args:
            work: What to do, with the connection; it may run no other transaction.
            durable: Whether it must survive a power failure. Checkpoints of a stream need not: they survive the
                death of the process, and cost a sixtieth.

        Raises:
            NoSpaceError: The disk is full.
            ConflictError: A rule of the tables forbids it, or the database is busy (key `storage_busy`).
            StorageError: The database failed otherwise; key `storage_unsure` where it is not known whether it did.
        """
        return self._form.write(work, durable=durable)

    def counted(self, connection: Connection) -> int:
        """How often it was opened, as `count` has noted it, inside a transaction."""
        return self._form.counted(connection)

    def count(self, connection: Connection, number: int) -> None:
        """Note how often it was opened, inside a transaction."""
        self._form.count(connection, number)

    async def aclose(self) -> None:
        """Close all connections; nothing can be read or written any more."""
        await self._form.aclose()


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
    draft = note.with_name(f".{note.name}.part")
    try:
        draft.write_text(f"{number}\n", "ascii")
        put_in_place(draft, note)
    except OSError as error:  # no reason not to open: the next opening counts again
        _LOG.debug("The generation is not noted: %s", error)
