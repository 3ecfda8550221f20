"""What all Parlours of an installation agree on: one secret, one place for files, and that all has arrived."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from core.errors import SettingsError
from core.storage.base import new_id
from core.storage.notes import FILES, MOVE, SECRET, keep_note, note_of, print_of, unfinished

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

    from core.storage.database import Database


_LOG: Final = logging.getLogger(__name__)
_ID: Final = ".id"


async def check_secret(database: Database, secret: str) -> None:
    """See that all Parlours of an installation have one secret; the first that comes says which.

    It signs cookies and links and seals keys: with another one, what somebody else wrote could not be read. A data
    folder has its own secret beside its database, so that nothing is asked there.

    Raises:
        ConflictError: key `move_unfinished`: not all that is carried here has arrived.
        SettingsError: key `storage_secret`: it is another one.
        StorageError: The database failed.
    """

    def kept(connection: Connection) -> str:
        if connection.dialect.name == "sqlite":
            return print_of(secret)
        if note_of(connection, MOVE) is not None:
            raise unfinished(database.name)
        there = note_of(connection, SECRET)
        if there is None:
            keep_note(connection, SECRET, print_of(secret))
        return there or print_of(secret)

    if await database.write(kept) != print_of(secret):
        text_ = f"The secret of this Parlour is not the one of the others that use {database.name}."
        hint = "Set PARLOUR_SECRET to the same value for all of them."
        raise SettingsError(text_, hint=hint, key="storage_secret", place=database.name)


async def files_are_here(database: Database, folder: Path) -> bool:
    """Whether a folder is the one of all Parlours that use PostgreSQL; the first that comes says which it is.

    Without a store that all of them share, what is added at one with a folder of its own cannot be opened at another.

    Args:
        folder: Where the bytes of files are; its id is kept in it, so that it may be moved.

    Raises:
        StorageError: The database failed.
    """
    here = await asyncio.to_thread(_id_of, folder)

    def kept(connection: Connection) -> str:
        there = note_of(connection, FILES)
        if there is None and here:
            keep_note(connection, FILES, here)
        return there or here

    if not here or await database.write(kept) == here:
        return True
    _LOG.warning(
        "The files of %s are in another folder than %s: what is added at one Parlour cannot be opened at another. Set "
        "PARLOUR_FILES to one store for all of them, or let all use one data folder.",
        database.name,
        folder,
    )
    return False


def _id_of(folder: Path) -> str:
    """What a folder is known by; "" where nothing can be kept in it, which whoever adds a file is told."""
    place = folder / _ID
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with place.open("x", encoding="ascii") as fresh:
                fresh.write(new_id())
        except FileExistsError:
            pass
        return place.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        _LOG.debug("The folder of files has no id: %s", error)
        return ""
