"""Waits for each piece of a reply, but not for ever: one timer for all pieces, which costs nothing while they come."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from core.bridge.awake import AwakeTimer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType
    from typing import Self


class Patience:
    """Ends waiting that takes too long; a context manager, for one reader after the other.

        with Patience() as patience:
            while (piece := await patience.next(pieces, seconds)) is not None: ...

    The time that a reader takes with a piece does not count.
    """

    __slots__ = ("_cancelling", "_over", "_task", "_timer")

    def __init__(self) -> None:
        self._timer = AwakeTimer(self._ring)
        self._task: asyncio.Task[object] | None = None  # who waits now
        self._cancelling = 0
        self._over = False

    def __enter__(self) -> Self:
        """Begin; the timer starts with the first wait."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put the timer away."""
        self._timer.cancel()

    async def next(self, pieces: AsyncIterator[bytes], seconds: float) -> bytes | None:
        """The next piece; `None` when there is none.

        Raises:
            TimeoutError: Nothing came for so many seconds, in which this process was awake.
        """
        task = self._task = asyncio.current_task()
        self._cancelling = task.cancelling() if task else 0
        self._timer.start(seconds)
        try:
            return await anext(pieces, None)
        except asyncio.CancelledError as error:
            if self._over and task is not None and task.uncancel() <= self._cancelling:
                raise TimeoutError from error
            raise
        finally:
            self._timer.stop()
            self._task = None

    def _ring(self) -> None:
        if self._task is not None:
            self._over = True
            self._task.cancel()
