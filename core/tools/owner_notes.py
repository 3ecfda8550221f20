"""The notes that models keep for an owner: seen, changed, and brought in from the files of an older Parlour."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.errors import BadArgumentsError, NotFoundError
from core.storage.owner_notes import NoteStore, owners_by_folder
from core.tools.notes import files_below, parts_of

if TYPE_CHECKING:
    from core.storage.database import Database

_log = logging.getLogger(__name__)
_MOST: Final = 200
_LONGEST: Final = 8000  # characters that are shown of one


@dataclass(frozen=True, slots=True)
class Note:
    """A note.

    Args:
        key: Under what it is kept.
        text: What it says; of a very long one the beginning.
        whole: Whether that is all of it.
    """

    key: str
    text: str
    whole: bool = True


class OwnerNotes:
    """The notes of one owner, which the owner's tool `storage` keeps.

    Attributes:
        store: Where they are.
    """

    def __init__(self, store: NoteStore) -> None:
        self.store = store

    async def list(self) -> list[Note]:
        """The notes by their keys; of very many the first. Raises StorageError."""
        found = await self.store.first(_MOST, _LONGEST + 1)
        return [Note(key, text[:_LONGEST], len(text) <= _LONGEST) for key, text in found]

    async def change(self, key: str, text: str) -> None:
        """Let a note say something else.

        Raises:
            BadArgumentsError: No note can have this key, or the text is too long.
            NotFoundError: There is no such note any more.
            ToolError: There is no room.
            StorageError: The database failed.
        """
        if not await self.store.put("/".join(parts_of(key)), text, anew=False):
            raise NotFoundError("There is no such note any more.", kind="note")

    async def delete(self, key: str) -> None:
        """Delete a note; one that is gone already is gone.

        Raises:
            BadArgumentsError: No note can have this key.
            StorageError: The database failed.
        """
        await self.store.delete("/".join(parts_of(key)))


async def take_in_notes(database: Database, folder: Path) -> None:
    """Bring the notes that an older Parlour kept in files into the database.

    A file goes when what it says is stored, so that it may be cut short at any moment. What belongs to nobody who is
    known, and what cannot be read or has a name that is no key, stays where it is.

    Args:
        folder: Holds a folder for each owner.

    Raises:
        StorageError: The database failed.
    """
    if not await asyncio.to_thread(folder.is_dir):
        return
    for name, known in (await owners_by_folder(database)).items():
        found = await asyncio.to_thread(_kept_in, folder / name)
        if found:
            told = {key: data.decode("utf-8", "replace") for key, (_, data) in found.items()}
            await NoteStore(database, known).take(told)
            _log.info("%s notes of %s were brought into the database.", len(found), name)
        await asyncio.to_thread(_forget, folder / name, list(found.values()))


def _kept_in(folder: Path) -> dict[str, tuple[Path, bytes]]:
    """The files of an owner's notes with what they say, by their keys."""
    found: dict[str, tuple[Path, bytes]] = {}
    for file, _ in files_below(folder):
        key = file.relative_to(folder).as_posix()
        try:
            parts_of(key)
            found[key] = (file, file.read_bytes())
        except FileNotFoundError:  # another Parlour brought it in
            continue
        except (OSError, BadArgumentsError) as error:
            _log.warning("The note %r stays in its file: %s", key, error)
    return found


def _forget(folder: Path, stored: list[tuple[Path, bytes]]) -> None:
    """Delete files that say what is stored, and folders in which nothing is left."""
    with suppress(OSError):  # they are brought in again at the next start, which changes nothing
        for file, data in stored:
            if file.is_file() and file.read_bytes() == data:
                file.unlink()
    for below, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(below).rmdir()
