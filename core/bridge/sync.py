"""Plain calls and iterators over coroutines: one daemon thread runs one event loop for the whole process.

HTTP connections and server sessions belong to the loop that opened them, so all synchronous callers share it.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import aclosing
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeAlias, TypeVar

from core.bridge.cancellation import contained, released
from core.bridge.watchdog import Watchdog
from core.errors import ParlourError

T = TypeVar("T")

Post: TypeAlias = Callable[[T], None]
Pump: TypeAlias = Callable[[Post[T]], Coroutine[Any, Any, None]]

_CLOSING_SECONDS = 5.0
_EXIT_SECONDS = 2.0

_log = logging.getLogger(__name__)

# The loops whose threads wait in a synchronous call: what they wait for must not wait for them.
_held_up: ContextVar[tuple[asyncio.AbstractEventLoop, ...]] = ContextVar("loops held up", default=())


class LoopEndedError(ParlourError):
    """The loop that would have answered has ended: the program ends, or the process was forked in the middle."""

    def __init__(self) -> None:
        super().__init__("The loop that makes the reply has ended, so it cannot come.", hint="Ask again.")


def new_loop() -> asyncio.AbstractEventLoop:
    """The quicker loop where there is one (not on Windows): twenty threads have their first words a sixth sooner."""
    try:
        import uvloop  # here, so that nobody pays for it who never runs the loop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class _LoopThread(threading.Thread):
    """A daemon thread that runs an event loop until the interpreter ends."""

    def __init__(self) -> None:
        super().__init__(name="parlour-loop", daemon=True)
        self.loop = new_loop()
        self._waiting: deque[tuple[Callable[[], None], Context]] = deque()
        self._is_starting = False
        self._end_begun: asyncio.Task[None] | None = None
        self._is_ending = False
        self._is_over = False
        self._fails: dict[object, Callable[[BaseException], None]] = {}  # for each caller that waits
        self._fails_lock = threading.Lock()

    def expect(self, caller: object, fail: Callable[[BaseException], None]) -> None:
        """Call `fail` if the loop ends before `forget`: nobody waits for ever.

        Raises:
            LoopEndedError: It has ended.
        """
        with self._fails_lock:
            if self._is_over:
                raise LoopEndedError
            self._fails[caller] = fail

    def forget(self, caller: object) -> None:
        """The caller waits no more."""
        with self._fails_lock:
            self._fails.pop(caller, None)

    def forked(self) -> None:
        """In the child of a fork: the thread was not copied, so whoever waits here would do so for ever."""
        self._fails_lock = threading.Lock()  # its owner may have been another thread, which was not copied either
        self._fail_all()

    def _fail_all(self) -> None:
        with self._fails_lock:
            self._is_over = True
            fails, self._fails = list(self._fails.values()), {}
        for fail in fails:
            fail(LoopEndedError())

    def begin(self, start: Callable[[], None], context: Context) -> None:
        """Call `start` on the loop; from any thread.

        Of many that come at once one begins in each turn of the loop. If all did in one, the first of them would have
        its answer only after the last had sent its question.
        """
        self._waiting.append((start, context))
        self.loop.call_soon_threadsafe(self._kick)

    def _kick(self) -> None:
        if not self._is_starting:
            self._start_next()

    def _start_next(self) -> None:
        self._is_starting = False
        if not self._waiting:
            return
        start, context = self._waiting.popleft()
        context.run(start)
        if self._waiting:
            self._is_starting = True
            self.loop.call_soon(self._start_next)

    def run(self) -> None:
        asyncio.set_event_loop(self.loop)
        # For whoever asks: a program that sets up no logging has its terminal to itself.
        watchdog = Watchdog(self.loop, tell=_log.info)
        watchdog.start()
        try:
            while not self._is_ending:
                self._run_on()
        finally:
            watchdog.stop()
            self._fail_all()
            self.loop.close()

    def _run_on(self) -> None:
        """Run the loop until it is stopped; the exception that stopped it is in the task that raised it."""
        try:
            self.loop.run_forever()
        except Exception:  # noqa: BLE001 - the loop itself is broken; whoever waits is told
            _log.exception("Parlour's loop failed.")
            self._is_ending = True
        except BaseException as error:  # noqa: BLE001 - somebody else's code; everybody else's replies go on
            _log.warning("Code on Parlour's loop raised %s; the loop goes on.", type(error).__name__)

    @property
    def is_ending(self) -> bool:
        """Whether what still runs is being cancelled."""
        return self._end_begun is not None

    def stop(self) -> None:
        """End what still runs, let it close what it opened, and stop the loop."""
        if self.is_alive():
            self.loop.call_soon_threadsafe(self._begin_end)
            self.join(timeout=_EXIT_SECONDS)

    def _begin_end(self) -> None:
        self._end_begun = self.loop.create_task(self._end())

    async def _end(self) -> None:
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_EXIT_SECONDS / 2)
        await self.loop.shutdown_asyncgens()
        self._is_ending = True
        self.loop.stop()


class _Shared:
    """Holds the thread; a forked child finds it dead and starts its own."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._thread: _LoopThread | None = None

    def thread(self) -> _LoopThread:
        with self._guard:
            if self._thread is None or not self._thread.is_alive():
                self._thread = _LoopThread()
                self._thread.start()
                atexit.register(self._thread.stop)
            return self._thread

    def forked(self) -> None:
        """In the child of a fork."""
        self._guard = threading.Lock()
        if self._thread is not None:
            self._thread.forked()


