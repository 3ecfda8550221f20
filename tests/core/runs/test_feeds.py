"""What happens in a run is told in order, without a gap, whoever comes late and whatever becomes of Redis."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import anyio
import pytest

from core.messages.events import MessageStarted, TextDelta
from core.runs import redis_feed
from core.runs.feed import Feed, Rewound, TableFeed, Tidings
from core.runs.log import InputAsked, LoggedEvent, RunFinished, RunLog
from core.runs.publishing import Publishing
from core.runs.redis_feed import Ahead, RedisFeed
from core.runs.redis_line import RedisLine
from core.runs.rows import rows_of
from core.storage.base import EventRow, Lease, RunRecord
from core.storage.run_news import News

pytestmark = pytest.mark.anyio


@dataclass
class Written:
    """A run that is being written, its log told and stored as a run does both."""

    talk: Any
    feed: Feed
    record: RunRecord
    log: list[LoggedEvent] = field(default_factory=list)
    stored: int = 0

    async def says(self, *texts: str, tell: bool = True) -> None:
        """Log pieces of text, and tell them."""
        new = [LoggedEvent(len(self.log) + at, 0.1 * at, TextDelta(text)) for at, text in enumerate(texts, start=1)]
        self.log += new
        if tell:
            await self.feed.publish([Tidings(self.record.id, self.record.epoch, new)])

    async def stores(self) -> None:
        """Put what is logged into the table."""
        rows = rows_of(self.log[self.stored :])
        await self.talk.store.append(self.record.id, rows, epoch=self.record.epoch)
        self.stored = len(self.log)

    async def ends(self) -> None:
        """Store the end, and tell it."""
        rows = rows_of(self.log[self.stored :])
        await self.talk.store.finish(self.record.id, "complete", epoch=self.record.epoch, parts=[], rows=rows)
        end = LoggedEvent(len(self.log) + 1, 9.0, RunFinished("complete"))
        await self.feed.publish([Tidings(self.record.id, self.record.epoch, [end])])


@dataclass
class Heard:
    """What somebody hears who follows."""

    events: list[LoggedEvent] = field(default_factory=list)
    rewound: list[int] = field(default_factory=list)
    grown: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def text(self) -> str:
        return "".join(one.event.text for one in self.events if isinstance(one.event, TextDelta))

    async def follow(self, feed: Feed, run_id: str) -> None:
        async with aclosing(feed.follow(run_id)) as told:
            async for one in told:
                if isinstance(one, Rewound):
                    self.rewound.append(one.after)
                    self.events = [event for event in self.events if event.seq <= one.after]
                else:
                    self.events += one
                self.grown.set()

    async def until(self, text: str) -> None:
        with anyio.fail_after(15):
            while self.text != text:
                self.grown.clear()
                await self.grown.wait()


@pytest.fixture(params=["table", "redis"])
async def feed(request: Any, talk: Any) -> AsyncIterator[Feed]:
    """Each feed."""
    if request.param == "table":
        made: Feed = TableFeed(talk.stores.run_news, every=0.02)
    else:
        made = RedisFeed(talk.stores.run_news, request.getfixturevalue("redis"))
    yield made
    await made.aclose()


async def written(talk: Any, feed: Feed) -> Written:
    record, _ = await talk.store.create(talk.id, user=[], parent_id=None, worker="elsewhere")
    return Written(talk, feed, record)


async def test_all_of_it_is_told_once_and_in_order(talk: Any, feed: Feed) -> None:
    run, heard = await written(talk, feed), Heard()
    await run.says("It ", "began, ")
    await run.stores()
    async with asyncio.TaskGroup() as group:
        group.create_task(heard.follow(feed, run.record.id))
        await heard.until("It began, ")
        for number in range(20):
            await run.says(f"{number} ")
            if number % 7 == 0:
                await run.stores()
        await run.ends()
    assert heard.text == "It began, " + "".join(f"{number} " for number in range(20))
    assert [one.seq for one in heard.events] == sorted({one.seq for one in heard.events})
    assert heard.events[-1].event == RunFinished("complete")
    assert heard.rewound == []


async def test_who_comes_late_hears_all_of_it(talk: Any, feed: Feed) -> None:
    run, heard = await written(talk, feed), Heard()
    for number in range(1200):
        await run.says(f"{number} ", tell=number % 2 == 0 or number > 1000)
    await run.stores()
    await run.says("and ", "more")
    async with asyncio.TaskGroup() as group:
        group.create_task(heard.follow(feed, run.record.id))
        if isinstance(feed, RedisFeed):
            await heard.until("".join(f"{number} " for number in range(1200)) + "and more")
        await run.ends()
    assert heard.text == "".join(f"{number} " for number in range(1200)) + "and more"


async def test_a_run_without_events_is_known_to_have_none_and_one_that_is_gone_ends(talk: Any, feed: Feed) -> None:
    run = await written(talk, feed)
    with anyio.fail_after(10):
        async with aclosing(feed.follow(run.record.id)) as told:
            assert await anext(told) == []
            await talk.talks.delete(talk.id)
            assert [one async for one in told] == []


async def test_who_follows_goes_back_to_the_table_when_another_process_goes_on(talk: Any, feed: Feed) -> None:
    run, heard = await written(talk, feed), Heard()
    await run.says("kept ")
    await run.stores()
    async with asyncio.TaskGroup() as group:
        group.create_task(heard.follow(feed, run.record.id))
        await heard.until("kept ")
        await run.says("lost with its process")
        record = await talk.stores.runs.take_over(run.record, (await lease(talk)), "third", rows_of(run.log[:1]))
        await feed.publish([Tidings(run.record.id, 1, [LoggedEvent(3, 0.3, TextDelta("of the dead"))])])
        after = Written(talk, feed, record, run.log[:1], 1)
        await after.says("and new")
        await after.stores()
        await after.ends()
    assert heard.text == "kept and new"
    assert heard.rewound[-1] == 0


async def test_a_reply_that_another_process_has_taken_over_is_read_anew_at_once(
    talk: Any, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_feed, "_LOOKS", 60.0)  # seconds that it would be empty
    feed = RedisFeed(talk.stores.run_news, redis)
    run, heard = await written(talk, feed), Heard()
    await run.says("kept")
    await run.stores()
    following = asyncio.create_task(heard.follow(feed, run.record.id))
    await heard.until("kept")
    record = await talk.stores.runs.take_over(run.record, await lease(talk), "third", rows_of(run.log))
    await feed.publish([Tidings(run.record.id, record.epoch, [])])
    with anyio.fail_after(10):
        while not heard.rewound:
            heard.grown.clear()
            await heard.grown.wait()
    await heard.until("kept")
    following.cancel()
    await asyncio.wait({following})
    await feed.aclose()


async def lease(talk: Any) -> Lease:
    ((_, found),) = await talk.stores.runs.running()
    return found


def told(port: int, *words: str) -> None:
    """Tell Redis something, past the feed."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as asked:
        asked.sendall(" ".join(words).encode() + b"\r\n")
        assert asked.recv(64).startswith(b"+OK")


