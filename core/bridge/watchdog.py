"""Tells when an event loop stands still, and where; and time-outs that count only the time the process was awake."""

from __future__ import annotations

import asyncio
import logging
import sys
import sysconfig
import threading
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Protocol

from core.observing import count

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator
    from types import FrameType


_log = logging.getLogger(__name__)

LONGEST: Final = 0.5
"""Seconds that a loop may stand still before it is told."""
_IDLE: Final = 0.5  # between two probes: an idle process wakes twice a second for this
_BUSY: Final = 0.25
_WORKED: Final = 0.01  # seconds of CPU between two probes from which on a loop counts as busy
_FRAMES: Final = 5
_PARTS: Final = 3  # of a file's path: enough to find it, without the folders of its user
# Where a loop that only waits for the next event is; then it was the process that did not run, or nothing at all.
_WAITING: Final = (
    "selectors.py",
    "asyncio/runners.py",
    "asyncio/base_events.py",
    "bridge/sync.py",
    "uvicorn/server.py",
)
_OURS: Final = frozenset({__name__.partition(".")[0], "webui"})
_OTHERS: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})
_IMPORTING: Final = "<frozen importlib"


class Watchdog:
    """Asks a loop again and again, from a thread of its own, whether it answers.

    A stall of `LONGEST` seconds is noticed while the loop is busy; the first after some idle time at half as much more.
    The log gets files, lines and names of functions, never a value.

    Args:
        loop: The loop; `watch` is called on its thread.
        clock: Seconds, for tests.
        tell: Is given each line for the log.
        tell_of_start: Is given it in place of `tell` where something was being imported, which is done but once, and
            while `starts` says so.
        starts: Whether the process is still starting.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = _log.warning,
        tell_of_start: Callable[[str], None] = _log.info,
        starts: Callable[[], bool] = lambda: False,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._tell = tell
        self._tell_of_start = tell_of_start
        self._starts = starts
        self._imports = False
        self._thread_id = threading.get_ident()
        self._over = threading.Event()
        self._answered = threading.Event()
        self._answered_at = clock()
        self._cpu = _cpu_clock(self._thread_id)
        self._worked = 0.0

    def start(self) -> threading.Thread:
        """Begin to watch; ends with `stop`, or with the process."""
        thread = threading.Thread(target=self._watch, name="parlour-watchdog", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Watch no longer."""
        self._over.set()
        self._answered.set()

    def _watch(self) -> None:
        while not self._over.wait(self._pause()):
            if not self.probe():
                return

    def probe(self) -> bool:
        """Ask once, and wait for the answer. Returns whether there is still somebody to ask."""
        before, asked, stack = self._answered_at, self._clock(), ""
        self._answered.clear()
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:  # the loop is closed
            return False
        if not self._answered.wait(_BUSY):
            stack = self._where()
            self._answered.wait()
        if self._over.is_set():
            return False
        stood = self._answered_at - asked
        if stack and stood >= _BUSY and self._answered_at - before >= LONGEST:
            count("parlour.loop.stalls")
            tell = self._tell_of_start if self._imports or self._starts() else self._tell
            tell(f"The event loop stood still for at least {stood:.1f} s, at: {stack}")
        return True

    def _answer(self) -> None:
        self._answered_at = self._clock()
        self._answered.set()

    def _pause(self) -> float:
        """Until the next probe: a loop that has done nothing since the last one is asked less often."""
        before, self._worked = self._worked, self._cpu()
        return _BUSY if self._worked - before >= _WORKED else _IDLE

    def _where(self) -> str:
        """The calls that the loop's thread is in, the innermost first; nothing where it only waits."""
        # The only way to another thread's stack.
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        calls = list(_calls(frame))
        if not calls:
            return ""
        self._imports = any(one.f_code.co_filename.startswith(_IMPORTING) for one in calls)
        told = [one for at, one in enumerate(calls) if at == 0 or _tells(one)]
        return " < ".join(map(_place, told[:_FRAMES]))


