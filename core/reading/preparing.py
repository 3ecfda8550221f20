"""Which documents can be searched by their words already, but not yet by their meaning, and how far that has come."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from core.rag.grown.makers import HeldUp
    from core.rag.library import Library

_LOG = logging.getLogger(__name__)

_APART = 1.0  # seconds between two looks at how far it has come
_AT_ONCE = 16  # owners whose indices stay open for it; the others wait their turn

_SHOWN = 60.0  # seconds for which it is looked whether more waits of an owner whose documents were shown

_AGAIN = 15.0  # seconds until what failed is tried again, twice as long each time
_LONGEST = 300.0

Made: TypeAlias = tuple[int, int]
"""Passages that search by meaning knows, and all of them; (0, 0) before anything is known."""


@dataclass(slots=True)
class _Watched:
    """The documents of an owner that wait, by their ids in the library.

    Args:
        again: Set when what was held up is to be tried again.
        rests: Set while it is held up, and at the end.
        held_up: Why nobody makes them.
        tries: How often they were held up since some were made.
        last: How far they were when they were held up.
        made: How far they are, by their ids in the library: of this owner alone, as others may have the same text.
    """

    documents: dict[str, str] = field(default_factory=dict[str, str])
    made: dict[str, Made] = field(default_factory=dict[str, Made])
    again: asyncio.Event = field(default_factory=asyncio.Event)
    rests: asyncio.Event = field(default_factory=asyncio.Event)
    held_up: HeldUp = ""
    tries: int = 0
    last: Mapping[str, Made] = field(default_factory=dict[str, Made])
    task: asyncio.Task[None] | None = None


class Preparing:
    """Watches vectors being made, owner by owner, and keeps the index open meanwhile. It holds no thread to wait.

    What could not be made is tried again after a while, sooner where its owner asks for it.

    Args:
        index: Opens an owner's index, for an `async with` block.
        changed: Called with an owner when one of the documents is prepared, or held up.
        at_once: Owners whose vectors are made at the same time.
        is_told: Whether it is told by `stand` what holds up vectors, and when to look again: they are made by some
            process of several.
    """

    def __init__(
        self,
        index: Callable[[str], AbstractAsyncContextManager[Library]],
        changed: Callable[[str], None],
        *,
        at_once: int = _AT_ONCE,
        is_told: bool = False,
    ) -> None:
        self._index = index
        self._changed = changed
        self._is_told = is_told
        self._watched: dict[str, _Watched] = {}
        self._shown: dict[str, float] = {}
        self._lanes = asyncio.Semaphore(at_once)
        self._is_closed = False

    def watch(self, owner: str, document_id: str, library_id: str) -> None:
        """A document was read: note it until its vectors are made."""
        if self._is_closed:  # a library may be opened to its end while all is closed
            return
        mine = self._watched.setdefault(owner, _Watched())
        if document_id not in mine.documents or mine.rests.is_set():
            mine.again.set()
        mine.documents[document_id] = library_id
        if mine.task is None:
            mine.task = asyncio.create_task(self._wait(owner, mine), name="vectors")
            mine.task.add_done_callback(lambda ended: self._over(owner, mine, ended))

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
        for document_id, library_id in documents.items():
            if library_id in behind:
                self.watch(owner, document_id, library_id)
        if owner in self._watched:
            mine = self._watched[owner]
            mine.made = behind | mine.made  # what was seen since is newer
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
            if owner in self._watched:
                await self._watched[owner].rests.wait()

    def of(self, owner: str) -> Mapping[str, Made]:
        """The owner's documents that wait, by their ids, each with how far it is."""
        mine = self._watched.get(owner)
        if self._is_told:
            self._shown[owner] = time.monotonic()
        if mine is None:
            return {}
        return {one: mine.made.get(library_id, (0, 0)) for one, library_id in mine.documents.items()}

    def owners(self) -> list[str]:
        """Those whose documents wait."""
        return list(self._watched)

    def shown(self) -> list[str]:
        """Those whose documents were shown just now, and of whom none is known to wait: others may have read some."""
        now = time.monotonic()
        self._shown = {one: at for one, at in self._shown.items() if now - at < _SHOWN}
        return [one for one in self._shown if one not in self._watched]

    def held_up(self, owner: str) -> HeldUp:
        """Why nobody makes the vectors of an owner's documents that wait; "" where somebody does."""
        mine = self._watched.get(owner)
        return mine.held_up if mine is not None else ""

    def stand(self, standing: Mapping[str, HeldUp]) -> None:
        """Hear of some owners what holds up their vectors: "" where nothing does, any more."""
        for owner, why in standing.items():
            mine = self._watched.get(owner)
            if mine is None:
                continue
            self._hold_up(owner, mine, why)
            if not why and mine.rests.is_set():
                mine.again.set()

    def try_again(self, owner: str) -> None:
        """Make what is held up, now."""
        mine = self._watched.get(owner)
        if mine is not None:
            self._hold_up(owner, mine, "")
            mine.tries = 0
            mine.again.set()

    async def aclose(self) -> None:
        """Stop watching, for good."""
        self._is_closed = True
        tasks = [mine.task for mine in self._watched.values() if mine.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _wait(self, owner: str, mine: _Watched) -> None:
        while mine.documents:  # once more where its index was closed and opened anew meanwhile, or it was held up
            mine.again.clear()
            was_held_up = mine.rests.is_set()
            mine.rests.clear()  # before it is opened: that tells what is missing in it
            async with self._lanes, self._index(owner) as library:
                if was_held_up:
                    library.retriever.changed()
                is_held_up = await self._followed(owner, mine, library)
            if is_held_up:
                await self._rest(owner, mine)
        del self._watched[owner]

    async def _rest(self, owner: str, mine: _Watched) -> None:
        """Wait until it is tried again."""
        mine.rests.set()
        if self._is_told:
            await mine.again.wait()
            return
        self._hold_up(owner, mine, "failed")
        seconds = min(_AGAIN * 2.0**mine.tries, _LONGEST)
        mine.tries += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await mine.again.wait()
        self._hold_up(owner, mine, "")

    def _hold_up(self, owner: str, mine: _Watched, why: HeldUp) -> None:
        if mine.held_up != why:
            mine.held_up = why
            self._changed(owner)

    async def _followed(self, owner: str, mine: _Watched, library: Library) -> bool:
        """Note how far it has come, until nobody waits any more or the library is closed; whether it is held up."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        leave = library.retriever.on_vector_progress(lambda: _heard(loop, news))
        try:
            while (waiting := dict(mine.documents)) and library.is_intact():
                news.clear()  # before the look: what comes during it is looked at once more
                is_idle = library.retriever.vectors_idle()  # all are made, or they failed: nobody makes them any more
                if is_idle and not library.is_intact():
                    break
                come = await asyncio.to_thread(library.retriever.vector_progress, set(waiting.values()))
                mine.made.update(come)
                behind = {library_id for library_id, (done, total) in come.items() if done < total}
                known = waiting.values() if is_idle else come.keys()
                self._prepared(
                    owner, mine, {one: of for one, of in waiting.items() if of in known and of not in behind}
                )
                if is_idle and behind:
                    if mine.last != come:
                        mine.last, mine.tries = come, 0
                    return True
                if not is_idle:
                    await _next(library, news)
        finally:
            leave()
        return False

    def _prepared(self, owner: str, mine: _Watched, documents: Mapping[str, str]) -> None:
        """These wait no longer, but those that were read anew meanwhile: they have another text."""
        for one, library_id in documents.items():
            if mine.documents.get(one) == library_id:
                del mine.documents[one]
        waiting = set(mine.documents.values())
        mine.made = {of: made for of, made in mine.made.items() if of in waiting}
        if documents:
            self._changed(owner)

    def _over(self, owner: str, mine: _Watched, ended: asyncio.Task[None]) -> None:
        mine.rests.set()
        if self._watched.get(owner) is not mine:  # it came to its own end
            return
        if not ended.cancelled():
            _LOG.error("Nobody can say when the vectors are made.", exc_info=ended.exception())
        del self._watched[owner]
        self._prepared(owner, mine, dict(mine.documents))


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
