"""Time-outs that count only the time in which the process was awake: a laptop that sleeps makes nothing late."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

_STEP: Final = 5.0  # seconds between two looks at the clock, which is how exactly a sleep is noticed
_LATE: Final = 1.0  # a look that comes so much too late: the process was stopped, or its machine asleep
_NOTHING: Final = 0.001  # seconds: a loop calls a little too early, and the numbers are not exact
_LOOK_ONCE_MORE: Final = 2.0  # seconds after a sleep for what has waited in the sockets meanwhile


class AwakeTimer:
    """Calls back once when the process has been awake for so many seconds. For one event loop.

    Some clocks stand still while a machine sleeps and some do not, and none does while a process is stopped. So the
    clock is looked at every few seconds; where a look comes much too late, the time by which it is late does not count.

    Args:
        over: Called when the time is over.
        loop: Whose clock counts; the running loop by default.
    """

    __slots__ = ("_handle", "_last", "_left", "_loop", "_over")

    def __init__(self, over: Callable[[], object], *, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._over = over
        self._loop = loop or asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._left: float | None = None
        self._last = 0.0

    def start(self, seconds: float) -> None:
        """Count from now on, whatever was counted before. It costs next to nothing while a timer is set already."""
        self._left, self._last = seconds, self._loop.time()
        self._wind(self._last)

    def stop(self) -> float:
        """Stop counting; the seconds that are left. The timer may be started again."""
        left = self._left or 0.0
        if self._left is not None and self._handle is not None:
            left = max(0.0, left - self._awake(self._loop.time(), self._handle.when()))
        self._left = None
        return left

    def cancel(self) -> None:
        """Stop counting, for good."""
        self._left = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _wind(self, now: float) -> None:
        due = now + min(self._left or 0.0, _STEP)
        if self._handle is not None:
            if self._handle.when() <= due:
                return
            self._handle.cancel()
        self._handle = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        planned = self._handle.when() if self._handle is not None else 0.0
        self._handle = None
        if self._left is None:
            return
        now = self._loop.time()
        self._left -= self._awake(now, planned)
        self._last = now
        if self._left <= _NOTHING:
            if now - planned <= _LATE:
                self._left = None
                self._over()
                return
            self._left = _LOOK_ONCE_MORE
        self._wind(now)

    def _awake(self, now: float, planned: float) -> float:
        """Seconds awake since the last look."""
        late = now - planned
        return max(0.0, now - self._last - (late if late > _LATE else 0.0))


@asynccontextmanager
async def awake_timeout(seconds: float) -> AsyncGenerator[None]:
    """As `asyncio.timeout`, for time awake. Raises TimeoutError."""
    async with asyncio.timeout(None) as limit:
        timer = AwakeTimer(lambda: limit.reschedule(0.0))
        timer.start(seconds)
        try:
            yield
        finally:
            timer.cancel()
