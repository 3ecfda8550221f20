"""The processor's time that a call takes, so that other work on the machine counts for nothing."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from types import FrameType
from typing import Any

ENOUGH = 0.5  # seconds that a text of 300,000 characters may take
GROWTH = 2.6  # for twice the text
GROWTH_OF_HALF = 2.35  # from half the text: what grows by 2.6 from here on has grown by this much until here
_COUNTED = 0.007  # seconds in which an idle core counts, see `slowness`
_PARSED = 0.065  # seconds in which one with fast memory parses `_PAGE`
_STAYS = 2.0  # seconds for which what was found of the machine is taken to be so still: to find it takes 0.2
_PAGE = '<b class="x">word</b> ' * (300_000 // 22)
_found: list[tuple[float, float]] = []  # when the machine was asked last, and what was found
Call = Callable[[], Any]


class TookTooLong(BaseException):
    """Not an `Exception`, so that nothing that is measured takes it for its own."""


@cache
def _end_what_takes_too_long() -> None:
    """Listen for the timer, which runs while something is measured; to begin anew each time took longer than that."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TookTooLong

    signal.signal(signal.SIGVTALRM, end)


def seconds_of(make: Callable[[], Call], *, times: int = 1, most: float = 20.0) -> float:
    """The least that a call took; `make` prepares each, which is not measured."""
    least = most
    _end_what_takes_too_long()
    for _ in range(times):
        call = make()
        collecting = gc.isenabled()
        gc.disable()
        begun = time.thread_time()
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, most)
            try:
                call()
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            least = min(least, time.thread_time() - begun)
        except TookTooLong:
            return most
        finally:
            if collecting:
                gc.enable()
    return least


def is_in_time(seconds: float, most: float) -> bool:
    """Whether a call took no more than that, or no more than a machine as slow as this one now needs for it."""
    return seconds <= most or seconds <= most * slowness()


def slowness() -> float:
    """How much longer calls take now than on a core that nobody else uses: neighbours share its caches and memory."""
    if not _found or time.monotonic() - _found[-1][0] > _STAYS:
        _found[:] = [(time.monotonic(), _slowness())]
    return _found[-1][1]


def _slowness() -> float:
    """What `slowness` finds.

    Counting tells of the core alone. What reads a text makes many small objects as well, so a peer that does is asked
    too: the slower of both speaks.
    """
    counted = seconds_of(lambda: _count, times=3) / _COUNTED
    return max(1.0, counted, seconds_of(_peer, times=3) / _PARSED)


def _count() -> None:
    sum(number * number for number in range(100_000))


def _peer() -> Call:
    parser = _Collecting()
    return lambda: parser.feed(_PAGE)


class _Collecting(HTMLParser):
    """The standard library's parser, keeping what it finds."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[object] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(tag)

    def handle_data(self, data: str) -> None:
        self.found.append(data)
