"""The pool of workspaces: each is opened where somebody needs it, shared, and closed when nobody has for a while."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from core.bridge.pool import Pool
from core.errors import NotFoundError, StorageError
from core.reading.indexing import index_config
from core.storage.base import folder_name
from core.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
    from pathlib import Path

    from core.rag.grown.shelf import PgShelves
    from core.rag.library import Library
    from core.rag.originals import Fetch
    from core.rag.shelf import Shelf
    from core.settings import Settings
    from core.storage.files import FileStore
    from core.workspace.services import Services

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

_FETCHING = 60.0  # seconds
_IDLE = 300.0  # seconds: to open one again costs milliseconds, and reading the vectors of a large index some seconds
_MOST = 32  # open though nobody uses them; an index has about three file descriptors and two threads
_AT_ONCE = 8  # indices that are being opened or closed: either may wait for a disk, or for a model to end a batch


class Workspaces:
    """Owners' workspaces, by one rule of eviction.

    What nobody uses stays open for `idle` seconds, and at most `most` of them, the least recently used going first;
    one in which nothing was opened is not kept at all.

    Args:
        services: What each of them works with.
        folder: Holds a folder for the index of each owner.
        indexed: Called with a workspace and its index each time one was opened, before anybody uses it.
        shelves: Where the passages of indices are, if that is not the folder; closed with the workspaces.
        idle: Seconds that a workspace stays open unused.
        most: How many stay open unused.
    """

    def __init__(
        self,
        services: Services,
        folder: Path,
        indexed: Callable[[Workspace, Library], Awaitable[None]],
        *,
        shelves: PgShelves | None = None,
        idle: float = _IDLE,
        most: int = _MOST,
    ) -> None:
        self._folder = folder
        self._shelves = shelves
        self._services = services
        self._roles = roles = services.stores.people.roles
        self._indexed = indexed
        # Threads of their own: whoever waits for one of these must not hold up what else runs in threads.
        self._threads = ThreadPoolExecutor(_AT_ONCE, "library-opener")
        self._pool: Pool[Workspace] = Pool(
            self._made,
            Workspace.aclose,
            intact=lambda workspace: workspace.is_intact and workspace.role == roles.get(workspace.owner),
            kept=lambda workspace: workspace.is_open,
            idle=idle,
            most=most,
        )
        self._is_closed = False

    def __len__(self) -> int:
        """How many are open."""
        return len(self._pool)

    @asynccontextmanager
    async def open(self, owner: str) -> AsyncGenerator[Workspace]:
        """The workspace of an owner, which stays open to the end of the block.

        One whose index was deleted, emptied or replaced on disk is opened anew, and restored; so is one whose owner has
        another role by now.

        Raises:
            StorageError: All is being closed (key `library_closed`).
        """
        if self._is_closed:
            raise StorageError("The library is closed.", key="library_closed")
        async with self._pool.use(owner) as workspace:
            yield workspace

    @asynccontextmanager
    async def index(self, owner: str) -> AsyncGenerator[Library]:
        """The index of an owner's documents, for what works beneath workspaces. Raises as `Workspace.index`."""
        async with self.open(owner) as workspace:
            yield await workspace.index()

    async def forget(self, owner: str) -> None:
        """Close what is open of somebody who is gone; delete passages that are in no folder. Raises StorageError.

        What is closed after its folder was deleted would write into it anew.
        """
        await self._pool.drop(owner)
        if self._shelves is not None:
            await asyncio.to_thread(self._shelves.forget, owner)

    async def aclose(self) -> None:
        """Close all of them."""
        self._is_closed = True
        await self._pool.aclose()
        if self._shelves is not None:
            await asyncio.to_thread(self._shelves.close)
        self._threads.shutdown(wait=False)

    async def _made(self, owner: str) -> Workspace:
        return Workspace(
            self._services.of(owner),
            open_index=self._open_index,
            close_index=self._close_index,
            role=self._roles.get(owner),
        )

    async def _open_index(self, workspace: Workspace) -> Library:
        loop = asyncio.get_running_loop()
        library = await loop.run_in_executor(
            self._threads,
            _open,
            self._folder / folder_name(workspace.owner),
            self._services.settings,
            partial(self._shelves.of, workspace.owner) if self._shelves is not None else None,
            fetching(workspace.files, loop) if self._shelves is not None else None,
        )
        try:
            await self._indexed(workspace, library)
        except StorageError as error:
            _LOG.warning("It is not known whether an index is complete: %s", error)
        except BaseException:
            await self._close_index(library)
            raise
        return library

    async def _close_index(self, library: Library) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, library.close)


def fetching(files: FileStore, loop: asyncio.AbstractEventLoop) -> Fetch:
    """What puts the bytes of an owner's file under a path, for threads: where its document was added elsewhere.

    In the thread of the loop, which would wait for itself, it can fetch nothing.
    """
    thread = threading.get_ident()

    def awaited(work: Coroutine[Any, Any, T]) -> T:
        begun = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return begun.result(_FETCHING)
        except TimeoutError:
            begun.cancel()  # nobody would use or close what it opens later on
            raise

    async def entered(digest: str, held: AsyncExitStack) -> Path | None:
        record = await files.with_content(digest)
        return None if record is None else (await held.enter_async_context(files.local(record.id)))[1]

    def fetch(digest: str, target: Path) -> bool:
        if threading.get_ident() == thread:
            return False
        held = AsyncExitStack()
        try:
            path = awaited(entered(digest, held))
            if path is not None:
                shutil.copyfile(path, target)
            return path is not None
        except NotFoundError:
            return False
        except TimeoutError as error:
            raise StorageError("A file could not be fetched in time.", hint="Try again in a moment.") from error
        finally:
            awaited(held.aclose())

    return fetch


def _open(folder: Path, settings: Settings, shelf: Callable[[], Shelf] | None, fetch: Fetch | None) -> Library:
    from core.rag.library import Library  # brings the document readers with it

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Library.open(folder, index_config(settings), shelf=shelf() if shelf is not None else None, fetch=fetch)
