"""Timeouts of a streamed reply: for its first bytes, and for each further piece."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.bridge.watchdog import AwakeTimer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType
    from typing import Self

    from core.llm.request import ChatRequest

FIRST_BYTE_SECONDS: Final = 60.0
_FIRST_BYTE_HERE_SECONDS: Final = 600.0  # a local server may load a model or read a long prompt first
_IDLE_SECONDS: Final = 30.0
AFTER_END_SECONDS: Final = 0.2
"""To drain the few bytes after a reply, so that the connection can be reused."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to wait for the first bytes of the reply, and for more of it later."""

    first: float
    idle: float

    @classmethod
    def of(cls, request: ChatRequest, *, here: bool) -> Limits:
        """`generate_cfg["request_timeout"]` for both, else the defaults.

        Args:
            request: Its `generate` may hold `request_timeout`.
            here: Whether the service runs on this machine.
        """
        if asked := request.generate.get("request_timeout"):
            return cls(float(asked), float(asked))
        return cls(_FIRST_BYTE_HERE_SECONDS if here else FIRST_BYTE_SECONDS, _IDLE_SECONDS)


class IdleTimeout:
    """Raises `TimeoutError` when a stream stays silent for too long; a context manager.

        with IdleTimeout() as idle:
            while (piece := await idle.next(pieces, seconds)) is not None: ...

    One timer serves all pieces and costs nothing while they come. The time that the reader spends on a piece does not
    count.
    """

    __slots__ = ("_cancelling", "_expired", "_task", "_timer")

    def __init__(self) -> None:
        self._timer = AwakeTimer(self._expire)
        self._task: asyncio.Task[object] | None = None  # the one that waits now
        self._cancelling = 0
        self._expired = False

    def __enter__(self) -> Self:
        """The timer starts with the first wait."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel the timer."""
        self._timer.cancel()

    async def next(self, pieces: AsyncIterator[bytes], seconds: float) -> bytes | None:
        """The next piece; `None` when there is none.

        Raises:
            TimeoutError: Nothing came for so many seconds, not counting those in which this machine was asleep.
        """
        task = self._task = asyncio.current_task()
        self._cancelling = task.cancelling() if task else 0
        self._timer.start(seconds)
        try:
            return await anext(pieces, None)
        except asyncio.CancelledError as error:
            if self._expired and task is not None and task.uncancel() <= self._cancelling:
                raise TimeoutError from error
            raise
        finally:
            self._timer.stop()
            self._task = None

    def _expire(self) -> None:
        if self._task is not None:
            self._expired = True
            self._task.cancel()
