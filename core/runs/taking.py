"""Takes up what waits for a process, replies or documents: fairly by owner, and no more at once than fit."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from random import random, sample
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from core.errors import StorageError
from core.limits import LONGEST_QUEUE, queue_full
from core.observing import context_now, is_traced
from core.runs.log import LoggedEvent, TracedWithin

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from core.runs.lease import Sharing
    from core.runs.log import AskedFor, RunEvent
    from core.storage.base import Lease
    from core.storage.database import Database

_LOG = logging.getLogger(__name__)
_EVERY: Final = 1.0
"""Seconds between two looks, where nobody says that there is something."""
_SPREAD: Final = 0.01
"""Seconds, about, for which who has most to do lets others go first."""
_AT_ONCE: Final = 4
"""What is taken up in one go: others want some, too."""


class Owned(Protocol):
    """What waits: a run, or a document."""

    @property
    def owner_id(self) -> str:
        """Whose it is."""
        ...


Waits = TypeVar("Waits", bound=Owned)


class Taking(Generic[Waits]):
    """Looks for what waits for a process, from when it begins.

    Args:
        queued: What waits, in its order, and how many of each owner are being done.
        sharing: How many may be done at once.
        busy: How many are done here.
        take: Takes one up.

    Attributes:
        woken: Set when there may be one, or room for one.
    """

    def __init__(
        self,
        queued: Callable[[], Awaitable[tuple[Sequence[tuple[Waits, Lease]], Mapping[str, int]]]],
        sharing: Sharing,
        busy: Callable[[], int],
        take: Callable[[Waits, Lease], Awaitable[None]],
    ) -> None:
        self._queued = queued
        self._sharing = sharing
        self._busy = busy
        self._take = take
        self.woken = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Look from now on."""
        self._tasks.append(asyncio.create_task(self._look_on(), name="take up what waits"))

    def listen(self, database: Database, heard: Callable[[str], None]) -> None:
        """Hear from now on what other processes say.

        Args:
            heard: Called with each notice; of what waits here is told as well.
        """
        self._tasks.append(asyncio.create_task(self._listen(database, heard), name="hear of others"))

    async def aclose(self) -> None:
        """Take up no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def look(self) -> int:
        """Take up what may be; how many there were. Raises StorageError."""
        room = min(self._sharing.most - self._busy(), _AT_ONCE)
        if room <= 0:
            return 0
        queued, doing = await self._queued()
        taken = chosen(queued, doing, room, self._sharing.each)
        await asyncio.gather(*(self._take(*one) for one in sample(taken, len(taken))))
        return len(taken)

    async def _look_on(self) -> None:
        while True:
            self.woken.clear()
            try:
                if await self.look():
                    continue
            except StorageError as error:
                _LOG.info("It is not known what waits: %s", error)
            except Exception:  # noqa: BLE001 - logged below, and the next look may do better
                _LOG.exception("What waits could not be taken up; this is tried again.")
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY):
                    await self.woken.wait()
                # All hear of it at the same moment: who has less to do is a little quicker.
                await asyncio.sleep(_SPREAD * (random() + self._busy() / self._sharing.most))  # noqa: S311 - no secret

    async def _listen(self, database: Database, heard: Callable[[str], None]) -> None:
        async for said in database.notices():
            if said == "queued":
                self.woken.set()
            heard(said)


def begun_with(asked: AskedFor, logged: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """How a run was asked for, within which trace, and what it begins with besides."""
    context = context_now() if is_traced() else ""
    first: list[RunEvent] = [asked, *([TracedWithin(context)] if context else [])]
    every = [*(LoggedEvent(0, 0.0, one) for one in first), *logged]
    return [replace(one, seq=seq) for seq, one in enumerate(every, start=1)]


def check_queue(waiting: int, sharing: Sharing | None) -> None:
    """Nothing, where an owner of whom so many replies are being written, or wait, may ask for one more.

    Raises:
        TooManyRequestsError: Too many wait already.
    """
    if sharing is not None and waiting >= (sharing.each or 0) + LONGEST_QUEUE:
        raise queue_full(waiting)


def chosen(
    queued: Sequence[tuple[Waits, Lease]], doing: Mapping[str, int], room: int, each: int | None
) -> list[tuple[Waits, Lease]]:
    """What is taken up: always one of an owner who has the fewest, of these the one that comes first.

    Args:
        queued: What waits, in its order.
        doing: How many are being done, by owner.
        room: The most that are taken up.
        each: The most of one owner; no limit if left out.
    """
    counts, left = dict(doing), list(queued)
    taken: list[tuple[Waits, Lease]] = []
    while left and len(taken) < room:
        following = min(left, key=lambda one: counts.get(one[0].owner_id, 0))
        owner = following[0].owner_id
        if each is not None and counts.get(owner, 0) >= each:
            break
        counts[owner] = counts.get(owner, 0) + 1
        taken.append(following)
        left.remove(following)
    return taken