async def test_what_an_emptied_redis_has_lost_comes_from_the_table(talk: Any, own_redis: Any) -> None:
    feed = RedisFeed(talk.stores.run_news, f"redis://127.0.0.1:{own_redis.port}/0")
    run, heard = await written(talk, feed), Heard()
    async with asyncio.TaskGroup() as group:
        group.create_task(heard.follow(feed, run.record.id))
        await run.says("one ")
        await heard.until("one ")
        await run.says("two ", tell=False)
        told(own_redis.port, "FLUSHALL")
        await run.says("three ")
        await run.stores()
        await heard.until("one two three ")
        await run.ends()
    await feed.aclose()


async def test_a_redis_that_is_killed_or_full_costs_nothing_but_time(talk: Any, own_redis: Any) -> None:
    feed = RedisFeed(talk.stores.run_news, f"redis://127.0.0.1:{own_redis.port}/0")
    run, heard = await written(talk, feed), Heard()
    async with asyncio.TaskGroup() as group:
        group.create_task(heard.follow(feed, run.record.id))
        await run.says("one ")
        await heard.until("one ")
        told(own_redis.port, "CONFIG", "SET", "maxmemory", "1")
        await run.says("two ")
        await run.stores()
        await heard.until("one two ")
        own_redis.kill()
        await run.says("three ")
        await run.stores()
        await heard.until("one two three ")
        own_redis.start()
        await run.says("four")
        await run.stores()
        await heard.until("one two three four")
        await run.ends()
    assert heard.events[-1].event == RunFinished("complete")
    await feed.aclose()


