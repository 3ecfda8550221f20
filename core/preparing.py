"""Which documents can be searched by their words already, but not yet by their meaning."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.rag.library import Library

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
            task = asyncio.create_task(self._wait(library), name="vectors")
            task.add_done_callback(lambda _: self._over(owner))
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

    async def _wait(self, library: Library) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            made = await asyncio.to_thread(library.wait_for_vectors, _LOOK)
            if made or clock() - began < _LOOK / 2:  # nobody makes them any more: they failed, or the house closes
                return

    def _over(self, owner: str) -> None:
        self._tasks.pop(owner, None)
        self._waiting.pop(owner, None)
        self._changed(owner)