_shared = _Shared()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_shared.forked)


def shared_loop() -> asyncio.AbstractEventLoop:
    """The loop that synchronous calls run on; it starts with the first of them."""
    return _shared.thread().loop


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the shared loop and wait for what it returns.

    Raises:
        RuntimeError: Called from the shared loop itself, which would wait for itself for ever.
        LoopEndedError: The loop ended before the answer came.
    """
    try:
        return next(pumped(lambda post: _answer(coroutine, post)))
    finally:
        coroutine.close()


def iterate(make: Callable[[], AsyncGenerator[T, None]]) -> Generator[T, None, None]:
    """Iterate over an async generator. Closing the iterator closes the generator, on its own loop.

    Args:
        make: Makes the generator; called on the shared loop when the first item is asked for.

    Raises:
        RuntimeError: Iterated on the shared loop itself.
    """
    return pumped(lambda post: _forward(make, post))


async def on_loop(loop: asyncio.AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await a coroutine on the loop that it belongs to, in the context of the caller.

    Args:
        make: Makes the coroutine.

    Raises:
        RuntimeError: The loop has ended, or its thread waits for this very call.
    """
    if asyncio.get_running_loop() is loop:
        return await make()
    if loop in _held_up.get():
        raise RuntimeError("The loop that would have to answer waits for this call: call it asynchronously.")
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), loop))


def pumped(pump: Pump[T]) -> Generator[T, None, None]:
    """Run `pump` on the shared loop and yield what it posts; leaving early cancels it and waits for its end.

    Args:
        pump: Given a function that takes one item, returns the coroutine that calls it.

    Raises:
        RuntimeError: Iterated on the shared loop itself.
        LoopEndedError: The loop ended before the pump did.
    """
    thread = _shared.thread()
    if thread is threading.current_thread():
        raise RuntimeError("A synchronous call on Parlour's own loop would wait for itself: use the async form.")
    queue: SimpleQueue[T | _End] = SimpleQueue()
    job: _Job[T] = _Job(pump, queue)
    thread.expect(job, job.fail)
    try:
        thread.begin(job.start, _context())
        while not isinstance(item := queue.get(), _End):
            yield item
        job.over = True
        if isinstance(item.error, asyncio.CancelledError) and thread.is_ending:
            raise LoopEndedError from item.error  # nobody cancelled it but the end
        if item.error is not None:
            with released():
                raise item.error
    finally:
        thread.forget(job)
        job.leave(thread)


@dataclass(frozen=True, slots=True)
class _End:
    """The last thing in a queue: the pump returned, or failed."""

    error: BaseException | None


class _Job(Generic[T]):
    """One pump on the loop, and the queue that it fills."""

    def __init__(self, pump: Pump[T], queue: SimpleQueue[T | _End]) -> None:
        self.over = False
        self._pump = pump
        self._queue = queue
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self.over:  # left while it waited for its turn
            self._queue.put(_End(asyncio.CancelledError()))
            return
        self._task = asyncio.ensure_future(self._pumped())
        self._task.add_done_callback(self._ended)

    async def _pumped(self) -> None:
        with contained():
            await self._pump(self._queue.put)

    def fail(self, error: BaseException) -> None:
        """End the wait: the loop will not."""
        self._queue.put(_End(error))

    def leave(self, thread: _LoopThread) -> None:
        """Stop the pump, and wait until it has closed what it opened."""
        if self.over or not thread.is_alive():
            return
        self.over = True
        thread.loop.call_soon_threadsafe(self._cancel)
        # The garbage collector may close an iterator on the loop's own thread: waiting there would never end.
        if thread is threading.current_thread():
            return
        try:
            while not isinstance(self._queue.get(timeout=_CLOSING_SECONDS), _End):
                pass
        except Empty:
            return

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self._queue.put(_End(error))


def _context() -> Context:
    """The caller's, which knows if its loop is held up."""
    context = copy_context()
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return context
    context.run(_held_up.set, (*_held_up.get(), loop))
    return context


async def _forward(make: Callable[[], AsyncGenerator[T, None]], post: Post[T]) -> None:
    async with aclosing(make()) as source:
        async for item in source:
            post(item)


async def _answer(coroutine: Coroutine[Any, Any, T], post: Post[T]) -> None:
    post(await coroutine)
