"""Work that is done whole, whoever is cancelled meanwhile; and `sys.exit()` and Ctrl-C of others' code, contained."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import CancelScope
from anyio.lowlevel import checkpoint_if_cancelled

from core.bridge.closing import closed_within

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Generator


T = TypeVar("T")

_within: ContextVar[bool] = ContextVar("an outer call will release what ends the program", default=False)


class ProgramEnd(BaseException):
    """A `SystemExit` or `KeyboardInterrupt` on its way to the program that asked.

    It is no `Exception`, so that nothing takes it for a failure of a tool or of a model.
    """

    def __init__(self, ending: SystemExit | KeyboardInterrupt) -> None:
        super().__init__(f"The program was told to end in the middle of a reply: {type(ending).__name__}.")
        self.ending = ending


@contextmanager
def contained() -> Generator[None, None, None]:
    """Around other people's code in a task or a thread: what would end the loop leaves as a `ProgramEnd`.

    Never around a `yield` of a generator: the context variable that it sets would leak into its consumer.
    """
    token = _within.set(True)
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as error:
        raise ProgramEnd(error) from error
    finally:
        _within.reset(token)


@contextmanager
def released() -> Generator[None, None, None]:
    """Around what a program calls: it gets what its own code raised, unless an outer call of Parlour's waits for it."""
    try:
        yield
    except ProgramEnd as end:
        if _within.get():
            raise
        raise end.ending from None


def released_events(events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """The same events, released; closing it closes them, and all that is within."""
    return closed_within(_released(events))


async def _released(events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    with released():
        async with aclosing(events):
            async for event in events:
                yield event


def is_within() -> bool:
    """Whether an outer call releases what ends the program."""
    return _within.get()


async def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` in a task of its own, to its end; only then does a caller that was cancelled hear of it."""
    task = asyncio.create_task(work)
    cancelled = await _ended(task)
    if cancelled is None:
        try:
            await checkpoint_if_cancelled()
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # it is the caller's no more, but nobody shall report it as forgotten
        raise cancelled
    return task.result()


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end; a caller that was cancelled meanwhile gets its result all the same."""
    task = asyncio.create_task(work)
    await _ended(task)
    return task.result()


async def result_for_all(work: asyncio.Future[T]) -> T:
    """The result of what others may wait for, too.

    A caller that is cancelled does not end it for them. Where nobody waits any more its failure is reported to nobody:
    who wants the same next begins anew, and hears of it then.
    """
    work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    if not work.done():
        await asyncio.wait({work})  # `asyncio.shield` would report it from Python 3.14 on
    return work.result()


async def _ended(task: asyncio.Task[Any]) -> asyncio.CancelledError | None:
    """Wait for the end of a task; the cancellation of the waiting one that came meanwhile, if any.

    The shield is for cancel scopes: they cancel a task that goes on waiting again in each turn of the loop, which would
    spin until the end.
    """
    cancelled: asyncio.CancelledError | None = None
    with CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
    return cancelled
