"""The files that cells were given: by the hash of their bytes, for one conversation each, no longer than its kernel."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import time
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Generator, Iterable
    from pathlib import Path

    from core.tools.sandbox.wire import SentFile

_SPARED: Final = 120.0  # seconds in which a kernel that is to use them may begin


class WrongFileError(Exception):
    """Bytes are not those that were told."""


class GivenHere:
    """A folder with one for each conversation, below it its files.

    Args:
        folder: Where they are; nothing that runs here may see it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._used: dict[str, float] = {}
        self._busy: dict[str, int] = {}

    @contextmanager
    def used(self, key: str, digests: Collection[str]) -> Generator[None]:
        """Keep the files of a conversation to the end of the block, and behind it no others than these.

        Args:
            key: The conversation.
            digests: What its cell is to find. Files that others of its cells want, which still run, are kept too.
        """
        self._busy[key] = self._busy.get(key, 0) + 1
        try:
            yield
        finally:
            self._busy[key] -= 1
            if not self._busy[key]:
                del self._busy[key]
                self._leave(key, digests)
            self._used[key] = time.monotonic()

    def path(self, key: str, digest: str) -> Path:
        """Where a file is or will be."""
        return self._folder / key / digest

    def lacking(self, key: str, files: Iterable[SentFile]) -> list[str]:
        """The digests of those that are not here, each once."""
        return [one for one in dict.fromkeys(file.digest for file in files) if not self.path(key, one).is_file()]

    async def take(self, key: str, digest: str, pieces: AsyncIterator[bytes]) -> None:
        """Keep a file. Raises OSError, WrongFileError, and what `pieces` does."""
        path = self.path(key, digest)
        await asyncio.to_thread(path.parent.mkdir, mode=0o700, exist_ok=True)
        draft = path.with_name(f"{digest}-{secrets.token_hex(8)}")
        found = sha256()
        file: IO[bytes] = await asyncio.to_thread(draft.open, "wb")
        try:
            with file:
                async for piece in pieces:
                    found.update(piece)
                    await asyncio.to_thread(file.write, piece)
            if found.hexdigest() != digest:
                raise WrongFileError
            draft.rename(path)
        finally:
            draft.unlink(missing_ok=True)

    async def forget(self, key: str) -> None:
        """Delete the files of a conversation."""
        self._used.pop(key, None)
        await asyncio.to_thread(shutil.rmtree, self._folder / key, ignore_errors=True)

    def _leave(self, key: str, digests: Collection[str]) -> None:
        """Delete what is not among these, at once: whoever comes next sees what is here."""
        with suppress(OSError):
            for path in list((self._folder / key).iterdir()):
                if path.name not in digests:
                    path.unlink(missing_ok=True)

    async def tidy(self, alive: Collection[str]) -> None:
        """Delete those of conversations that have no kernel any more.

        Args:
            alive: The conversations that have one.
        """
        old = time.monotonic() - _SPARED
        there = await asyncio.to_thread(lambda: list(self._folder.iterdir()))
        names = {path.name for path in there}
        for key in [one for one, when in self._used.items() if when < old and one not in names]:
            del self._used[key]
        for path in there:
            key = path.name
            if path.is_dir() and key not in alive and key not in self._busy and self._used.get(key, 0.0) < old:
                await self.forget(key)
