"""Which documents can be searched by their words already, but not yet by their meaning, and how far that has come."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeAlias

from core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from core.rag.library import Library

_LOG = logging.getLogger(__name__)

_LOOK = 1.0  # seconds

Made: TypeAlias = tuple[int, int]
"""Passages that search by meaning knows, and all of them; (0, 0) before anything is known."""


class Preparing:
    """Watches vectors being made, owner by owner.

    Args:
        changed: Called with an owner when one of the documents is prepared.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._waiting: dict[str, dict[str, str]] = {}
        self._made: dict[str, Made] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_closed = False

    def watch(self, owner: str, document_id: str, library: Library, library_id: str) -> None:
        """A document was read: note it until its vectors are made."""
        if self._is_closed:  # a library may be opened to its end while all is closed
            return
        self._waiting.setdefault(owner, {})[document_id] = library_id
        if owner not in self._tasks:
            task = asyncio.create_task(self._wait(owner, library), name="vectors")
            task.add_done_callback(lambda ended: self._over(owner, ended))
            self._tasks[owner] = task

    async def resume(self, owner: str, library: Library, documents: Mapping[str, str]) -> None:
        """An owner's library was opened: note those documents whose vectors an earlier process did not finish.

        Args:
            owner: Whose they are.
            library: Goes on making the vectors.
            documents: Their ids in it, by their own.

        Raises:
            StorageError: The library cannot be read.
        """
        come = await asyncio.to_thread(library.vectors_made, set(documents.values()))
        behind = {library_id: made for library_id, made in come.items() if made[0] < made[1]}
        if not behind:
            return
        self._made.update(behind)
        for document_id, library_id in documents.items():
            if library_id in behind:
                self.watch(owner, document_id, library, library_id)
        self._changed(owner)

    async def go_on(self, owners: Sequence[str], library: Callable[[str], Awaitable[Library]]) -> None:
        """Let libraries go on with the vectors that an earlier process did not finish, one after another.

        Args:
            owners: Whose, in this order.
            library: Opens an owner's, which calls `resume`; one that cannot be opened is passed over.
        """
        for owner in owners:
            try:
                await library(owner)
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

    async def _wait(self, owner: str, library: Library) -> None:
        clock = asyncio.get_running_loop().time
        while waiting := dict(self._waiting.get(owner, {})):  # what comes during a look is not what it was asked about
            began = clock()
            made = await asyncio.to_thread(library.wait_for_vectors, _LOOK)
            if made or clock() - began < _LOOK / 2:  # nobody makes them any more: they failed, or the house closes
                self._prepared(owner, waiting)
                continue
            come = await asyncio.to_thread(library.vectors_made, set(waiting.values()))
            self._made.update(come)
            whole = {library_id for library_id, (done, total) in come.items() if done >= total}
            self._prepared(owner, [one for one, library_id in waiting.items() if library_id in whole])
        del self._tasks[owner], self._waiting[owner]

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
