"""A blocking iterator, run in a worker thread, as an async generator."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from core.bridge.endings import contained

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


class _Worker(Generic[T]):
    """Iterates in a thread and hands what it gets to the loop; told to leave, it closes the iterator."""

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self.queue: asyncio.Queue[T | _End] = asyncio.Queue()
        self.leaving = threading.Event()
        self._make = make
        self._loop = asyncio.get_running_loop()

    def work(self) -> None:
        try:
            with contained():
                self._iterate()
        except BaseException as error:  # noqa: BLE001 - carried over to whoever reads; nothing is swallowed
            self._put(_End(error))
        else:
            self._put(_End(None))

    def _iterate(self) -> None:
        items = iter(self._make())
        try:
            for item in items:
                if self.leaving.is_set():
                    break
                self._put(item)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def _put(self, item: T | _End) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.queue.put_nowait, item)


async def from_blocking(make: Callable[[], Iterable[T]]) -> AsyncGenerator[T, None]:
    """Iterate over what `make` returns, in a thread of its own; errors come over as they are, an exit as `ProgramEnd`.

    Leaving early tells the thread to close the iterator at its next item; nobody waits for that.

    Args:
        make: Called in the thread.
    """
    worker = _Worker(make)
    context = copy_context()
    threading.Thread(target=partial(context.run, worker.work), name="parlour-model", daemon=True).start()
    try:
        while not isinstance(item := await worker.queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        worker.leaving.set()
