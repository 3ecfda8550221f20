"""`sys.exit()` and Ctrl-C in other people's code, brought to the caller instead of ending a loop.

asyncio lets `SystemExit` and `KeyboardInterrupt` of a task through to `run_forever`: the loop stops, and with it every
other reply on it. A `ProgramEnd` is an exception like any other to asyncio; the outermost call turns it back into what
was raised, so that the program which asked ends as its author meant, and nobody else's does.
"""

from __future__ import annotations

from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

T = TypeVar("T")

_within: ContextVar[bool] = ContextVar("an outer call will release what ends the program", default=False)


class ProgramEnd(BaseException):
    """A `SystemExit` or `KeyboardInterrupt` on its way to the program that asked.

    It is no `Exception`, so that nothing takes it for a failure of a tool or of a model.

    Args:
        ending: What was raised.
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


async def released_events(events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """The same events, released; closing it closes them."""
    with released():
        async with aclosing(events):
            async for event in events:
                yield event


def is_within() -> bool:
    """Whether an outer call releases what ends the program."""
    return _within.get()
