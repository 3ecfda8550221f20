"""Waits for each piece of a reply, but not for ever: one timer for all pieces, which costs nothing while they come."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

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

    __slots__ = ("_cancelling", "_handle", "_limit", "_loop", "_over", "_since", "_task")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None  # who waits now
        self._since = self._limit = 0.0
        self._cancelling = 0
        self._over = False

    def __enter__(self) -> Self:
        """Begin; the timer starts with the first wait."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put the timer away."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    async def next(self, pieces: AsyncIterator[bytes], seconds: float) -> bytes | None:
        """The next piece; `None` when there is none.

        Raises:
            TimeoutError: Nothing came for so many seconds.
        """
        task = self._task = asyncio.current_task()
        self._cancelling = task.cancelling() if task else 0
        self._since, self._limit = self._loop.time(), seconds
        due = self._since + seconds
        if self._handle is None:
            self._handle = self._loop.call_at(due, self._ring)
        elif self._handle.when() > due:
            self._handle.cancel()
            self._handle = self._loop.call_at(due, self._ring)
        try:
            return await anext(pieces, None)
        except asyncio.CancelledError as error:
            if self._over and task is not None and task.uncancel() <= self._cancelling:
                raise TimeoutError from error
            raise
        finally:
            self._task = None

    def _ring(self) -> None:
        self._handle = None
        if self._task is None:  # nobody waits; the next who does winds it up again
            return
        due = self._since + self._limit
        if self._loop.time() < due:
            self._handle = self._loop.call_at(due, self._ring)
            return
        self._over = True
        self._task.cancel()
