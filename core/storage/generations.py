"""Whether a database is the newest that its data folder has had, or an older copy, or one without its newest part.

Whoever copies `parlour.db` alone from a running Parlour leaves behind what stands in `parlour.db-wal`, which may be
everything. So each opening counts, in the database and in a file beside it. A database that counts less than the file
was not the last one here.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.storage.synced import put_in_place

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

    from core.storage.database import Database

_LOG = logging.getLogger(__name__)
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
        counted = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
        if counted >= noted:
            counted = counted + 1 if counted < 2**31 - 1 else 1
            connection.exec_driver_sql(f"PRAGMA user_version={counted}")
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
        database.path,
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
