"""What all Parlours of an installation agree on: one secret, one place for files, and that all has arrived."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import func, select

from core.errors import SettingsError
from core.storage.base import folder_name, is_id, new_id
from core.storage.data_folder import drafted, make_folder
from core.storage.files import suffix_for
from core.storage.notes import FILES, MOVE, SECRET, keep_note, note_of, print_of, unfinished
from core.storage.tables import files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row

    from core.storage.database import Database


_LOG: Final = logging.getLogger(__name__)
_ID: Final = ".id"
_PATIENCE: Final = 30  # seconds
_LOOKED_AT: Final = 20
_NEARLY_ALL: Final = 0.75
_AT: Final = func.row_number().over(order_by=(files.c.created_at, files.c.id))
_FILES: Final = select(files.c.id, files.c.owner_id, files.c.media_type, _AT.label("at")).subquery()


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


async def files_are_here(database: Database, folder: Path, *, keeps: bool = True) -> bool:
    """Whether a folder is the one of all Parlours that use PostgreSQL.

    The first that comes says which it is, and later on whichever has nearly all files, of twenty that are looked for:
    so one that was put together of others, came back from a backup, or follows a first try elsewhere is the one from
    its next start on. Without a store that all of them share, what is added at one with a folder of its own cannot be
    opened at another.

    Args:
        folder: Where the bytes of files are; its id is kept in it, so that it may be moved.
        keeps: Whether it may become the one, which is logged where it does not; else nothing is written.

    Raises:
        StorageError: The database failed.
    """
    here = await asyncio.to_thread(_id_of, folder, makes=keeps)
    if keeps and not here:
        return True
    if here and here == await database.read(lambda c: note_of(c, FILES)):
        return True
    some = await database.read(_some_files)
    has_them = await asyncio.to_thread(_has_nearly_all, folder, some)

    def is_here(connection: Connection) -> bool:
        known = note_of(connection, FILES)
        return bool(here and known == here) or (has_them if some else known is None)

    def kept(connection: Connection) -> bool:
        if not is_here(connection):
            return False
        keep_note(connection, FILES, here)
        return True

    if await (database.write(kept) if keeps else database.read(is_here)):
        return True
    if keeps:
        _LOG.warning(
            "Files of %s are in another folder than %s: those that were added elsewhere cannot be opened here. Set "
            "PARLOUR_FILES to one store for all Parlours, or let all use one data folder and copy their files there.",
            database.name,
            folder,
        )
    return False


def _some_files(connection: Connection) -> Sequence[Row[Any]]:
    """Files from all times: a folder that took in the latest alone has not got the others."""
    last = connection.execute(select(func.count()).select_from(files)).scalar_one()
    places = {1 + number * (last - 1) // (_LOOKED_AT - 1) for number in range(_LOOKED_AT)}
    return connection.execute(select(_FILES).where(_FILES.c.at.in_(places))).all()


def _has_nearly_all(folder: Path, rows: Sequence[Row[Any]]) -> bool:
    names = (Path(folder_name(row.owner_id), f"{row.id}{suffix_for(row.media_type)}") for row in rows)
    try:
        return sum((folder / name).is_file() for name in names) >= _NEARLY_ALL * len(rows)
    except OSError:
        return False


def _id_of(folder: Path, *, makes: bool) -> str:
    """What a folder is known by; "" where nothing can be kept in it, which whoever adds a file is told."""
    from filelock import FileLock

    place = folder / _ID
    try:
        if (known := _kept_in(place)) or not makes:
            return known
        make_folder(folder)
        with FileLock(folder / f"{_ID}.lock", timeout=_PATIENCE):  # of several that find none, one makes it
            if known := _kept_in(place):
                return known
            with drafted(place) as draft:
                draft.touch(0o600)
                draft.write_bytes(new_id().encode("ascii"))
            return _kept_in(place)
    except OSError as error:
        _LOG.debug("The folder of files has no id: %s", error)
        return ""


def _kept_in(place: Path) -> str:
    try:
        found = place.read_text("ascii", errors="replace").strip()
    except FileNotFoundError:
        return ""
    return found if is_id(found) else ""
