"""Takes up the replies that were asked for where none are written: fairly by owner, and no more at once than fit."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from random import random, sample
from typing import TYPE_CHECKING, Final

from core.errors import StorageError
from core.limits import LONGEST_QUEUE, queue_full
from core.runs.log import LoggedEvent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from core.runs.lease import Sharing
    from core.runs.log import AskedFor
    from core.storage.base import Lease, RunRecord
    from core.storage.stores import Stores

_LOG = logging.getLogger(__name__)
_EVERY: Final = 1.0
"""Seconds between two looks, where nobody says that there is something."""
_SPREAD: Final = 0.01
"""Seconds, about, for which who has most to do lets others go first."""
_AT_ONCE: Final = 4
"""Replies that are taken up in one go: others want some, too."""


class Taking:
    """Looks for replies that wait for a process, from when it begins.

    Args:
        stores: Where they wait.
        sharing: How many may be written at once.
        live: Those that are written here.
        take: Takes one up.

    Attributes:
        woken: Set when there may be one, or room for one.
    """

    def __init__(
        self,
        stores: Stores,
        sharing: Sharing,
        live: Collection[object],
        take: Callable[[RunRecord, Lease], Awaitable[None]],
    ) -> None:
        self._news = stores.run_news
        self._database = stores.database
        self._sharing = sharing
        self._live = live
        self._take = take
        self.woken = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, heard: Callable[[], None]) -> None:
        """Look from now on.

        Args:
            heard: Called each time that something was asked of a run, which may wait for that.
        """
        self._tasks.append(asyncio.create_task(self._look_on(), name="take up replies"))
        self._tasks.append(asyncio.create_task(self._listen(heard), name="hear of replies"))

    async def aclose(self) -> None:
        """Take up no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def look(self) -> int:
        """Take up what may be; how many there were. Raises StorageError."""
        room = min(self._sharing.most - len(self._live), _AT_ONCE)
        if room <= 0:
            return 0
        queued, writing = await self._news.queued()
        taken = chosen(queued, writing, room, self._sharing.each)
        await asyncio.gather(*(self._take(*one) for one in sample(taken, len(taken))))
        return len(taken)

    async def _look_on(self) -> None:
        while True:
            self.woken.clear()
            try:
                if await self.look():
                    continue
            except StorageError as error:
                _LOG.info("It is not known which replies wait: %s", error)
            except Exception:  # noqa: BLE001 - logged below, and the next look may do better
                _LOG.exception("Replies that wait could not be taken up; this is tried again.")
            with suppress(TimeoutError):
                await asyncio.wait_for(self.woken.wait(), _EVERY)
                # All hear of it at the same moment: who has less to do is a little quicker.
                await asyncio.sleep(_SPREAD * (random() + len(self._live) / self._sharing.most))  # noqa: S311 - no secret

    async def _listen(self, heard: Callable[[], None]) -> None:
        async for said in self._database.notices():
            if said == "asked":
                heard()
            else:
                self.woken.set()


def begun_with(asked: AskedFor, logged: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """How a run was asked for, and what it begins with besides."""
    return [replace(one, seq=seq) for seq, one in enumerate([LoggedEvent(0, 0.0, asked), *logged], start=1)]


def check_queue(waiting: int, sharing: Sharing | None) -> None:
    """Nothing, where an owner of whom so many replies are being written, or wait, may ask for one more.

    Raises:
        TooManyRequestsError: Too many wait already.
    """
    if sharing is not None and waiting >= (sharing.each or 0) + LONGEST_QUEUE:
        raise queue_full(waiting)


def chosen(
    queued: Sequence[tuple[RunRecord, Lease]], writing: Mapping[str, int], room: int, each: int | None
) -> list[tuple[RunRecord, Lease]]:
    """Which replies are taken up: always one of an owner who has the fewest, of these the one that waited longest.

    Args:
        queued: Those that wait, the oldest first.
        writing: How many are being written, by owner.
        room: The most that are taken up.
        each: The most of one owner; no limit if left out.
    """
    counts, left = dict(writing), list(queued)
    taken: list[tuple[RunRecord, Lease]] = []
    while left and len(taken) < room:
        following = min(left, key=lambda one: counts.get(one[0].owner_id, 0))
        owner = following[0].owner_id
        if each is not None and counts.get(owner, 0) >= each:
            break
        counts[owner] = counts.get(owner, 0) + 1
        taken.append(following)
        left.remove(following)
    return taken
