"""The processor's time that a call takes, so that other work on the machine counts for nothing."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENOUGH = 0.5  # seconds that a text of 300,000 characters may take
GROWTH = 2.6  # for twice the text
GROWTH_OF_HALF = 2.35  # from half the text: what grows by 2.6 from here on has grown by this much until here
_COUNTED = 0.007  # seconds in which an idle core counts, see `slowness`
Call = Callable[[], Any]


class TookTooLong(BaseException):
    """Not an `Exception`, so that nothing that is measured takes it for its own."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Ends what uses more of the processor than that."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds_of(make: Callable[[], Call], *, times: int = 1, most: float = 20.0) -> float:
    """The least that a call took; `make` prepares each, which is not measured."""
    least = most
    for _ in range(times):
        call = make()
        collecting = gc.isenabled()
        gc.disable()
        begun = time.thread_time()
        try:
            with within(most):
                call()
            least = min(least, time.thread_time() - begun)
        except TookTooLong:
            return most
        finally:
            if collecting:
                gc.enable()
    return least


def slowness() -> float:
    """How much longer a call takes now than on a core that nobody else uses: neighbours share its caches and units."""

    def count() -> None:
        sum(number * number for number in range(100_000))

    return max(1.0, seconds_of(lambda: count, times=3) / _COUNTED)
