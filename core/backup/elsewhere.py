"""Files of a backup that lie in a store of another machine: named and read as if they lay in the data folder."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from core.storage.blobs import FILES, SHARES, check_key

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from pathlib import Path

    from core.storage.blobs import Blobs

T = TypeVar("T")
FOLDERS: Final = {FILES: "files", SHARES: "shares"}
"""What the folders of a data folder are called, by the kinds of what is in them."""


class Elsewhere:
    """What a store holds, for a thread that writes a backup.

    Args:
        blobs: The store.
        loop: The event loop that asks it, in another thread.
    """

    def __init__(self, blobs: Blobs, loop: asyncio.AbstractEventLoop) -> None:
        self._blobs = blobs
        self._loop = loop

    def names(self) -> dict[str, str]:
        """The keys of all files and snapshots, by their names in a data folder. Raises StorageError."""

        async def listed() -> dict[str, str]:
            keys = [blob.key async for blob in self._blobs.list("o/")]
            parts = [(key, check_key(key)) for key in keys]
            return {
                f"{FOLDERS[one['kind']]}/{one['owner']}/{one['name']}": key
                for key, one in parts
                if one["kind"] in FOLDERS
            }

        return self._asked(listed())

    @contextmanager
    def held(self, key: str) -> Generator[Path]:
        """A file of this machine with the bytes. Raises NotFoundError, StorageError."""
        local = self._blobs.local(key)
        path = self._asked(local.__aenter__())
        try:
            yield path
        finally:
            self._asked(local.__aexit__(None, None, None))

    def _asked(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
