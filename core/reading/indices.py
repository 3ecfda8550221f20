"""The index of each owner's documents: opened where somebody needs it, shared, and closed again when nobody does."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

from core.bridge.pool import Pool
from core.errors import StorageError
from core.storage.base import folder_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path
    from types import TracebackType

    from core.rag.library import Library
    from core.settings import Settings

_LOG = logging.getLogger(__name__)

_IDLE = 300.0  # seconds: to open one again costs milliseconds, and reading the vectors of a large one some seconds
_MOST = 32  # open though nobody uses them; each has about three file descriptors and two threads
_AT_ONCE = 8  # that are being opened or closed: either may wait for a disk, or for a model to end a batch


class Indices:
    """Owners' indices.

    Args:
        folder: Holds a folder for each owner.
        settings: How documents are read and searched.
        opened: Called with an owner and the index each time one was opened, before anybody uses it.
        idle: Seconds that one stays open unused.
        most: How many stay open unused.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        opened: Callable[[str, Library], Awaitable[None]],
        *,
        idle: float = _IDLE,
        most: int = _MOST,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._opened = opened
        # Threads of their own: whoever waits for one of these must not hold up what else runs in threads.
        self._threads = ThreadPoolExecutor(_AT_ONCE, "library-opener")
        self._pool: Pool[Library] = Pool(
            self._made, self._ended, intact=lambda library: library.is_intact(), idle=idle, most=most
        )
        self._is_closed = False

    def __len__(self) -> int:
        """How many are open."""
        return len(self._pool)

    @asynccontextmanager
    async def use(self, owner: str) -> AsyncGenerator[Library]:
        """The index of an owner's documents, which stays open to the end of the block.

        One whose file was deleted, emptied or replaced since it was opened is opened anew, and restored.

        Raises:
            StorageError: Its folder cannot be used, or all is being closed (key `library_closed`).
        """
        if self._is_closed:
            raise StorageError("The library is closed.", key="library_closed")
        async with self._pool.use(owner) as library:
            yield library

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all of them."""
        self._is_closed = True
        await self._pool.aclose()
        self._threads.shutdown(wait=False)

    async def _made(self, owner: str) -> Library:
        loop = asyncio.get_running_loop()
        library = await loop.run_in_executor(self._threads, _open, self._folder / folder_name(owner), self._settings)
        try:
            await self._opened(owner, library)
        except StorageError as error:
            _LOG.warning("It is not known whether an index is complete: %s", error)
        except BaseException:
            await self._ended(library)
            raise
        return library

    async def _ended(self, library: Library) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, library.close)


def _open(folder: Path, settings: Settings) -> Library:
    from core.rag.library import Library  # brings the document readers with it

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Library.open(folder, {"retrieval_type": settings.retrieval, "pdf_reader": settings.pdf_reader})
