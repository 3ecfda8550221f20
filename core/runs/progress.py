"""How far tools have come, in the log of a run: at most four times a second for each call, and the last one always."""

from __future__ import annotations

import asyncio
import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.runs.log import ToolProgress

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY = 0.25
_LONGEST = 500  # characters of what a tool says


@dataclass(slots=True)
class _Told:
    """What is held back of one call until its time comes."""

    at: float
    held: ToolProgress | None = None
    timer: asyncio.TimerHandle | None = None


class Progress:
    """Takes what tools tell, from any thread.

    Args:
        append: Puts an event into the log.
    """

    def __init__(self, append: Callable[[ToolProgress], None]) -> None:
        self._append = append
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._calls: dict[str, _Told] = {}
        self._over: set[str] = set()

    def __call__(self, call_id: str, text: str, done: float | None = None, total: float | None = None) -> None:
        """Tell how far a call has come; what comes after its end is passed over."""
        progress = ToolProgress(call_id, str(text)[:_LONGEST], _number(done), _number(total))
        if threading.get_ident() == self._thread:
            self._take(progress)
        else:
            self._loop.call_soon_threadsafe(self._take, progress)

    def end(self, call_id: str) -> None:
        """The call is over: what was held back is told now, and nothing after it."""
        self._over.add(call_id)
        told = self._calls.pop(call_id, None)
        if told is not None:
            self._tell(told)

    def close(self) -> None:
        """The run is over."""
        for call_id in list(self._calls):
            self.end(call_id)

    def _take(self, progress: ToolProgress) -> None:
        call_id, now = progress.call_id, self._loop.time()
        if call_id in self._over:
            return
        told = self._calls.setdefault(call_id, _Told(-math.inf))
        told.held = progress
        if told.timer is None:
            if now - told.at >= _EVERY:
                self._tell(told)
            else:
                told.timer = self._loop.call_at(told.at + _EVERY, self._tell, told)

    def _tell(self, told: _Told) -> None:
        if told.timer is not None:
            told.timer.cancel()
            told.timer = None
        if told.held is not None:
            self._append(told.held)
            told.held, told.at = None, self._loop.time()


def _number(value: object) -> float | None:
    """A number that is JSON, or none."""
    return value if isinstance(value, int | float) and math.isfinite(value) else None
