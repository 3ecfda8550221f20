"""How long a run may take, how much it may write, and when it waits for its user without a process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from core.bridge.watchdog import AwakeTimer
from core.messages.events import CallDelta, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.messages.events import Event


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


class Length:
    """Counts what all model calls of a run write, those of agents that are called as tools among them.

    Args:
        limit: Characters: text, thoughts and arguments.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._over = asyncio.Event()

    def count(self, event: Event) -> None:
        """Count what an event adds."""
        match event:
            case TextDelta(text) | ReasoningDelta(text) | CallDelta(_, text):
                self._left -= len(text)
            case _:
                pass
        if self.exceeded:
            self._over.set()

    @property
    def exceeded(self) -> bool:
        """Whether more was written than may be."""
        return self._left < 0

    async def over(self) -> None:
        """Wait until more was written than may be."""
        await self._over.wait()


class Resting:
    """Lets a run go that has waited for its user for a while and does nothing else.

    Args:
        after: Seconds; `None` for never.
        until: Says when silence becomes an answer, in Unix seconds; `None` while something else is done.
        rest: Lets it go.

    Attributes:
        until: When silence becomes an answer to a run that was let go.
    """

    def __init__(self, after: float | None, until: Callable[[], float | None], rest: Callable[[], None]) -> None:
        self._after = after
        self._until = until
        self._rest = rest
        self._timer: asyncio.TimerHandle | None = None
        self.until: float | None = None

    def stand(self, waiting: bool) -> None:  # noqa: FBT001 - the one thing it is told
        """The run begins to wait for its user, or does so no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if waiting and self._after is not None and self.until is None:
            self._timer = asyncio.get_running_loop().call_later(self._after, self._look)

    def _look(self) -> None:
        until = self._until()
        if until is None:
            self.stand(waiting=True)
        else:
            self.until = until
            self._rest()
