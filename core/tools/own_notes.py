"""The notes that models keep for an owner across conversations, as the owner sees and changes them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from core.errors import NotFoundError
from core.storage.base import folder_name
from core.tools.key_files import KeyFiles, KeyNotExistsError, parts_of

if TYPE_CHECKING:
    from pathlib import Path

_MOST = 200
_LONGEST = 8000  # characters that are shown of one


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


class OwnNotes:
    """Notes of owners, each in a folder of their own: the one that their tool `storage` uses.

    Args:
        home: Where the folders are.
    """

    def __init__(self, home: Path) -> None:
        self._home = home

    def folder(self, owner: str) -> Path:
        """Where the owner's notes are."""
        return self._home / folder_name(owner)

    async def list(self, owner: str) -> list[Note]:
        """The owner's notes by their keys; of very many the first.

        Raises:
            ToolError: The folder cannot be read.
        """

        def read() -> list[Note]:
            found = islice(self._files(owner).scan("/"), _MOST)
            return [Note(key.strip("/"), text[:_LONGEST], len(text) <= _LONGEST) for key, text in found]

        return await asyncio.to_thread(read)

    async def change(self, owner: str, key: str, text: str) -> None:
        """Let a note say something else.

        Raises:
            BadArgumentsError: No note can have this key, or the text is too long.
            NotFoundError: There is no such note any more.
            ToolError: There is no room, or the folder cannot be written.
        """

        def write() -> None:
            files, whole = self._files(owner), "/".join(parts_of(key))
            try:
                files.get(whole)
            except KeyNotExistsError as error:
                raise NotFoundError("There is no such note any more.", kind="note") from error
            files.put(whole, text)

        await asyncio.to_thread(write)

    async def delete(self, owner: str, key: str) -> None:
        """Delete a note; one that is gone already is gone.

        Raises:
            BadArgumentsError: No note can have this key.
            ToolError: The folder cannot be written.
        """
        await asyncio.to_thread(self._files(owner).delete, key)

    def _files(self, owner: str) -> KeyFiles:
        return KeyFiles(self.folder(owner))