async def test_what_is_new_in_all_replies_goes_to_redis_in_one_call(
    talk: Any, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed, calls = RedisFeed(talk.stores.run_news, redis), list[int]()
    ask = RedisLine.ask

    async def counted(line: RedisLine, commands: Any) -> list[Any]:
        calls.append(len(commands))
        return await ask(line, commands)

    monkeypatch.setattr(RedisLine, "ask", counted)
    publishing = Publishing(feed)
    runs: list[Any] = [Mock(id=f"run {number}", epoch=1, log=RunLog()) for number in range(20)]
    for run in runs:
        publishing.begin(run)
        run.log.append(MessageStarted())
    while not calls:
        await asyncio.sleep(0)
    await publishing.aclose()
    assert calls == [40]  # for each an entry, and how long it stays
    await feed.aclose()


async def test_what_cannot_be_told_of_one_reply_takes_no_other_along(talk: Any, redis: str) -> None:
    feed, heard = RedisFeed(talk.stores.run_news, redis), Heard()
    run = await written(talk, feed)
    following = asyncio.create_task(heard.follow(feed, run.record.id))
    odd = InputAsked("c", "i", "server", "Which?", {"no JSON": {1, 2}}, 9.0)
    said = [LoggedEvent(1, 0.0, TextDelta("It is told."))]
    await feed.publish([Tidings("another", 1, [LoggedEvent(1, 0.0, odd)]), Tidings(run.record.id, 1, said)])
    await heard.until("It is told.")
    following.cancel()
    await asyncio.wait({following})
    await feed.aclose()


async def test_what_is_told_is_heard_before_it_is_stored(talk: Any, redis: str) -> None:
    feed = RedisFeed(talk.stores.run_news, redis)
    run, heard = await written(talk, feed), Heard()
    await feed.publish([Tidings(run.record.id, 1, [LoggedEvent(1, 0.0, MessageStarted())])])
    run.log.append(LoggedEvent(1, 0.0, MessageStarted()))
    following = asyncio.create_task(heard.follow(feed, run.record.id))
    await run.says("not stored")
    await heard.until("not stored")
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await feed.aclose()


def test_what_is_on_its_way_is_told_once_and_what_is_lost_comes_from_the_table() -> None:
    one, two = (LoggedEvent(number, 0.0, MessageStarted(f"{number}")) for number in (1, 2))
    both = News(1, "running", None, rows_of([one, two]))
    position = Ahead()
    assert position.looked(News(1, "running", None, [])) == [[]]
    assert not position.framed(1, [one])
    assert position.known() == [one]
    assert position.looked(both) == []  # the table is quicker by a moment
    assert not position.framed(1, [two])
    assert position.known() == [two]
    assert position.looked(both) == []
    lost = Ahead()
    lost.looked(News(1, "running", None, []))
    lost.framed(1, [one])
    lost.known()
    assert (lost.looked(both), lost.is_owed) == ([], True)
    assert lost.looked(both) == [Rewound(0), [one, two]]  # it was not on its way


def test_what_is_told_by_who_took_a_run_over_goes_on_from_what_the_tables_have_of_it_then() -> None:
    def rows(epoch: int, *numbers: int) -> News:
        told = [EventRow(one, 0.0, "text_delta", {"text": f"{epoch}/{one} "}) for one in numbers]
        return News(epoch, "running", None, told)

    position = Ahead()
    assert position.looked(rows(1, 1, 2))
    assert position.framed(2, [LoggedEvent(2, 0.0, TextDelta("2/2 ")), LoggedEvent(3, 0.0, TextDelta("2/3 "))])
    assert position.is_elsewhere  # so the tables are looked at, at once
    assert position.known() == []
    assert position.looked(rows(2, 1)) == [Rewound()]
    assert position.is_anew
    (told,) = position.looked(rows(2, 1))
    assert not isinstance(told, Rewound)
    assert [one.event for one in told] == [TextDelta("2/1 ")]
    assert [one.event for one in position.known()] == [TextDelta("2/2 "), TextDelta("2/3 ")]
    assert not position.framed(1, [LoggedEvent(3, 0.0, TextDelta("1/3 "))])  # of one that was held up
    assert position.known() == []