def _calls(frame: FrameType | None) -> Iterator[FrameType]:
    """Those within the loop: what runs the loop may be an import, too."""
    while frame is not None and not frame.f_code.co_filename.replace("\\", "/").endswith(_WAITING):
        yield frame
        frame = frame.f_back


def _tells(frame: FrameType) -> bool:
    """Whether it is Parlour's, or a program's on top of it: those of packages between them only make a line long."""
    if str(frame.f_globals.get("__name__", "")).partition(".")[0] in _OURS:
        return True
    return not frame.f_code.co_filename.startswith((*_OTHERS, "<"))


def _place(frame: FrameType) -> str:
    file = "/".join(PurePath(frame.f_code.co_filename).parts[-_PARTS:])
    return f"{file}:{frame.f_lineno}:{frame.f_code.co_name}"


def _cpu_clock(thread_id: int) -> Callable[[], float]:
    """The CPU seconds of a thread; always 0 where the system does not tell those of another thread."""
    clock_of: Callable[[int], int] | None = getattr(time, "pthread_getcpuclockid", None)
    if clock_of is None:
        return lambda: 0.0
    clock = clock_of(thread_id)
    return lambda: time.clock_gettime(clock)


@contextmanager
def watched(loop: asyncio.AbstractEventLoop, starts: Callable[[], bool] = lambda: False) -> Generator[None]:
    """Watch the loop whose thread this is called on.

    Args:
        starts: Whether the process is still starting: who waits for its address is told nothing else.
    """
    watchdog = Watchdog(loop, starts=starts)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


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


class Clock:
    """Counts up to a limit.

    Args:
        limit: Seconds.
    """

    def __init__(self, limit: float) -> None:
        self._left = limit
        self._still = False
        self._over = asyncio.Event()
        self._timer: AwakeTimer | None = None

    def stand(self, still: bool) -> None:  # noqa: FBT001 - the one thing it is told
        """Stand still, or count again."""
        if still == self._still:
            return
        self._still = still
        if self._timer is None:
            return
        if still:
            self._left = self._timer.stop()
        else:
            self._timer.start(self._left)

    async def over(self) -> None:
        """Wait until the limit is reached. For one waiter."""
        self._timer = AwakeTimer(self._over.set)
        if not self._still:
            self._timer.start(self._left)
        try:
            await self._over.wait()
        finally:
            self._timer.cancel()


class Stand(Protocol):
    """Lets a clock stand still, or count again."""

    def __call__(self, *, still: bool) -> None:
        """What it is told."""
        ...


_STANDS: ContextVar[Stand | None] = ContextVar("stands", default=None)


@contextmanager
def stood_by(stand: Stand) -> Generator[None]:
    """What is `untimed` in here makes a clock stand still.

    Args:
        stand: Told when the first such part begins, and when the last one is over.
    """
    under_way = 0

    def count(*, still: bool) -> None:
        nonlocal under_way
        under_way += 1 if still else -1
        if under_way == int(still):
            stand(still=still)

    before = _STANDS.set(count)
    try:
        yield
    finally:
        _STANDS.reset(before)


@contextmanager
def untimed() -> Generator[None]:
    """The time in here counts for no limit: who waits cannot hurry it, as when a model is fetched."""
    stand = _STANDS.get()
    if stand is not None:
        stand(still=True)
    try:
        yield
    finally:
        if stand is not None:
            stand(still=False)


@asynccontextmanager
async def own_time(seconds: float) -> AsyncGenerator[None]:
    """As `asyncio.timeout`, without the time that is `untimed`. Raises TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(seconds) as limit:
        left = seconds

        def stand(*, still: bool) -> None:
            nonlocal left
            if still:
                left = (limit.when() or loop.time()) - loop.time()
            with suppress(RuntimeError):  # it is over, and something that began within it goes on
                limit.reschedule(None if still else loop.time() + left)

        with stood_by(stand):
            yield
