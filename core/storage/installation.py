"""All Parlours of an installation have one secret, and none starts before all that is carried here has arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import SettingsError
from core.storage.notes import MOVE, SECRET, keep_note, note_of, print_of, unfinished

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from core.storage.database import Database


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
