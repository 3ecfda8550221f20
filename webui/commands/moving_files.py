"""`parlour move --files`: carries files and snapshots of a data folder into an S3 store that several Parlours share."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from core.errors import SettingsError
from core.storage.blobs import files_beside
from core.storage.carrying_files import carry_files
from core.storage.database import Database
from core.storage.files import AllFiles
from core.storage.opening import opened_blobs

if TYPE_CHECKING:
    from core.settings import Settings
    from core.storage.carrying_files import Carried
    from webui.words import Words


def move_files(settings: Settings, place: str, words: Words) -> list[str]:
    """Carry the files into the store; what is there already is compared, and the folder stays as it is.

    Args:
        place: The store, as in `PARLOUR_FILES`.

    Raises:
        SettingsError: It names no store.
        StorageError: What arrived is not what was sent, or the store cannot be used.
    """
    there = settings.model_copy(update={"files": place})
    if there.store is None:
        raise SettingsError(
            f"--files must be a bucket and a prefix, and not {place!r}.", hint="Write it like s3://bucket/parlour."
        )
    return asyncio.run(_moved(there, words))


async def _moved(settings: Settings, words: Words) -> list[str]:
    def told(so_far: Carried) -> None:
        sys.stderr.write(words("move.files_so_far", files=so_far.files) + "\n")

    async with opened_blobs(settings) as blobs:
        carried = await carry_files(files_beside(settings.home / "files"), blobs, told)
        database = await Database.open(settings.database_in(settings.home))
        try:
            missing = await AllFiles(database, blobs).missing()
        finally:
            await database.aclose()
    said = words("move.files", files=carried.files, before=carried.before, place=settings.files)
    lost = [words("move.files_missing", files=len(missing), names=", ".join(missing[:5]))] if missing else []
    return [said, *lost, words("move.files_next", place=settings.files)]
