"""Places for replies that all processes on one database give out together."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from core.errors import StorageError
from core.limits import LONGEST_QUEUE, Slots
from core.storage.base import new_id

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from core.limits import Slot
    from core.storage.places import Places

_LOG = logging.getLogger(__name__)
_SOONEST: Final = 0.05
_LATEST: Final = 0.5
"""Seconds between two looks for a place that is held elsewhere."""
_CLOSES_WITHIN: Final = 1.0


class SharedSlots:
    """Places of each key, which no more have at once than there are, whichever process they are in.

    Within this process they are given out in the order in which they were asked for; between processes, to whoever
    looks first. What a process held that is gone is free when its lease is over.

    Args:
        places: Where those of a key are held.
        limit: Places of each key at once.
        beat: Seconds between two renewals.
        queue: How many may wait for each key in this process.
    """

    def __init__(self, places: Callable[[str], Places], limit: int, *, beat: float, queue: int = LONGEST_QUEUE) -> None:
        self.places, self.limit = places, limit
        self._beat = beat
        self._here = Slots(limit, queue=queue)
        self._held: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._renewing: asyncio.Task[None] | None = None

    def take(self, key: str) -> Slot:
        """A place, or a place in the queue. Raises TooManyRequestsError."""
        return _SharedSlot(self, key, self._here.take(key))

    def hold(self, key: str, place: str) -> None:
        """Renew a place from now on."""
        self._held[place] = key
        if self._renewing is None or self._renewing.done():
            self._renewing = self._later(self._renew(), "renew places")

    def give_back(self, key: str, place: str) -> None:
        """Let others have a place."""
        self._held.pop(place, None)
        self._later(self._release(key, place), "give places back")

    async def aclose(self) -> None:
        """Give back what is held, and renew nothing any more; what cannot be given back soon ends with its lease."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait({self._renewing})
        for place, key in [*self._held.items()]:
            self.give_back(key, place)
        if self._tasks:
            await asyncio.wait({*self._tasks}, timeout=_CLOSES_WITHIN)

    def _later(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _renew(self) -> None:
        while self._held:
            await asyncio.sleep(self._beat)
            each: dict[str, list[str]] = defaultdict(list)
            for place, key in self._held.items():
                each[key].append(place)
            try:
                for key, places in each.items():
                    await self.places(key).renew(places)
                    for given_back in [one for one in places if one not in self._held]:
                        await self._release(key, given_back)  # it may have been so before it was renewed
            except StorageError as error:  # nobody else can take what cannot be written either
                _LOG.info("Places of replies could not be renewed: %s", error)

    async def _release(self, key: str, place: str) -> None:
        try:
            await self.places(key).release(place)
        except StorageError as error:  # it is free when its lease is over
            _LOG.info("A place of a reply could not be given back: %s", error)


class _SharedSlot:
    def __init__(self, every: SharedSlots, key: str, here: Slot) -> None:
        self._every, self._key, self._here = every, key, here
        self._place, self._is_run = new_id(), False
        self._granted = self._tried = self._over = False

    @property
    def granted(self) -> bool:
        return self._granted

    async def of_run(self, run_id: str) -> None:
        self._place, self._is_run = run_id, True
        if self._here.granted:
            await self._ask()

    async def wait(self) -> None:
        await self._here.wait()
        pause = _SOONEST
        while not self._granted and not await self._ask():
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LATEST)

    def release(self) -> None:
        if self._over:
            return
        self._over = True
        self._here.release()
        if self._tried and not self._is_run:
            self._every.give_back(self._key, self._place)

    async def _ask(self) -> bool:
        self._tried = True
        try:
            self._granted = await self._every.places(self._key).take(self._place, self._every.limit)
        except StorageError as error:
            _LOG.info("It is not known whether there is a place for a reply: %s", error)
        if self._granted and not self._is_run and not self._over:
            self._every.hold(self._key, self._place)
        return self._granted
