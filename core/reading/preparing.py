"""Which documents can be searched by their words already, but not yet by their meaning, and how far that has come."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from core.rag.library import Library

_LOG = logging.getLogger(__name__)

_APART = 1.0  # seconds between two looks at how far it has come
_AT_ONCE = 16  # owners whose indices stay open for it; the others wait their turn

Made: TypeAlias = tuple[int, int]
"""Passages that search by meaning knows, and all of them; (0, 0) before anything is known."""


class Preparing:
    """Watches vectors being made, owner by owner, and keeps the index open meanwhile. It holds no thread to wait.

    Args:
        index: Opens an owner's index, for an `async with` block.
        changed: Called with an owner when one of the documents is prepared.
        at_once: Owners whose vectors are made at the same time.
    """

    def __init__(
        self,
        index: Callable[[str], AbstractAsyncContextManager[Library]],
        changed: Callable[[str], None],
        *,
        at_once: int = _AT_ONCE,
    ) -> None:
        self._index = index
        self._changed = changed
        self._waiting: dict[str, dict[str, str]] = {}
        self._made: dict[str, Made] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._lanes = asyncio.Semaphore(at_once)
        self._is_closed = False

    def watch(self, owner: str, document_id: str, library_id: str) -> None:
        """A document was read: note it until its vectors are made."""
        if self._is_closed:  # a library may be opened to its end while all is closed
            return
        self._waiting.setdefault(owner, {})[document_id] = library_id
        if owner not in self._tasks:
            task = asyncio.create_task(self._wait(owner), name="vectors")
            task.add_done_callback(lambda ended: self._over(owner, ended))
            self._tasks[owner] = task

    async def resume(self, owner: str, library: Library, documents: Mapping[str, str]) -> None:
        """An owner's library was opened: note those documents whose vectors an earlier process did not finish.

        Args:
            library: Says which.
            documents: Their ids in it, by their own.

        Raises:
            StorageError: The library cannot be read.
        """
        come = await asyncio.to_thread(library.retriever.vector_progress, set(documents.values()))
        behind = {library_id: made for library_id, made in come.items() if made[0] < made[1]}
        if not behind:
            return
        self._made.update(behind)
        for document_id, library_id in documents.items():
            if library_id in behind:
                self.watch(owner, document_id, library_id)
        self._changed(owner)

    async def go_on(self, owners: Sequence[str]) -> None:
        """Let libraries go on with the vectors that an earlier process did not finish, one after another.

        Args:
            owners: Whose, in this order; a library that cannot be opened is passed over. Opening one calls `resume`.
        """
        for owner in owners:
            try:
                async with self._index(owner):
                    pass
            except StorageError as error:
                _LOG.warning("A library is not looked into for vectors that are missing: %s", error)
            if owner in self._tasks:
                await asyncio.wait({self._tasks[owner]})

    def of(self, owner: str) -> Mapping[str, Made]:
        """The owner's documents that wait, by their ids, each with how far it is."""
        return {one: self._made.get(library_id, (0, 0)) for one, library_id in self._waiting.get(owner, {}).items()}

    async def aclose(self) -> None:
        """Stop watching, for good."""
        self._is_closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _wait(self, owner: str) -> None:
        async with self._lanes:
            while self._waiting.get(owner):  # once more where its index was closed and opened anew meanwhile
                async with self._index(owner) as library:
                    await self._followed(owner, library)
        del self._tasks[owner], self._waiting[owner]

    async def _followed(self, owner: str, library: Library) -> None:
        """Note how far it has come, until nobody waits any more or the library is closed."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        leave = library.retriever.on_vector_progress(lambda: _heard(loop, news))
        try:
            while (waiting := dict(self._waiting[owner])) and library.is_intact():
                news.clear()  # before the look: what comes during it is looked at once more
                if library.retriever.vectors_idle():  # all are made, or they failed: nobody makes them any more
                    self._prepared(owner, [one for one in waiting if one in self._waiting[owner]])
                    continue
                come = await asyncio.to_thread(library.retriever.vector_progress, set(waiting.values()))
                self._made.update(come)
                whole = {library_id for library_id, (done, total) in come.items() if done >= total}
                self._prepared(owner, [one for one, library_id in waiting.items() if library_id in whole])
                await _next(library, news)
        finally:
            leave()

    def _prepared(self, owner: str, documents: Collection[str]) -> None:
        """These wait no longer."""
        still = self._waiting[owner]
        for library_id in {still.pop(one) for one in documents if one in still}:
            self._made.pop(library_id, None)
        if documents:
            self._changed(owner)

    def _over(self, owner: str, ended: asyncio.Task[None]) -> None:
        if self._tasks.get(owner) is not ended:  # it came to its own end
            return
        if not ended.cancelled():
            _LOG.error("Nobody can say when the vectors are made.", exc_info=ended.exception())
        del self._tasks[owner]
        self._prepared(owner, list(self._waiting[owner]))
        del self._waiting[owner]


async def _next(library: Library, news: asyncio.Event) -> None:
    """Wait for news: the end is told at once, else there is a look a second at most, however small the batches are."""
    clock = asyncio.get_running_loop().time
    due = clock() + _APART
    await news.wait()
    while not library.retriever.vectors_idle() and (rest := due - clock()) > 0:
        news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(rest):
                await news.wait()


def _heard(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    """Called from another thread."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(news.set)
