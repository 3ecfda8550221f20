"""The log of a run in memory: everything that happened, numbered, for any number of followers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from core.messages.events import Event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from core.rag.claims import Verdict
    from core.storage.base import RunStatus

# What a reader must see at once; the rest may wait for the next frame.
_URGENT = {"call_started", "tool_started", "tool_finished", "message_finished", "item_added"} | {
    "claims_checked",
    "run_finished",
}


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is over, and how; `error` is `{"key", "message", "hint", "details"}`."""

    status: RunStatus
    error: dict[str, Any] | None = None
    kind: Literal["run_finished"] = "run_finished"


class Checked(NamedTuple):
    """What the passages of a reply say to one of its sentences.

    Args:
        block: The index of its text among the blocks of the reply.
        end: Where it ends in that text.
        verdict: `supported`, `weak` or `unsupported`.
        numbers: The passages that bear it out.
    """

    block: int
    end: int
    verdict: Verdict
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClaimsChecked:
    """The sentences of a whole reply were held against its passages."""

    claims: tuple[Checked, ...]
    kind: Literal["claims_checked"] = "claims_checked"


RunEvent: TypeAlias = Event | ClaimsChecked | RunFinished


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event with its number (from 1, without gaps while the run lives) and its time.

    Args:
        seq: The number. In the table, where neighbouring pieces of text are one row, that of the last piece.
        at: Seconds since the run began.
        event: What happened.
    """

    seq: int
    at: float
    event: RunEvent


class RunLog:
    """Events of one run, appended by it alone and followed by any number of readers on the same loop.

    Args:
        earlier: What a continued reply begins with; the clock goes on from its last event.
    """

    def __init__(self, earlier: Sequence[LoggedEvent] = ()) -> None:
        self._events = [LoggedEvent(seq, old.at, old.event) for seq, old in enumerate(earlier, start=1)]
        self._began = time.monotonic() - (self._events[-1].at if self._events else 0.0)
        self._grown = asyncio.Event()
        self._watchers: list[Callable[[bool], None]] = []
        self.closed = False

    def __len__(self) -> int:
        return len(self._events)

    def append(self, event: RunEvent) -> None:
        """Add an event and wake who follows; after the last one (`RunFinished`) nothing is taken in any more."""
        if self.closed:
            return
        self._events.append(LoggedEvent(len(self._events) + 1, time.monotonic() - self._began, event))
        self.closed = isinstance(event, RunFinished)
        self._grown.set()
        for callback in tuple(self._watchers):
            callback(is_urgent(event))

    def since(self, after: int = 0) -> list[LoggedEvent]:
        """What has happened after number `after`."""
        return self._events[after:]

    async def follow(self, after: int = 0) -> AsyncGenerator[LoggedEvent, None]:
        """Everything after number `after`, then what happens, until the run is over."""
        seen = after
        while True:
            while seen < len(self._events):
                seen += 1
                yield self._events[seen - 1]
            if self.closed:
                return
            # Nothing can be appended between this check and the wait: both are on one loop.
            if self._grown.is_set():
                self._grown = asyncio.Event()
            await self._grown.wait()

    def watch(self, callback: Callable[[bool], None]) -> Callable[[], None]:
        """Call back at each event, with whether it must be shown at once; returns what ends this."""
        self._watchers.append(callback)

        def unwatch() -> None:
            if callback in self._watchers:
                self._watchers.remove(callback)

        return unwatch


def is_urgent(event: RunEvent) -> bool:
    """Whether the event changes more than the text: a call, a tool, an item, the end."""
    return event.kind in _URGENT
