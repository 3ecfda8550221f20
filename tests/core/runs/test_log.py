"""The log of a run, and those who follow it."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.messages.events import TextDelta, ToolStarted
from core.runs.log import LoggedEvent, RunFinished, RunLog
from tests.tries import tries

pytestmark = pytest.mark.anyio


def text_of(events: list[LoggedEvent]) -> str:
    return "".join(one.event.text for one in events if isinstance(one.event, TextDelta))


@given(st.integers(0, 2**32))
@settings(max_examples=tries(30), deadline=None)
def test_whoever_joins_whenever_gets_everything_once(seed: int) -> None:
    chance = random.Random(seed)

    async def scene() -> None:
        log = RunLog()
        followers: list[asyncio.Task[list[LoggedEvent]]] = []

        async def follow(after: int) -> list[LoggedEvent]:
            got: list[LoggedEvent] = []
            async for one in log.follow(after):
                got.append(one)
                for _ in range(chance.randrange(3)):
                    await asyncio.sleep(0)
            return got

        afters: list[int] = []
        for number in range(40):
            if chance.random() < 0.2:
                afters.append(chance.randrange(len(log) + 1))
                followers.append(asyncio.create_task(follow(afters[-1])))
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            log.append(TextDelta(f"{number} "))
        log.append(RunFinished("complete"))
        afters.append(0)
        followers.append(asyncio.create_task(follow(0)))
        for after, follower in zip(afters, followers, strict=True):
            got = await follower
            assert [one.seq for one in got] == list(range(after + 1, 42))

    asyncio.run(scene())


async def test_nothing_is_taken_in_after_the_end() -> None:
    log = RunLog()
    log.append(RunFinished("stopped"))
    log.append(TextDelta("too late"))
    assert [one.event.kind async for one in log.follow()] == ["run_finished"]


async def test_watchers_hear_what_must_be_shown_at_once() -> None:
    log = RunLog()
    heard: list[bool] = []
    unwatch = log.watch(heard.append)
    log.append(TextDelta("a"))
    log.append(ToolStarted("x"))
    unwatch()
    unwatch()
    log.append(TextDelta("b"))
    assert heard == [False, True]


async def test_a_continued_log_goes_on_counting_and_timing() -> None:
    log = RunLog([LoggedEvent(5, 1.0, TextDelta("a")), LoggedEvent(9, 2.5, TextDelta("b"))])
    log.append(TextDelta("c"))
    assert [one.seq for one in log.since()] == [1, 2, 3]
    assert log.since()[-1].at >= 2.5
    assert text_of(log.since(1)) == "bc"
