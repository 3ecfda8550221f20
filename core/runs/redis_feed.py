"""What happens in runs, told by Redis: one stream for each reply. The tables hold the truth."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from core.errors import extra_for
from core.runs.feed import Position, TableFeed, TableLooks
from core.runs.log import LoggedEvent, RunFinished
from core.runs.rows import logged_of, rows_of
from core.storage.base import EventRow

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from core.runs.feed import Feed, Told
    from core.storage.run_news import News, RunNews
    from core.storage.stores import Stores


_LOG = logging.getLogger(__name__)
_MOST: Final = 500  # entries of a stream, about; who comes later reads the tables
_STAYS: Final = 600  # seconds after the last entry
_LOOKS: Final = 2.0
"""Seconds between two looks at the tables while Redis tells everything."""
_BESIDE: Final = 0.5
"""The same while it does not."""
_BLOCK: Final = 100  # milliseconds for which a read waits: who begins to follow meanwhile waits as long
_PAUSE: Final = 0.03  # between two reads, so that several entries come in one
_TRY_AGAIN: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Frame:
    """What one entry of a stream tells."""

    epoch: int
    events: Sequence[LoggedEvent]
    is_last: bool


@dataclass(eq=False, slots=True)
class _Stream:
    """A stream that is read for one who follows."""

    name: str
    at: str = "0"
    frames: deque[_Frame] = field(default_factory=deque[_Frame])
    came: asyncio.Event = field(default_factory=asyncio.Event)


class RedisFeed:
    """Tells what happens by streams of a Redis or Valkey, which may be slow, full, emptied or gone.

    Args:
        url: Its address, as in `redis://127.0.0.1:6379/0`.

    Raises:
        MissingExtraError: What speaks to it is not installed.
        ValueError: It is no address of a Redis.
    """

    tells = True

    def __init__(self, news: RunNews, url: str) -> None:
        with extra_for("Redis"):
            from redis.asyncio import Redis
        made: Any = Redis
        self._redis = made.from_url(url, protocol=2, socket_connect_timeout=1.0, socket_timeout=5.0)
        self._looks = TableLooks(news)
        self._waiting: list[tuple[str, dict[str, str], asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._streams: set[_Stream] = set()
        self._reading: asyncio.Task[None] | None = None
        self._is_well = True

    async def publish(self, run_id: str, epoch: int, events: Sequence[LoggedEvent]) -> None:
        """As `Feed.publish`; those of one moment go together. What cannot be told is left to the tables."""
        told = [[row.seq, row.at, row.kind, row.payload] for one in events for row in rows_of([one])]
        fields = {"epoch": str(epoch), "events": json.dumps(told, ensure_ascii=True, separators=(",", ":"))}
        if events and isinstance(events[-1].event, RunFinished):
            fields["last"] = "1"
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((_name(run_id), fields, done))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="tell runs")
        await done

    async def follow(self, run_id: str, after: int = 0) -> AsyncGenerator[Told, None]:
        """As `Feed.follow`. Raises StorageError where the tables cannot be read at first."""
        position, stream = Ahead(after), _Stream(_name(run_id))
        self._begin(stream)
        try:
            news = await self._looks.at_once(run_id, after)
            while news is not None:
                known = position.seen
                for told in position.looked(news):
                    yield told
                if position.over:
                    return
                behind = position.seen > known or position.is_owed  # Redis has not told what the tables have
                wait = _BESIDE if behind or not self._is_well else _LOOKS
                async for told in self._until_look(stream, position, time.monotonic() + wait):
                    yield told
                news = await self._looks.next(run_id, position.base)
        finally:
            self._streams.discard(stream)

    async def aclose(self) -> None:
        """Close its connections."""
        for task in (self._writing, self._reading):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._looks.aclose()
        await self._redis.aclose()

    async def _until_look(self, stream: _Stream, position: Ahead, end: float) -> AsyncGenerator[Told, None]:
        """What Redis tells, until the tables must be looked at."""
        if told := position.known():  # what waited for what the tables had
            yield told
        while True:
            while stream.frames:
                frame = stream.frames.popleft()
                must_look = position.framed(frame.epoch, frame.events) or frame.is_last
                if told := position.known():
                    yield told
                if must_look:
                    return
            stream.came.clear()
            left = end - time.monotonic()
            if left <= 0:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(stream.came.wait(), min(left, _BESIDE))
            if not self._is_well:
                end = min(end, time.monotonic() + _BESIDE)

    def _begin(self, stream: _Stream) -> None:
        self._streams.add(stream)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="hear of runs")

    async def _write(self) -> None:
        from redis.exceptions import RedisError

        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                async with self._redis.pipeline(transaction=False) as pipe:
                    for name, fields, _ in batch:
                        pipe.xadd(name, fields, maxlen=_MOST, approximate=True)
                        pipe.expire(name, _STAYS)
                    await pipe.execute()
            except (RedisError, OSError) as error:
                _LOG.info("What happens in replies is not told by Redis at present: %s", type(error).__name__)
            finally:
                for _, _, done in batch:
                    if not done.done():
                        done.set_result(None)

    async def _read(self) -> None:
        from redis.exceptions import RedisError

        while self._streams:
            places: dict[str, str] = {}
            for stream in self._streams:  # two who follow one run read it from where the later one is
                places[stream.name] = min(places.get(stream.name, stream.at), stream.at, key=_place)
            try:
                found = await self._redis.xread(places, count=100, block=_BLOCK)
            except (RedisError, OSError) as error:
                if self._is_well:
                    _LOG.warning("Redis does not tell what happens in replies: %s", type(error).__name__)
                self._is_well = False
                await asyncio.sleep(_TRY_AGAIN)
                continue
            self._is_well = True
            self._hand_out(found)
            await asyncio.sleep(_PAUSE if found else 0)

    def _hand_out(self, found: Any) -> None:
        for raw, entries in found:
            for stream in [one for one in self._streams if one.name == raw.decode()]:
                for number, fields in entries:
                    at = number.decode()
                    if _place(at) > _place(stream.at):
                        stream.at = at
                        stream.frames.append(_frame(fields))
                stream.came.set()


class Ahead(Position):
    """How far somebody has followed a run whose news may be ahead of the tables."""

    def __init__(self, after: int = 0) -> None:
        super().__init__(after)
        self._ahead: deque[LoggedEvent] = deque(maxlen=_MOST)
        self._owed = 0

    @property
    def is_owed(self) -> bool:
        """Whether the tables had something at the last look that was not told beside them yet."""
        return self._owed > self.seen

    def looked(self, news: News) -> list[Told]:
        """As `Position.looked`; what is on its way is waited for to the next look, before anything is told anew."""
        last = news.rows[-1].seq if news.rows else self.base
        goes_on = news.status == "running" and news.epoch == self.epoch
        if goes_on and last > self.seen > self.base and not self.is_owed:
            self._owed = last
            return []
        self._owed = 0
        return super().looked(news)

    def framed(self, epoch: int, events: Sequence[LoggedEvent]) -> bool:
        """Take in what was told beside the tables; whether these must be looked at."""
        if epoch != self.epoch:
            if epoch > self.epoch:  # another process has taken the run over
                self._ahead.clear()
            return epoch > self.epoch
        self._ahead.extend(events)
        while self._ahead and self._ahead[0].seq <= self.seen:
            self._ahead.popleft()
        return bool(self._ahead) and self._ahead[0].seq != self.seen + 1

    def known(self) -> list[LoggedEvent]:
        """What was told and follows on what is known, without a gap."""
        told: list[LoggedEvent] = []
        while self._ahead and self._ahead[0].seq <= self.seen + 1:
            one = self._ahead.popleft()
            if one.seq == self.seen + 1:
                told.append(one)
                self.seen = one.seq
        return told


def _name(run_id: str) -> str:
    return f"parlour:run:{run_id}"


def _place(at: str) -> tuple[int, int]:
    """Where an entry stands in its stream."""
    moment, _, number = at.partition("-")
    return int(moment), int(number or 0)


def _frame(fields: dict[bytes, bytes]) -> _Frame:
    try:
        told = logged_of(EventRow(*one) for one in json.loads(fields[b"events"]))
        return _Frame(int(fields[b"epoch"]), told, b"last" in fields)
    except (KeyError, ValueError, TypeError):  # a newer program's: the tables say it
        return _Frame(0, (), is_last=True)


def feed_at(redis: str, stores: Stores) -> Feed:
    """What tells of runs: by a Redis, else by the tables alone.

    Args:
        redis: Its address; "" where there is none.

    Raises:
        MissingExtraError: What speaks to it is not installed.
        ValueError: It is no address of a Redis.
    """
    if not redis:
        return TableFeed(stores.run_news)
    return RedisFeed(stores.run_news, redis)
