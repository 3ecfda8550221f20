"""Progress of tools, and what nested agents say and do, in the log of a run a few times a second."""

from __future__ import annotations

import asyncio
import math
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from core.messages.computed import own_event
from core.messages.events import CallDelta, Event, ItemAdded, ReasoningDelta, TextDelta, ToolFinished
from core.runs.log import NestedEvent, ToolProgress
from core.runs.rows import joined_text

if TYPE_CHECKING:
    from collections.abc import Callable


_PROGRESS_EVERY = 0.25
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
            if now - told.at >= _PROGRESS_EVERY:
                self._tell(told)
            else:
                told.timer = self._loop.call_at(told.at + _PROGRESS_EVERY, self._tell, told)

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


_TEXT_EVERY = 0.1
_OUTER_ONLY = frozenset({"whole", "cut_from", "files"})  # what goes with things that the outer result has


@dataclass(slots=True)
class _Held:
    """The last pieces of a text that grows."""

    pieces: list[Event] = field(default_factory=list[Event])
    timer: asyncio.TimerHandle | None = None


class NestedEvents:
    """Takes the events of agents that are called as tools, from any thread.

    Several of them may write at the same time; held back for a moment, the pieces of each become one. The things that
    they make (pictures, files) come with the result of the call alone, where they are kept as files.

    Args:
        append: Puts an event into the log.
        count: Told of each event as it happens, before it is held back.
    """

    def __init__(self, append: Callable[[NestedEvent], None], count: Callable[[Event], None] | None = None) -> None:
        self._append = append
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._held: dict[tuple[str, ...], _Held] = {}
        self._over: set[str] = set()

    def __call__(self, calls: tuple[str, ...], event: Event) -> None:
        """Note an event.

        Args:
            calls: As `NestedEvent` has them.
        """
        if threading.get_ident() == self._thread:
            self._take(calls, event)
        else:
            self._loop.call_soon_threadsafe(self._take, calls, event)

    def end(self, call_id: str) -> None:
        """The outermost call is over: what was held back is noted now, and nothing after it."""
        self._over.add(call_id)
        for calls in [one for one in self._held if one[0] == call_id]:
            self._tell(calls)

    def close(self) -> None:
        """The run is over."""
        for calls in list(self._held):
            self.end(calls[0])

    def _take(self, calls: tuple[str, ...], event: Event) -> None:
        if calls[0] in self._over or isinstance(event, ItemAdded):
            return
        event = own_event(event)
        if self._count is not None:
            self._count(event)
        held = self._held.get(calls)
        if held is not None and not _goes_on(held.pieces[-1], event):
            self._tell(calls)
            held = None
        if not isinstance(event, TextDelta | ReasoningDelta | CallDelta):
            self._append(NestedEvent(calls, bare(event)))
            return
        if held is None:
            held = self._held[calls] = _Held(timer=self._loop.call_later(_TEXT_EVERY, self._tell, calls))
        held.pieces.append(event)

    def _tell(self, calls: tuple[str, ...]) -> None:
        held = self._held.pop(calls, None)
        if held is None:
            return
        if held.timer is not None:
            held.timer.cancel()
        self._append(NestedEvent(calls, cast("Event", joined_text(held.pieces))))


def _goes_on(before: Event, event: Event) -> bool:
    if isinstance(before, CallDelta) and isinstance(event, CallDelta):
        return before.call_id == event.call_id
    if isinstance(before, ReasoningDelta) and before.proof:
        return False  # that thought is over
    return type(before) is type(event)


def bare(event: Event) -> Event:
    """A result without the things in it."""
    if not isinstance(event, ToolFinished) or all(item.type == "text" for item in event.message.items):
        return event
    extra = {name: value for name, value in (event.message.extra or {}).items() if name not in _OUTER_ONLY}
    update = {"content": event.message.get_text_content(), "extra": extra}
    return ToolFinished(event.call_id, event.message.model_copy(update=update))
