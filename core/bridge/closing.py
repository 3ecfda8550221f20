"""Generators that are left early, closed one after another from without inwards.

A loop that ends closes all generators that it knows at once: one of them then closes another that the loop is closing
already, which Python tells as an error, and connections are let go in the middle. So the loop is told of the outermost
alone, and that one closes what lies within.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from sys import get_asyncgen_hooks, set_asyncgen_hooks
from types import coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator

T = TypeVar("T")


# Closings, each with what the loop knows of it.
_later: set[tuple[asyncio.Task[None], AsyncGenerator[None, None]]] = set()


async def closed_within(events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """The same events; closing it closes them, and whatever generator was begun to make them."""
    if isinstance(get_asyncgen_hooks().firstiter, _Untold):  # what is around them hides and closes it all
        async with aclosing(events):
            async for event in events:
                yield event
        return
    inner = _Inner()
    is_cancelled = False
    try:
        while True:
            try:
                event = await _hidden(anext(events), inner.finalizer)
            except StopAsyncIteration:
                return
            if inner.left:
                await inner.close_left()
            try:
                yield event
            except asyncio.CancelledError:
                is_cancelled = True
                raise
    finally:
        if is_cancelled:
            await _close_later(inner.close(events))
        else:
            await inner.close(events)


async def _close_later(closing: Coroutine[Any, Any, None]) -> None:
    """Close in a task that the loop's end waits for.

    A loop that ends cancels what would close the generators that were left, and Python then closes such a one again as
    soon as it waits for anything.
    """
    task = asyncio.create_task(closing)
    keeper = _ended(task)
    await known_to_loop(keeper)
    both = (task, keeper)
    _later.add(both)
    task.add_done_callback(lambda _: _later.discard(both))


async def _ended(task: asyncio.Task[None]) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await asyncio.wait({task})


async def known_to_loop(generator: AsyncGenerator[T, None]) -> T:
    """The first item of a generator that the loop closes at its end, whatever it is begun within.

    Args:
        generator: It must come to its first item without waiting.
    """
    hooks = here = get_asyncgen_hooks()
    while isinstance(here.firstiter, _Untold):
        here = here.firstiter.usual
    set_asyncgen_hooks(*here)
    try:
        return await anext(generator)
    finally:
        set_asyncgen_hooks(*hooks)


class _Inner:
    """The generators that are begun while events are made: the loop knows none of them."""

    __slots__ = ("_is_over", "finalizer", "left")

    def __init__(self) -> None:
        self.left: list[AsyncGenerator[Any, None]] = []  # that nobody holds any more, and which are not closed
        self._is_over = False
        usual = get_asyncgen_hooks().finalizer

        def finalizer(left: AsyncGenerator[Any, None]) -> None:
            if not self._is_over:
                self.left.append(left)
            elif usual is not None:
                usual(left)

        self.finalizer = finalizer

    async def close(self, events: AsyncGenerator[Any, None]) -> None:
        """Close the outermost of them, then what it left."""
        try:
            await _hidden(events.aclose(), self.finalizer)
        finally:
            try:
                await self.close_left()
            finally:
                self._is_over = True

    async def close_left(self) -> None:
        """Close those that were left."""
        cancelled: asyncio.CancelledError | None = None
        while self.left:
            try:
                await _hidden(_closed(self.left.pop(0)), self.finalizer)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled


async def _closed(left: AsyncGenerator[Any, None]) -> None:
    """Close what was left; how that fails is told to nobody."""
    with suppress(Exception):
        await left.aclose()


@coroutine
def _hidden(step: Any, finalizer: Callable[[AsyncGenerator[Any, None]], None]) -> Generator[Any, Any, Any]:
    """Wait for something; the loop is not told of generators that begin meanwhile.

    The hooks are the thread's, so they are set for one step of it at a time: between two, other tasks have theirs.
    """
    steps = step.__await__()
    given: Any = None
    error: BaseException | None = None
    while True:
        usual = get_asyncgen_hooks()
        set_asyncgen_hooks(_Untold(usual), finalizer)
        try:
            waited = steps.send(given) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value
        finally:
            set_asyncgen_hooks(*usual)
        given = error = None
        try:
            given = yield waited
        except BaseException as thrown:  # noqa: BLE001 - whatever it is, it is for the step
            error = thrown


class _Untold:
    """Is called with a generator that begins, and tells nobody."""

    __slots__ = ("usual",)

    def __init__(self, usual: Any) -> None:
        self.usual = usual

    def __call__(self, begun: AsyncGenerator[Any, None]) -> None:
        """It is not told."""
