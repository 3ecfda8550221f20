"""Time-outs count the time in which the process was awake."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bridge import watchdog as awake
from core.bridge.watchdog import AwakeTimer, awake_timeout

pytestmark = pytest.mark.anyio


class Handle:
    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self._when, self.callback, self.cancelled = when, callback, False

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """A loop whose time passes when it is told to: awake, or asleep."""

    def __init__(self) -> None:
        self.now, self.handles = 0.0, list[Handle]()

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> Handle:
        self.handles.append(Handle(when, callback))
        return self.handles[-1]

    def awake(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [one for one in self.handles if not one.cancelled and one.when() <= end]:
            first = min(due, key=Handle.when)
            self.handles.remove(first)
            self.now = max(self.now, first.when())
            first.callback()
        self.now = end

    def asleep(self, seconds: float) -> None:
        self.now += seconds


class Timed:
    """A timer on such a loop, and when it rang."""

    def __init__(self, seconds: float) -> None:
        self.loop, self.rang = Loop(), list[float]()
        loop: Any = self.loop
        self.timer = AwakeTimer(lambda: self.rang.append(self.loop.now), loop=loop)
        self.timer.start(seconds)


def test_without_a_sleep_it_rings_on_time_and_once() -> None:
    one = Timed(30.0)
    one.loop.awake(29.9)
    assert one.rang == []
    one.loop.awake(100.0)
    assert one.rang == [pytest.approx(30.0)]


@pytest.mark.parametrize("sleep", [1.5, 60.0, 8 * 3600.0])
def test_a_sleep_does_not_count(sleep: float) -> None:
    one = Timed(30.0)
    one.loop.awake(12.0)
    one.loop.asleep(sleep)
    one.loop.awake(14.0)
    assert one.rang == []
    one.loop.awake(10.0)
    assert len(one.rang) == 1


def test_after_a_sleep_there_is_time_to_read_what_has_waited_meanwhile() -> None:
    one = Timed(1.0)
    one.loop.asleep(60.0)
    one.loop.awake(1.9)
    assert one.rang == []
    one.loop.awake(0.2)
    assert len(one.rang) == 1


def test_it_can_be_started_anew_stopped_and_started_with_what_is_left() -> None:
    one = Timed(30.0)
    one.loop.awake(29.0)
    one.timer.start(30.0)
    one.loop.awake(20.0)
    left = one.timer.stop()
    assert left == pytest.approx(10.0)
    one.loop.awake(100.0)
    assert one.rang == []
    one.timer.start(left)
    one.loop.awake(9.9)
    assert one.rang == []
    one.loop.awake(0.2)
    assert len(one.rang) == 1


def test_a_shorter_time_than_the_one_before_is_kept() -> None:
    one = Timed(600.0)
    one.loop.awake(3.0)
    one.timer.start(0.2)
    one.loop.awake(0.2)
    assert one.rang == [pytest.approx(3.2)]


@given(
    st.floats(0.1, 300.0),
    st.lists(st.tuples(st.floats(0.1, 60.0), st.floats(0.1, 10_000.0)), max_size=8),
)
def test_however_often_it_sleeps_it_rings_after_its_time_awake_give_or_take_a_look(
    seconds: float, turns: list[tuple[float, float]]
) -> None:
    one, slept = Timed(seconds), 0.0
    for up, down in turns:
        one.loop.awake(up)
        if one.rang:
            break
        one.loop.asleep(down)
        slept += down
    one.loop.awake(seconds + 2.1 * len(turns) + 0.1)
    (rang,) = one.rang
    # A short sleep between two looks is not noticed; what waited is read after a long one.
    assert seconds - 6.1 * len(turns) - 0.01 <= rang - slept <= seconds + 2.1 * len(turns) + 0.01


async def test_a_time_out_is_one() -> None:
    with pytest.raises(TimeoutError):
        async with awake_timeout(0.01):
            await asyncio.Event().wait()


async def test_a_loop_that_stood_still_reads_before_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake, "_LATE", 0.05)
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with awake_timeout(0.1):
        loop.call_soon(time.sleep, 0.4)  # the process is stopped, as far as the loop can tell
        loop.call_later(0.3, arrived.set)  # what came meanwhile
        await arrived.wait()


async def test_a_stop_from_outside_is_no_time_out() -> None:
    async def waits() -> None:
        async with awake_timeout(600.0):
            await asyncio.Event().wait()

    waiting = asyncio.create_task(waits())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
