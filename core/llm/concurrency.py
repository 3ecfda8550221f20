"""Many questions under one limit, and blocking iterators as async generators."""

from __future__ import annotations

import asyncio
import threading
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from core.bridge.cancellation import contained
from core.errors import ParlourError, SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

T = TypeVar("T")
Q = TypeVar("Q")

DEFAULT_CONCURRENCY: Final = 8


async def in_order(
    ask: Callable[[Q], Awaitable[T]], questions: Sequence[Q], concurrency: int, *, keep_errors: bool
) -> list[T | ParlourError]:
    """Ask each question, at most `concurrency` at a time; returns the answers in order.

    Args:
        ask: Asks one question.
        concurrency: At least 1.
        keep_errors: Whether an error takes the place of its answer; else the first one cancels all and is raised.

    Raises:
        SettingsError: `concurrency` is no whole number from 1.
    """
    if type(concurrency) is not int or concurrency < 1:
        hint = "Give a whole number, at least 1."
        raise SettingsError(f"concurrency cannot be {concurrency!r}.", hint=hint, name="concurrency")
    answers: list[T | ParlourError | None] = [None] * len(questions)
    left = iter(enumerate(questions))
    tasks = [
        asyncio.create_task(_work(ask, left, answers, keep_errors=keep_errors))
        for _ in range(min(concurrency, len(questions)))
    ]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return cast("list[T | ParlourError]", answers)


async def _work(
    ask: Callable[[Q], Awaitable[T]],
    left: Iterable[tuple[int, Q]],
    answers: list[T | ParlourError | None],
    *,
    keep_errors: bool,
) -> None:
    for place, question in left:  # shared: a free worker takes the next
        try:
            with contained():
                answers[place] = await ask(question)
        except ParlourError as error:
            if not keep_errors:
                raise
            answers[place] = error


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


class _Worker(Generic[T]):
    """Iterates in a thread and passes the items to the loop; closes the iterator when told to leave."""

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self.queue: asyncio.Queue[T | _End] = asyncio.Queue()
        self.leaving = threading.Event()
        self._make = make
        self._loop = asyncio.get_running_loop()

    def work(self) -> None:
        try:
            with contained():
                self._iterate()
        except BaseException as error:  # noqa: BLE001 - re-raised in the reader
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
    """Iterate over what `make` returns in a thread; errors propagate as they are, an exit as `ProgramEnd`.

    Leaving early lets the thread close the iterator at its next item, without waiting for it.

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
