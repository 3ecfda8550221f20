"""People who talk for minutes: replies that fail, memory, and how it grows."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import psutil

from bench.figures import Figure
from bench.replicas.many import middle, p95
from bench.replicas.people import GONE, Person, listener, opened
from bench.replicas.people import config_of as config_at
from bench.replicas.place import load, used

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.e2e.app_process import AppProcess

WORDS: Final = 60
SCRIPT: Final = {"": {"text": [f"w{number:03d} " for number in range(WORDS)], "pace": 1 / 15, "usage": [10, WORDS]}}
THINKS: Final = 30.0  # seconds between a reply and the next question, about
_TALKS: Final = 10  # questions in one conversation
_EVERY: Final = 5.0
_WARM: Final = 0.2  # of the time; memory is counted after it


@dataclass
class Soak:
    """What came of it.

    Args:
        parlours: All of them.
        serving: Those that serve pages.
        minutes: How long.
    """

    parlours: Sequence[AppProcess]
    serving: Sequence[AppProcess]
    minutes: float
    replies: int = 0
    failed: list[str] = field(default_factory=list[str])
    firsts: list[float] = field(default_factory=list[float])
    memory: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    async def go(self, count: int) -> None:
        """So many people, to the end of the time."""
        urls = [one.url for one in self.serving]
        go = listener(await config_at(urls[0]), "bus-go", "click")
        async with opened(urls, count) as people:
            end = time.monotonic() + self.minutes * 60
            looking = asyncio.create_task(self._look())
            await asyncio.gather(*(self._talks(person, end, go, number) for number, (person, _) in enumerate(people)))
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _talks(self, person: Person, end: float, go: int, number: int) -> None:
        chance = random.Random(number)
        await asyncio.sleep(chance.random() * THINKS)
        asked = 0
        while time.monotonic() < end:
            began = time.perf_counter()
            try:
                await person.say("Count.")
                shown, whole = await person.watch(first="w000", last=f"w{WORDS - 1:03d}")
                self.replies += 1
                asked += 1
                if whole:
                    self.firsts.append(shown - began)
                else:
                    self.failed.append("its last word was not shown")
                if asked % _TALKS == 0:
                    await person.do(go, do="new")
            except GONE as error:
                self.replies += 1
                self.failed.append(repr(error))
            await asyncio.sleep(THINKS * (0.5 + chance.random()))

    async def _look(self) -> None:
        began = time.monotonic()
        while True:
            now = sum(psutil.Process(pid).memory_info().rss for pid in self._pids())
            self.memory.append((time.monotonic() - began, now / 2**20))
            await asyncio.sleep(_EVERY)

    def _pids(self) -> list[int]:
        return [one.process.pid for one in self.parlours if one.process is not None]

    def slope(self) -> float:
        """MiB a minute, of all Parlours together, once they are warm."""
        kept = [one for one in self.memory if one[0] >= self.minutes * 60 * _WARM]
        if len(kept) < 3:
            return float("nan")
        return statistics.linear_regression(*zip(*kept, strict=True)).slope * 60


def measured(
    parlours: Sequence[AppProcess], people: int, minutes: float, what: str, serving: Sequence[AppProcess] = ()
) -> list[Figure]:
    """The figures of one form."""
    soak, busy = Soak(parlours, serving or parlours, minutes), load()
    pids = [one.process.pid for one in parlours if one.process is not None]
    before = sum(map(used, pids))
    asyncio.run(soak.go(people))
    spent = sum(map(used, pids)) - before
    share = spent / (minutes * 60) * 100
    said = f"{soak.replies} replies of {WORDS} words, {share:.0f} % of a core; {', '.join(sorted({*soak.failed})[:3])}"
    most = max((one for _, one in soak.memory), default=0.0) / len(parlours)
    first, last = soak.memory[0][1], soak.memory[-1][1]
    each = f"{first:.0f} MiB at first, {last:.0f} at the end, {len(parlours)} processes"
    return [
        Figure(f"{people} people for {minutes:g} minutes, {what}: replies that failed", len(soak.failed), 0, "", said),
        Figure(
            f"the same, {what}: first word shown, p95", p95(soak.firsts), 2.0, "s", f"{middle(soak.firsts)}; {busy}"
        ),
        Figure(f"the same, {what}: memory grows in a minute", soak.slope(), 1.0, "MiB", each),
        Figure(f"the same, {what}: memory of one Parlour at most", most, 1_500.0, "MiB", "resident"),
    ]
