"""What happens in runs, told by Redis: one stream for each reply. The tables hold the truth."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from core.bridge.pool import BoundedDict
from core.messages.events import TextDelta
from core.runs.feed import Position, TableFeed, TableLooks
from core.runs.log import LoggedEvent, RunFinished
from core.runs.redis_line import RedisLine, packed
from core.runs.rows import logged_of, rows_of
from core.storage.base import EventRow

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from core.runs.feed import Feed, Tidings, Told
    from core.storage.run_news import News, RunNews
    from core.storage.stores import Stores


_LOG = logging.getLogger(__name__)
_MOST: Final = b"500"  # entries of a stream, about; who comes later reads the tables
_STAYS: Final = b"600"  # seconds after the last entry
_LOOKS: Final = 2.0
"""Seconds between two looks at the tables while Redis tells everything."""
_BESIDE: Final = 0.5
"""The same while it does not."""
_BLOCK: Final = b"100"  # milliseconds for which a read waits: who begins to follow meanwhile waits as long
_MOST_READ: Final = b"100"  # entries of a stream in one read
_READ: Final = (b"XREAD", b"COUNT", _MOST_READ, b"BLOCK", _BLOCK, b"STREAMS")
_PAUSE: Final = 0.03  # between two reads, so that several entries come in one
_TRY_AGAIN: Final = 0.5
_TICK: Final = 0.1
"""Seconds between two looks at who has to be woken: a timer for each entry of each would cost more than the entry."""
_RENEWED: Final = 60.0  # seconds after which a stream is told again how long it stays
_JSON: Final = json.JSONEncoder(separators=(",", ":")).encode
_REMEMBERED: Final = 10_000  # streams of this process of which that is known


@dataclass(frozen=True, slots=True)
class _Frame:
    """What one entry of a stream tells."""

    epoch: int
    events: Sequence[LoggedEvent]
    is_last: bool


@dataclass(eq=False, slots=True)
class _Stream:
    """A stream that is read for one who follows."""

    name: bytes
    at: bytes = b"0"
    place: tuple[int, int] = (0, 0)
    until: float = math.inf
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
        self._writes, self._reads = RedisLine(url), RedisLine(url)
        self._looks = TableLooks(news)
        self._telling = asyncio.Lock()  # noqa: TID251 - a line has one who speaks at a time
        self._renewed = BoundedDict[bytes, float](_REMEMBERED)
        self._streams: dict[bytes, list[_Stream]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._waking: asyncio.Task[None] | None = None
        self._is_well = True

    async def publish(self, tidings: Sequence[Tidings]) -> None:
        """As `Feed.publish`, in one call of Redis. What cannot be told is left to the tables."""
        from redis.exceptions import RedisError

        commands: list[bytes] = []
        for run in tidings:
            try:
                commands += self._commands(run)
            except (TypeError, ValueError):  # something in it is no JSON, which takes no other run along
                _LOG.exception("What happens in run %s could not be told.", run.run_id)
        if not commands:
            return
        try:
            async with self._telling:
                answers = await self._writes.ask(commands)
            if refused := next((one for one in answers if isinstance(one, RedisError)), None):
                raise refused
        except (RedisError, OSError) as error:
            _LOG.info("What happens in replies is not told by Redis at present: %s", type(error).__name__)

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
                if position.is_anew:
                    news = await self._looks.at_once(run_id, position.base)
                    continue
                behind = position.seen > known or position.is_owed  # Redis has not told what the tables have
                wait = _BESIDE if behind or not self._is_well else _LOOKS
                async for told in self._until_look(stream, position, time.monotonic() + wait):
                    yield told
                look = self._looks.at_once if position.is_elsewhere else self._looks.next
                news = await look(run_id, position.base)
        finally:
            self._leave(stream)

    async def aclose(self) -> None:
        """Close its connections."""
        for task in (self._reading, self._waking):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._looks.aclose()
        await self._writes.aclose()
        await self._reads.aclose()

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
            if not self._is_well:
                end = min(end, time.monotonic() + _BESIDE)
            if end <= time.monotonic():
                return
            stream.until = end
            await stream.came.wait()

    def _begin(self, stream: _Stream) -> None:
        self._streams.setdefault(stream.name, []).append(stream)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="hear of runs")
        if self._waking is None or self._waking.done():
            self._waking = asyncio.create_task(self._wake(), name="wake who follow runs")

    def _leave(self, stream: _Stream) -> None:
        others = [one for one in self._streams.get(stream.name, ()) if one is not stream]
        if others:
            self._streams[stream.name] = others
        else:
            self._streams.pop(stream.name, None)

    def _commands(self, run: Tidings) -> list[bytes]:
        """What adds an entry to the stream of a run, and says how long that stays."""
        name, is_last = _name(run.run_id), bool(run.events) and isinstance(run.events[-1].event, RunFinished)
        last = (b"last", b"1") if is_last else ()
        epoch, told = b"%d" % run.epoch, _told(run.events)
        add = packed(b"XADD", name, b"MAXLEN", b"~", _MOST, b"*", b"epoch", epoch, b"events", told, *last)
        now = time.monotonic()
        if not is_last and now - self._renewed.get(name, -math.inf) < _RENEWED:
            return [add]
        self._renewed[name] = now
        return [add, packed(b"EXPIRE", name, _STAYS)]

    async def _read(self) -> None:
        from redis.exceptions import RedisError

        while self._streams:
            # Of two who follow one run it is read from where the later one is.
            places = [min(some, key=_place_of).at if len(some) > 1 else some[0].at for some in self._streams.values()]
            try:
                (found,) = await self._reads.ask([packed(*_READ, *self._streams, *places)])
                if isinstance(found, RedisError):
                    raise found
            except (RedisError, OSError) as error:
                if self._is_well:
                    _LOG.warning("Redis does not tell what happens in replies: %s", type(error).__name__)
                self._is_well = False
                for stream in self._every():  # so that each looks at the tables more often
                    stream.came.set()
                await asyncio.sleep(_TRY_AGAIN)
                continue
            self._is_well = True
            self._hand_out(found or ())
            await asyncio.sleep(_PAUSE if found else 0)

    async def _wake(self) -> None:
        """Wake those who have to look at the tables."""
        while self._streams:
            await asyncio.sleep(min(_TICK, _BESIDE))
            now = time.monotonic()
            for stream in self._every():
                if stream.until <= now:
                    stream.until = math.inf
                    stream.came.set()

    def _every(self) -> list[_Stream]:
        return [stream for some in self._streams.values() for stream in some]

    def _hand_out(self, found: Any) -> None:
        for name, entries in found:
            for number, fields in entries:
                place, frame = _place(number), _frame(fields)
                for stream in self._streams.get(name, ()):
                    if place > stream.place:
                        stream.at, stream.place = number, place
                        stream.frames.append(frame)
                        stream.came.set()


class Ahead(Position):
    """How far somebody has followed a run whose news may be ahead of the tables.

    Attributes:
        is_elsewhere: Whether another process has gone on with it since the tables were looked at.
    """

    def __init__(self, after: int = 0) -> None:
        super().__init__(after)
        self._ahead: deque[LoggedEvent] = deque(maxlen=int(_MOST))
        self._owed = self._ahead_in = 0
        self.is_elsewhere = False

    @property
    def is_owed(self) -> bool:
        """Whether the tables had something at the last look that was not told beside them yet."""
        return self._owed > self.seen

    def looked(self, news: News) -> list[Told]:
        """As `Position.looked`; what is on its way is waited for to the next look, before anything is told anew."""
        self.is_elsewhere = False
        last = news.rows[-1].seq if news.rows else self.base
        goes_on = news.status == "running" and news.epoch == self.epoch
        if goes_on and last > self.seen > self.base and not self.is_owed:
            self._owed = last
            return []
        self._owed = 0
        return super().looked(news)

    def framed(self, epoch: int, events: Sequence[LoggedEvent]) -> bool:
        """Take in what was told beside the tables; whether these must be looked at."""
        if epoch < max(self.epoch, self._ahead_in):
            return False
        if epoch > self._ahead_in:
            self._ahead.clear()
            self._ahead_in = epoch
        self._ahead.extend(events)
        if epoch > self.epoch:  # another process has taken the run over: what it tells goes on from the tables
            self.is_elsewhere = True
            return True
        while self._ahead and self._ahead[0].seq <= self.seen:
            self._ahead.popleft()
        return bool(self._ahead) and self._ahead[0].seq != self.seen + 1

    def known(self) -> list[LoggedEvent]:
        """What was told and follows on what is known, without a gap."""
        told: list[LoggedEvent] = []
        while self._ahead_in == self.epoch and self._ahead and self._ahead[0].seq <= self.seen + 1:
            one = self._ahead.popleft()
            if one.seq == self.seen + 1:
                told.append(one)
                self.seen = one.seq
        return told


def _told(events: Sequence[LoggedEvent]) -> bytes:
    """Events as an entry has them: each piece of text by itself, with the number that it has in the log."""
    told: list[tuple[int, float, str, dict[str, Any]]] = []
    for one in events:
        if isinstance(one.event, TextDelta):  # nearly all of them
            told.append((one.seq, one.at, one.event.kind, {"text": one.event.text}))
        else:
            told += [(row.seq, row.at, row.kind, row.payload) for row in rows_of((one,))]
    return _JSON(told).encode()


def _name(run_id: str) -> bytes:
    return b"parlour:run:%b" % run_id.encode()


def _place(at: bytes) -> tuple[int, int]:
    """Where an entry stands in its stream."""
    moment, _, number = at.partition(b"-")
    return int(moment), int(number or 0)


def _place_of(stream: _Stream) -> tuple[int, int]:
    return stream.place


def _frame(told: Sequence[bytes]) -> _Frame:
    try:
        fields = dict(zip(told[::2], told[1::2], strict=True))
        events = logged_of(EventRow(*one) for one in json.loads(fields[b"events"]))
        return _Frame(int(fields[b"epoch"]), events, b"last" in fields)
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
