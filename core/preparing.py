"""Which documents can be searched by their words already, but not yet by their meaning."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.rag.library import Library

_LOG = logging.getLogger(__name__)

_LOOK = 1.0  # seconds


class Preparing:
    """Watches vectors being made, owner by owner.

    Args:
        changed: Called with an owner when all is prepared.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._waiting: dict[str, set[str]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def watch(self, owner: str, document_id: str, library: Library) -> None:
        """A document was read: note it until its vectors are made."""
        self._waiting.setdefault(owner, set()).add(document_id)
        if owner not in self._tasks:
            task = asyncio.create_task(self._wait(owner, library), name="vectors")
            task.add_done_callback(lambda ended: self._over(owner, ended))
            self._tasks[owner] = task

    def of(self, owner: str) -> frozenset[str]:
        """The owner's documents that wait, by their ids."""
        return frozenset(self._waiting.get(owner, ()))

    async def aclose(self) -> None:
        """Stop watching."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _wait(self, owner: str, library: Library) -> None:
        clock = asyncio.get_running_loop().time
        while waiting := self.of(owner):  # what comes during a look is not what it was asked about
            began = clock()
            made = await asyncio.to_thread(library.wait_for_vectors, _LOOK)
            if made or clock() - began < _LOOK / 2:  # nobody makes them any more: they failed, or the house closes
                self._waiting[owner] -= waiting
                self._changed(owner)
        del self._tasks[owner], self._waiting[owner]

    def _over(self, owner: str, ended: asyncio.Task[None]) -> None:
        if self._tasks.get(owner) is not ended:  # it came to its own end
            return
        if not ended.cancelled():
            _LOG.error("Nobody can say when the vectors are made.", exc_info=ended.exception())
        del self._tasks[owner], self._waiting[owner]
        self._changed(owner)
