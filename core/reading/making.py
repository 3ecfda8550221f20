"""Sees to it that the vectors of all libraries are made: one that waits for that is opened for as long as it takes."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from core.bridge.cancellation import run_to_end
from core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from contextlib import AbstractAsyncContextManager

    from core.rag.grown.making import HeldJob, VectorJobs
    from core.rag.library import Library
    from core.reading.preparing import Preparing

_LOG = logging.getLogger(__name__)
_EVERY: Final = 2.0
"""Seconds between two looks, where nobody says that there is something."""
_APART: Final = 1.0
"""Seconds between two looks at one that is made here."""
_LOOKED_INTO: Final = 10.0
"""Seconds between two looks into a library that lacks vectors, for documents that were read elsewhere."""


class MakingVectors:
    """Opens libraries that wait for vectors, so that these are made in them.

    Where this process makes none, it only says how that stands.

    Args:
        jobs: What waits.
        index: Opens an owner's index, for an `async with` block.
        preparing: Whose documents wait for vectors; it is told what holds them up.
        look_into: Finds out which documents of an owner wait, as `Preparing.resume` does.
    """

    def __init__(
        self,
        jobs: VectorJobs,
        index: Callable[[str], AbstractAsyncContextManager[Library]],
        preparing: Preparing,
        look_into: Callable[[str], Awaitable[None]],
    ) -> None:
        self._jobs, self._index = jobs, index
        self._preparing, self._look_into = preparing, look_into
        self._looked_into: dict[str, float] = {}
        self._has_begun = False
        self._woken = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._making: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Look from now on."""
        loop = asyncio.get_running_loop()
        self._jobs.room = lambda: _heard(loop, self._woken)
        self._looking = asyncio.create_task(self._look_on(), name="vectors that wait")

    async def aclose(self) -> None:
        """Begin nothing more, and let others go on with what is made here; a look that goes on is waited for."""
        await asyncio.to_thread(self._jobs.close)
        tasks = [*self._making, *([self._looking] if self._looking is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_on(self) -> None:
        while True:
            self._woken.clear()
            try:
                # Not ended in the middle: what was taken would be nobody's until its lease is over.
                for held in await run_to_end(asyncio.to_thread(self._look)):
                    self._begin(self._make(held), "vectors of a library")
                    self._woken.set()  # there may be more
                await self._tell()
                await self._find()
            except StorageError as error:
                _LOG.info("It is not known which libraries lack vectors: %s", error)
            except Exception:  # noqa: BLE001 - logged below, and the next look may do better
                _LOG.exception("Vectors that wait could not be taken up; this is tried again.")
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY):
                    await self._woken.wait()

    def _look(self) -> list[HeldJob]:
        if not self._has_begun:
            self._jobs.begin()
            self._has_begun = True
        self._jobs.makers.look()
        return self._jobs.take_waiting() if self._jobs.makes else []

    async def _tell(self) -> None:
        """Say what holds up vectors that somebody waits for."""
        owners = self._preparing.owners()
        if owners:
            self._preparing.stand(await asyncio.to_thread(self._jobs.standing, owners))

    async def _find(self) -> None:
        """Find out what waits of those whose documents are shown here: another process may have read it."""
        shown = self._preparing.shown()
        now = time.monotonic()
        self._looked_into = {one: at for one, at in self._looked_into.items() if now - at < _LOOKED_INTO}
        for owner in await asyncio.to_thread(self._jobs.lacking, shown) if shown else ():
            if owner not in self._looked_into:
                self._looked_into[owner] = now
                self._begin(self._found(owner), "what waits for vectors")

    async def _found(self, owner: str) -> None:
        try:
            await self._look_into(owner)
        except StorageError as error:
            _LOG.info("It is not known which documents wait for vectors: %s", error)

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._making.add(task)
        task.add_done_callback(self._making.discard)

    async def _make(self, held: HeldJob) -> None:
        """Keep a library open until its vectors are made, or somebody else makes them."""
        try:
            async with AsyncExitStack() as opened:
                library = await opened.enter_async_context(self._index(held.owner))
                news, loop = asyncio.Event(), asyncio.get_running_loop()
                opened.callback(library.retriever.on_vector_progress(lambda: _heard(loop, news)))
                library.retriever.changed()
                while held.is_held and library.is_intact() and not library.retriever.vectors_idle():
                    news.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_APART):
                            await news.wait()
        except StorageError as error:
            _LOG.warning("A library cannot be opened for its vectors: %s", error)
        finally:
            if held.is_held and not held.is_begun:
                with suppress(StorageError):
                    await run_to_end(asyncio.to_thread(held.give_up, failed=True))


def _heard(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    """Called from another thread."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(news.set)
