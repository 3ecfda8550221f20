"""Threads for tools that are plain functions, bounded in number; and the progress that tools report from any thread."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


class ToolThreads:
    """At most `limit` threads at a time, usable from any loop.

    A call that is cancelled leaves its thread behind: the thread keeps its place until the function returns. The
    threads are daemons, so a function that never returns does not keep the program from ending.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._lock = threading.Lock()  # a thread's lock: the places are shared between loops
        self._waiting: deque[Future[None]] = deque()

    async def run(self, work: Callable[[], T], *, name: str) -> T:
        """Run `work` in a thread and wait for it; `name` is for the log."""
        await self._enter()
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def body() -> None:
            result: Any = None
            failure: BaseException | None = None
            try:
                result = context.run(work)
            except BaseException as error:  # noqa: BLE001 - carried over to the one who waits
                failure = error
            finally:
                self._leave()
            try:
                loop.call_soon_threadsafe(_settle, outcome, result, failure)
            except RuntimeError:  # the loop has ended meanwhile: nobody waits any more
                _log.info("The tool %r returned after its program had gone on.", name)

        threading.Thread(target=body, name=f"tool {name}", daemon=True).start()
        try:
            return await outcome
        except asyncio.CancelledError:
            _log.warning("The tool %r still works in its thread; nobody waits for it any more.", name)
            raise

    async def _enter(self) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            place: Future[None] = Future()
            self._waiting.append(place)
        try:
            await asyncio.wrap_future(place)
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it came in the same moment: hand it on
                self._leave()
            raise

    def _leave(self) -> None:
        with self._lock:
            while self._waiting:
                place = self._waiting.popleft()
                if place.set_running_or_notify_cancel():
                    place.set_result(None)
                    return
            self._free += 1


def _settle(outcome: asyncio.Future[Any], result: object, failure: BaseException | None) -> None:
    if outcome.done():
        return
    if failure is None:
        outcome.set_result(result)
    elif isinstance(failure, StopIteration):  # a future refuses this one
        outcome.set_exception(RuntimeError("The tool raised StopIteration."))
    else:
        outcome.set_exception(failure)


Follow: TypeAlias = Callable[[str, str, float | None, float | None], None]
Progress: TypeAlias = Callable[..., None]


class ProgressReporter:
    """The `progress` of one call: `progress("Reading page 3", 3, 10)`; done and total may be left out.

    Args:
        follow: Gets the call's id, the text, what is done and the total; always on the loop that runs the call.
    """

    def __init__(self, call_id: str, follow: Follow | None) -> None:
        self._call_id = call_id
        self._follow = follow
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._over = False

    def __call__(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Say how far it is; nothing where nobody follows, or after the end."""
        if self._follow is None or self._over:
            return
        if threading.get_ident() == self._thread:
            self._tell(text, done, total)
            return
        try:
            self._loop.call_soon_threadsafe(self._tell, text, done, total)
        except RuntimeError:  # the loop has ended: nobody follows any more
            self._over = True

    def end(self) -> None:
        """From now on nothing is told: a thread that was left behind may still talk."""
        self._over = True

    def _tell(self, text: str, done: float | None, total: float | None) -> None:
        if self._follow is not None and not self._over:
            self._follow(self._call_id, str(text), done, total)
