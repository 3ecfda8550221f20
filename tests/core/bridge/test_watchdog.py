"""A loop that stands still is told once, with the place and without a word of anybody's."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
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
        self.told_of_start: list[str] = []
        self.starting = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self.thread.start()
        assert self._ready.wait(10)

    def _run(self) -> None:
        self.watchdog: Any = Watchdog(
            self.loop,
            clock=self.clock,
            tell=self.told.append,
            tell_of_start=self.told_of_start.append,
            starts=lambda: self.starting,
        )
        self._ready.set()
        self.loop.run_forever()

    def block(self, seconds: float, within: Callable[[Callable[[], None]], None] = lambda work: work()) -> None:
        """Block the loop until the watchdog has looked where it is, while the clock goes on.

        Args:
            within: Calls what blocks.
        """
        begun, looked, where = threading.Event(), threading.Event(), self.watchdog._where
        probing = threading.Thread(target=self.watchdog.probe)

        def look() -> str:
            found = where()
            looked.set()
            return found

        def blocks() -> None:
            begun.set()
            assert looked.wait(10)
            self.clock.now += seconds

        def stand_still(key: str) -> None:
            within(blocks)

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


def deep(work: Callable[[], None], depth: int = 30) -> None:
    """Calls it below many calls of our own and of the standard library in turn."""
    functools.reduce(lambda _, __: deep(work, depth - 1) if depth else work(), [None, None])


def test_the_line_begins_with_the_innermost_call_and_stays_short(one: Watched) -> None:
    one.block(0.8, within=deep)
    (line,) = one.told
    places = line.partition(" at: ")[2].split(" < ")
    assert len(places) == 5
    assert "threading.py" in places[0], "who blocks, whosever it is"
    assert ":blocks" in places[1]
    assert all("test_watchdog.py" in place for place in places[1:])
    assert len(line) < 400


def test_an_import_is_told_to_whoever_asks_alone(one: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package is imported once: who waits for the address of the page can do nothing about it."""
    (tmp_path / "slowly_imported.py").write_text("import builtins\nbuiltins.slowly_imported()\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))

    def imported(work: Callable[[], None]) -> None:
        monkeypatch.setattr("builtins.slowly_imported", work, raising=False)
        import_module("slowly_imported")

    one.block(0.8, within=imported)
    assert one.told == []
    assert ":imported" in one.told_of_start[0]
    assert "<frozen" not in one.told_of_start[0]
    one.block(0.8)
    assert len(one.told) == 1, "and what is no import, to everybody"


def test_before_the_start_is_over_nobody_is_warned(one: Watched) -> None:
    one.starting = True
    one.block(0.8)
    assert (one.told, len(one.told_of_start)) == ([], 1)
    one.starting = False
    one.block(0.8)
    assert (len(one.told), len(one.told_of_start)) == (1, 1)


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
