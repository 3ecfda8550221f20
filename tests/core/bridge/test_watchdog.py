"""A loop that stands still is told once, with the place and without a word of anybody's."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from core.bridge import sync
from core.bridge.watchdog import Watchdog, watched

SECRET = "sk-a-secret-of-the-user"


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A loop in a thread of its own, and a watchdog that is told when to look."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.told: list[str] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self.thread.start()
        assert self._ready.wait(10)

    def _run(self) -> None:
        self.watchdog: Any = Watchdog(self.loop, clock=self.clock, tell=self.told.append)
        self._ready.set()
        self.loop.run_forever()

    def block(self, seconds: float) -> None:
        """Block the loop until the watchdog has looked where it is, while the clock goes on."""
        begun, looked, where = threading.Event(), threading.Event(), self.watchdog._where
        probing = threading.Thread(target=self.watchdog.probe)

        def look() -> str:
            found = where()
            looked.set()
            return found

        def stand_still(key: str) -> None:
            begun.set()
            assert looked.wait(10)
            self.clock.now += seconds

        self.watchdog._where = look
        self.loop.call_soon_threadsafe(stand_still, SECRET)
        assert begun.wait(10)
        probing.start()
        probing.join(10)

    def end(self) -> None:
        self.watchdog.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


@pytest.fixture
def one() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.end()


def test_a_stall_is_told_with_its_place_and_nothing_that_was_said(one: Watched) -> None:
    one.block(0.8)
    (line,) = one.told
    assert "at least 0.8 s" in line
    assert "core/bridge/test_watchdog.py" in line
    assert ":stand_still" in line
    assert SECRET not in line


def test_a_short_stall_is_not_told(one: Watched) -> None:
    one.block(0.2)
    assert one.told == []


def test_a_loop_that_answers_is_not_told_of(one: Watched) -> None:
    for _ in range(3):
        assert one.watchdog.probe()
        one.clock.now += 0.5
    assert one.told == []


def test_a_process_that_did_not_run_is_no_stall_of_the_loop(one: Watched) -> None:
    """The clock jumps between question and answer, but the loop only waited for events."""
    answer = one.watchdog._answer

    def late() -> None:
        one.clock.now += 60
        answer()

    one.watchdog._answer = late
    assert one.watchdog.probe()
    assert one.told == []


def test_a_closed_loop_ends_the_watch() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    assert not Watchdog(loop).probe()


def test_a_stalled_loop_is_found_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    async def stalls() -> None:
        with watched(asyncio.get_running_loop()):
            until = time.monotonic() + 20
            while not caplog.records and time.monotonic() < until:
                time.sleep(0.8)
                await asyncio.sleep(0.01)

    asyncio.run(stalls())
    assert "stood still" in caplog.text
    assert ":stalls" in caplog.text


def test_the_loop_of_the_library_is_watched(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def stalls() -> None:
        until = time.monotonic() + 20
        while not caplog.records and time.monotonic() < until:
            time.sleep(0.8)
            await asyncio.sleep(0.01)

    sync.run(stalls())
    assert ":stalls" in caplog.text
