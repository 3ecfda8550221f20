"""What agents say and do that other agents call as tools, in the log of a run; their text a few times a second."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from core.messages.events import CallDelta, Event, ItemAdded, ReasoningDelta, TextDelta, ToolFinished
from core.runs.log import Within
from core.runs.rows import joined_text

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY = 0.1
_OUTER_ONLY = frozenset({"whole", "cut_from", "files"})  # what goes with things that the outer result has


@dataclass(slots=True)
class _Held:
    """The last pieces of a text that grows."""

    pieces: list[Event] = field(default_factory=list[Event])
    timer: asyncio.TimerHandle | None = None


class Inside:
    """Takes the events of agents that are called as tools, from any thread.

    Several of them may write at the same time; held back for a moment, the pieces of each become one. The things that
    they make (pictures, files) come with the result of the call alone, where they are kept as files.

    Args:
        append: Puts an event into the log.
    """

    def __init__(self, append: Callable[[Within], None]) -> None:
        self._append = append
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._held: dict[tuple[str, ...], _Held] = {}
        self._over: set[str] = set()

    def __call__(self, calls: tuple[str, ...], event: Event) -> None:
        """Note an event.

        Args:
            calls: As `Within` has them.
            event: What happened.
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
        held = self._held.get(calls)
        if held is not None and not _goes_on(held.pieces[-1], event):
            self._tell(calls)
            held = None
        if not isinstance(event, TextDelta | ReasoningDelta | CallDelta):
            self._append(Within(calls, _bare(event)))
            return
        if held is None:
            held = self._held[calls] = _Held(timer=self._loop.call_later(_EVERY, self._tell, calls))
        held.pieces.append(event)

    def _tell(self, calls: tuple[str, ...]) -> None:
        held = self._held.pop(calls, None)
        if held is None:
            return
        if held.timer is not None:
            held.timer.cancel()
        self._append(Within(calls, cast("Event", joined_text(held.pieces))))


def _goes_on(before: Event, event: Event) -> bool:
    if isinstance(before, CallDelta) and isinstance(event, CallDelta):
        return before.call_id == event.call_id
    return type(before) is type(event)


def _bare(event: Event) -> Event:
    """A result without the things in it."""
    if not isinstance(event, ToolFinished) or all(item.type == "text" for item in event.message.items):
        return event
    extra = {name: value for name, value in (event.message.extra or {}).items() if name not in _OUTER_ONLY}
    update = {"content": event.message.get_text_content(), "extra": extra}
    return ToolFinished(event.call_id, event.message.model_copy(update=update))
