"""When a server that died may be started again: at once the first time, then after growing waits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST, _LONGEST = 1.0, 60.0  # seconds
_STEADY = 60.0  # seconds alive after which a server counts as healthy again


class Backoff:
    """Counts the deaths of one server.

    Args:
        clock: Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deaths = 0
        self._begun = self._next = clock()

    def begun(self) -> None:
        """The server is started now."""
        self._begun = self._clock()

    def failed(self) -> None:
        """It could not be started, or has died."""
        now = self._clock()
        self._deaths = 1 if now - self._begun > _STEADY else self._deaths + 1
        self._next = now + (0 if self._deaths == 1 else min(_FIRST * 2 ** min(self._deaths - 2, 10), _LONGEST))

    @property
    def wait(self) -> float:
        """Seconds until it may be started again; 0 for at once."""
        return max(0.0, self._next - self._clock())
