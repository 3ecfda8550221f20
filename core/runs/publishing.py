"""Tells other processes what happens in the runs of this one, as it happens."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from core.runs.feed import Tidings

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.runs.feed import Feed
    from core.runs.run import Run


_LOG = logging.getLogger(__name__)
_SOONEST: Final = 0.066
_LATEST: Final = 0.25
_SHARE: Final = 4.0  # of the time, telling may take one in so many parts


class Publishing:
    """Hands what is new in all runs of a process to the feed, together, some fifteen times a second.

    Where that takes long it is done less often; what changes more than the text is told at once.

    Args:
        feed: Tells it.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._told: dict[Run, int] = {}
        self._new, self._urgent = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._pause = _SOONEST

    def begin(self, run: Run, told: int = 0) -> None:
        """Tell of a run from now on, to its end.

        Args:
            told: How many of its events the tables have already.
        """
        self._told[run] = told
        leave: list[Callable[[], None]] = []

        def noticed(urgent: bool) -> None:  # noqa: FBT001 - what a log tells its watchers
            self._new.set()
            if urgent:
                self._urgent.set()
            if run.log.closed:
                leave[0]()

        leave.append(run.log.watch(noticed))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._publish(), name="publish runs")
        self._new.set()

    async def aclose(self) -> None:
        """Tell what is left, and end."""
        if self._task is not None:
            self._new.set()
            self._urgent.set()
            await asyncio.wait({self._task}, timeout=_LATEST)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _publish(self) -> None:
        while self._told:
            await self._new.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._urgent.wait()
            self._new.clear()
            self._urgent.clear()
            began = time.perf_counter()
            try:
                await self._feed.publish([new for run in tuple(self._told) if (new := self._new_of(run)).events])
            except Exception:  # noqa: BLE001 - logged; the tables have all of it
                _LOG.exception("What happens in replies could not be told.")
            self._pause = min(_LATEST, max(_SOONEST, (time.perf_counter() - began) * _SHARE))

    def _new_of(self, run: Run) -> Tidings:
        """What was not told yet of a run; of one that is over, for the last time."""
        events = run.log.since(self._told[run])
        if run.log.closed:
            del self._told[run]
        else:
            self._told[run] += len(events)
        return Tidings(run.id, run.epoch, events)
