"""Leaves a service alone for a while after it failed again and again, so that nobody waits for it in vain."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

FAILURES: Final = 5
WITHIN_SECONDS: Final = 30.0
REST_SECONDS: Final = 30.0
MOST_KNOWN: Final = 1024
"""Services and keys that are remembered: on a shared page everybody brings a key of his own."""

Clock = Callable[[], float]


@dataclass(slots=True)
class Breaker:
    """Of one service and key. Five calls that failed within 30 s open it for 30 s; then one call may try.

    Safe in many threads. A call that `admit` let through says how it ended: `succeeded`, `failed` or `left`.

    Args:
        clock: Seconds that never go back.
    """

    clock: Clock = time.monotonic
    _failures: deque[float] = field(default_factory=lambda: deque[float](maxlen=FAILURES))
    _opened: float | None = None
    _trying: bool = False
    _guard: Lock = field(default_factory=Lock)

    def admit(self) -> float | None:
        """`None` lets a call through; else the seconds until one may try."""
        with self._guard:
            if self._opened is None:
                return None
            left = self._opened + REST_SECONDS - self.clock()
            if left > 0:
                return left
            if self._trying:
                return 1.0  # somebody is finding out
            self._trying = True
            return None

    def succeeded(self) -> None:
        """The service answered."""
        with self._guard:
            self._failures.clear()
            self._opened, self._trying = None, False

    def failed(self) -> None:
        """The service could not be reached, or broke down."""
        with self._guard:
            now = self.clock()
            self._failures.append(now)
            if self._trying or (len(self._failures) == FAILURES and now - self._failures[0] <= WITHIN_SECONDS):
                self._opened, self._trying = now, False

    def left(self) -> None:
        """The call ended without telling anything about the service: somebody else may try."""
        with self._guard:
            self._trying = False


@dataclass(slots=True)
class Breakers:
    """One breaker for each service and key."""

    _known: dict[Hashable, Breaker] = field(default_factory=dict["Hashable", Breaker])
    _guard: Lock = field(default_factory=Lock)

    def of(self, key: Hashable) -> Breaker:
        """The breaker that `key` names."""
        with self._guard:
            found = self._known[key] = self._known.pop(key, None) or Breaker()  # the last asked about stands last
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
            return found


@cache
def breakers() -> Breakers:
    """Those of this process."""
    return Breakers()
