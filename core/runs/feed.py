"""What happens in runs, told from the process that writes them to those that show them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from core.errors import StorageError
from core.runs.log import LoggedEvent, RunFinished
from core.runs.rows import logged_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from core.storage.run_news import News, RunNews

_EVERY: Final = 0.25
"""Seconds between two looks at the tables, which are as far behind the log."""
_AFTER_TROUBLE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Rewound:
    """What was told after this number does not hold any more: another process goes on from there.

    Args:
        after: The number; 0 for all of it.
    """

    after: int = 0


class Tidings(NamedTuple):
    """What has happened in a run of this process.

    Args:
        epoch: The one in which it holds the run.
        events: In order; the last ones of all have `RunFinished`.
    """

    run_id: str
    epoch: int
    events: Sequence[LoggedEvent]


Told: TypeAlias = "Sequence[LoggedEvent] | Rewound"
_Wanted: TypeAlias = "dict[str, list[tuple[int, asyncio.Future[News | None]]]]"
"""Who asks about which run, each with the number of the last event that is known there."""


class Feed(Protocol):
    """Tells what happens in runs. The tables hold the truth; a feed may be quicker, and may lose anything.

    Attributes:
        tells: Whether it is quicker than the tables, so that there is a point in telling it anything.
    """

    tells: bool

    async def publish(self, tidings: Sequence[Tidings]) -> None:
        """Tell what has happened in runs of this process, of all of them in one go."""
        ...

    def follow(self, run_id: str, after: int = 0) -> AsyncGenerator[Told, None]:
        """Everything after number `after`, then what happens, until the run is over or gone.

        The first thing told is what there is already, be it nothing. Of several pieces of one text there may be one,
        with the number of the last. The last event is `RunFinished`, unless the run is gone.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what it holds open."""
        ...


class TableLooks:
    """Looks at the tables for all who follow runs in this process, in one transaction.

    Args:
        every: Seconds between two looks.
    """

    def __init__(self, news: RunNews, *, every: float = _EVERY) -> None:
        self._news = news
        self._every = every
        self._wanted: _Wanted = {}
        self._wanted_now: _Wanted = {}
        self._looking: asyncio.Task[None] | None = None
        self._now: set[asyncio.Task[None]] = set()

    async def at_once(self, run_id: str, after: int) -> News | None:
        """How a run goes on, with all others that are asked about at this moment; `None` where it is gone.

        Raises:
            StorageError: The tables cannot be read.
        """
        if not self._wanted_now:
            looking = asyncio.create_task(self._look_now(), name="look at runs")
            self._now.add(looking)
            looking.add_done_callback(self._now.discard)
        return await _asked(self._wanted_now, run_id, after)

    async def next(self, run_id: str, after: int) -> News | None:
        """The same, at the next look; it waits until the database can be read."""
        known = _asked(self._wanted, run_id, after)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="follow runs")
        return await known

    async def aclose(self) -> None:
        """Look no more."""
        looking = [*self._now, *([self._looking] if self._looking is not None else ())]
        for one in looking:
            one.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
        for one in _waiting(self._wanted_now):  # whose look had not begun
            one.cancel()

    async def _look_now(self) -> None:
        await asyncio.sleep(0)  # the others of this moment
        asked, self._wanted_now = self._wanted_now, {}
        try:
            found = await self._news.of(_earliest(asked))
        except Exception as error:  # noqa: BLE001 - each of those who wait gets it
            for one in _waiting(asked):
                one.set_exception(error)
        else:
            for run, some in asked.items():
                _tell(some, found.get(run))
        finally:
            for one in _waiting(asked):  # nobody waits for ever
                one.cancel()

    async def _look(self) -> None:
        try:
            await asyncio.sleep(self._every)
            while self._wanted:
                asked, self._wanted = self._wanted, {}
                try:
                    found = await self._news.of(_earliest(asked))
                except StorageError:  # it may do better at the next look
                    for run, some in asked.items():
                        self._wanted.setdefault(run, []).extend(some)
                    await asyncio.sleep(_AFTER_TROUBLE)
                    continue
                for run, some in asked.items():
                    _tell(some, found.get(run))
                await asyncio.sleep(self._every)
        finally:
            for one in _waiting(self._wanted):
                one.cancel()


def _asked(wanted: _Wanted, run_id: str, after: int) -> asyncio.Future[News | None]:
    known: asyncio.Future[News | None] = asyncio.get_running_loop().create_future()
    wanted.setdefault(run_id, []).append((after, known))
    return known


def _earliest(wanted: _Wanted) -> dict[str, int]:
    return {run: min(after for after, _ in asked) for run, asked in wanted.items()}


def _waiting(wanted: _Wanted) -> list[asyncio.Future[News | None]]:
    return [known for asked in wanted.values() for _, known in asked if not known.done()]


def _tell(asked: Sequence[tuple[int, asyncio.Future[News | None]]], news: News | None) -> None:
    for _, known in asked:
        if not known.done():
            known.set_result(news)


class TableFeed:
    """Follows runs by their tables alone: for several processes on one database and nothing else."""

    tells = False

    def __init__(self, news: RunNews, *, every: float = _EVERY) -> None:
        self._looks = TableLooks(news, every=every)

    async def publish(self, tidings: Sequence[Tidings]) -> None:
        """Nothing is to be told: the checkpoints of the run are all there is."""

    async def follow(self, run_id: str, after: int = 0) -> AsyncGenerator[Told, None]:
        """As `Feed.follow`. Raises StorageError where the tables cannot be read at first."""
        news, position = await self._looks.at_once(run_id, after), Position(after)
        while news is not None:
            for told in position.looked(news):
                yield told
            if position.over:
                return
            look = self._looks.at_once if position.is_anew else self._looks.next
            news = await look(run_id, position.base)

    async def aclose(self) -> None:
        """Look no more."""
        await self._looks.aclose()


class Position:
    """How far somebody has followed a run.

    A row of the table may hold several events of a log, so not every number of the log is the end of a row.

    Attributes:
        base: The last number that is known to end a row of the table.
        seen: The last number that was told.
        epoch: The one that the run is in; 0 before it is known.
        over: Whether the end was told.
    """

    def __init__(self, after: int = 0) -> None:
        self.base = self.seen = after
        self.epoch: int = 0
        self.over = False

    @property
    def is_anew(self) -> bool:
        """Whether all of it is to be read again, at once."""
        return not self.epoch

    def looked(self, news: News) -> list[Told]:
        """What a look at the tables tells that is new; the rows are those after `base`."""
        told: list[Told] = []
        if self.epoch and news.epoch != self.epoch:  # its events are numbered anew: the next look has all of them
            self.base, self.seen, self.epoch = 0, 0, 0
            return [Rewound()]
        is_first, self.epoch = not self.epoch, news.epoch
        events = [one for one in logged_of(news.rows) if one.seq > self.base]
        last = news.rows[-1].seq if news.rows else self.base
        if last > self.seen:
            if self.seen > self.base:
                told.append(Rewound(self.base))
            told.append(events)
            self.seen = last
        elif is_first:
            told.append([])  # nothing has happened yet, and that is known now
        self.base = max(self.base, last)
        if news.status != "running":
            at = events[-1].at if events else 0.0
            told.append([LoggedEvent(self.seen + 1, at, RunFinished(news.status, news.error))])
            self.over = True
        return told
