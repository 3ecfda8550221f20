"""A reply that another process writes, as this one sees it."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from core.errors import StorageError
from core.messages.events import (
    CallStarted,
    ItemAdded,
    MessageStarted,
    ReasoningDelta,
    SourceCited,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.runs.feed import Rewound
from core.runs.log import (
    ApprovalAsked,
    InputAsked,
    LoggedEvent,
    NestedEvent,
    Outdated,
    RunFinished,
    RunLog,
    RunOwn,
    Unwritten,
)
from core.runs.reply import Reply
from core.runs.resumable import after_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from core.runs.feed import Feed, Told
    from core.runs.log import RunEvent
    from core.storage.base import RunRecord, RunStatus


_LOG = logging.getLogger(__name__)
_TRY_AGAIN_AFTER = 1.0
_SAID = TextDelta | ItemAdded
_WRITTEN = _SAID | MessageStarted | ReasoningDelta | SourceCited
_SEEN = _SAID | CallStarted | ToolStarted | ToolFinished | NestedEvent | ApprovalAsked | InputAsked | RunFinished


@dataclass(eq=False, slots=True)
class _End:
    """The end of a run, for all objects that have stood for it."""

    status: RunStatus = "running"
    error: dict[str, Any] | None = None
    told: asyncio.Event = field(default_factory=asyncio.Event)


class FollowedRun:
    """Follows a run of another process: it can be read like one of this process, and only be asked to do something.

    Args:
        record: The run's row.
        known: What is known of it already, with its numbers.

    Attributes:
        log: What happened, numbered anew.
        used: When it was last asked for.
    """

    def __init__(self, record: RunRecord, known: Sequence[LoggedEvent] = ()) -> None:
        self.id = record.id
        self.owner = record.owner_id
        self.conversation_id = self.shown_in = record.conversation_id
        self.message_id = record.message_id
        self.record = record
        self.log = RunLog(known)
        self.used = time.monotonic()
        self._told = [*known]
        self._outdated: Sequence[LoggedEvent] = ()
        self._reply = Reply()
        self._reply.model = record.model
        self._ready, self._end = asyncio.Event(), _End()

    @property
    def status(self) -> RunStatus:
        """Whether it goes on."""
        return self._end.status

    @property
    def error(self) -> dict[str, Any] | None:
        """Why it ended, if something went wrong."""
        return self._end.error

    def reply(self) -> Reply:
        """The reply so far: one object that all readers share, brought up to date here. Do not change it."""
        for logged in self.log.since(self._reply.seen):
            self._reply.apply(logged)
        return self._reply

    async def ready(self) -> None:
        """Wait until what was written before is known."""
        await self._ready.wait()

    async def wait(self) -> RunStatus:
        """Wait for the end."""
        await self._end.told.wait()
        return self.status

    def take(self, told: Sequence[LoggedEvent]) -> None:
        """Take in what has happened."""
        for one in told:
            if isinstance(one.event, RunFinished):
                self.end(one.event.status, one.event.error)
                continue
            self._told.append(one)
            if not self._outdated or isinstance(one.event, RunOwn):  # a message of its own begins behind the outdated
                self.log.append(one.event, one.at)
        self._ready.set()

    def stand(self, why: Literal["", "nobody", "busy"]) -> None:
        """Show whether nobody writes it at present, as `Unwritten` says; whoever goes on with it takes that back."""
        if self.reply().unwritten != why:
            self._told.append(LoggedEvent(self._told[-1].seq if self._told else 0, self._at(), Unwritten(why)))
            self.log.append(Unwritten(why), self._at())

    def end(self, status: RunStatus, error: dict[str, Any] | None = None) -> None:
        """It is over, or gone."""
        if not self._end.told.is_set():
            self._end.status, self._end.error = status, error
            self.log.append(RunFinished(status, error), self._at())
        self._end.told.set()
        self._ready.set()

    def leave_off(self) -> None:
        """Nothing more is told here: who looks at it looks again, and nobody waits for it."""
        self._ready.set()
        self.log.leave_off()

    def is_outdone_by(self, told: Iterable[LoggedEvent]) -> bool:
        """Whether something has happened that takes the place of what a process has written that is gone."""
        return bool(self._outdated) and any(_says(one.event, self._outdated) for one in told)

    def rewound(self, after: float, told: Sequence[LoggedEvent]) -> FollowedRun:
        """The same run, known up to a number, and what has happened since; who looks at this one looks again.

        Where another process writes the end of the text anew, what there was of it stays in sight until that says
        something.
        """
        again = FollowedRun(self.record, [one for one in self._told if one.seq <= after])
        again.used, again._end = self.used, self._end
        again.take(told)
        if outdated := self._outdated_then(after, told):
            again._show_outdated(outdated)
        self.leave_off()
        return again

    def _outdated_then(self, after: float, told: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
        """What stays in sight of a text that is written anew."""
        if after:
            return () if self.is_outdone_by(told) else self._outdated
        outdated = self._outdated or _unfinished(self._told)
        return () if _is_beyond(told, self._told, outdated) else outdated

    def _show_outdated(self, outdated: Sequence[LoggedEvent]) -> None:
        self._outdated = outdated
        for one in outdated:
            self.log.append(one.event, one.at)
        self.log.append(Outdated(), self._at())

    def _at(self) -> float:
        known = self.log.since()
        return known[-1].at if known else 0.0


class Following:
    """Follows one run to its end, through each process that takes it over.

    Args:
        run: As it is known at first.
        now: Told each time that another object stands for the run.
        over: Told when it is over or gone.
    """

    def __init__(
        self, run: FollowedRun, feed: Feed, now: Callable[[FollowedRun], None], over: Callable[[FollowedRun], None]
    ) -> None:
        self.run = run
        self._back: int | None = None
        self._feed = feed
        self._now = now
        self._over = over
        self.task = asyncio.create_task(self._follow(), name=f"follow run {run.id}")

    def close(self) -> None:
        """Follow it no more."""
        self.task.cancel()
        self.run.leave_off()

    async def _follow(self) -> None:
        while not await self._followed():
            await asyncio.sleep(_TRY_AGAIN_AFTER)
            self._take(Rewound())
        self.run.end("stopped")  # nothing, unless it is gone with its conversation
        self._over(self.run)

    async def _followed(self) -> bool:
        """Follow it; whether to the end."""
        try:
            async with aclosing(self._feed.follow(self.run.id)) as news:
                async for told in news:
                    self._take(told)
        except StorageError as error:
            _LOG.info("Run %s cannot be followed yet: %s", self.run.id, error)
            return False
        return True

    def _take(self, told: Told) -> None:
        if isinstance(told, Rewound):  # what is shown stays until it is known what takes its place
            self._back = told.after if self._back is None else min(self._back, told.after)
        elif self._back is not None or self.run.is_outdone_by(told):
            self.run = self.run.rewound(inf if self._back is None else self._back, told)
            self._back = None
            self._now(self.run)
        else:
            self.run.take(told)


def _unfinished(told: Sequence[LoggedEvent]) -> Sequence[LoggedEvent]:
    """What was written after the last result of a call, calls left out; nothing where nothing was said."""
    tail = [one for one in told[after_results(told) :] if isinstance(one.event, _WRITTEN)]
    return tail if any(isinstance(one.event, _SAID | ReasoningDelta) for one in tail) else ()


def _is_beyond(told: Sequence[LoggedEvent], before: Sequence[LoggedEvent], outdated: Sequence[LoggedEvent]) -> bool:
    """Whether who goes on has said something by now, beyond what it has taken over."""
    results = [sum(isinstance(one.event, ToolFinished) for one in some) for some in (told, before)]
    return results[0] > results[1] or any(_says(one.event, outdated) for one in told[after_results(told) :])


def _says(event: RunEvent, outdated: Sequence[LoggedEvent]) -> bool:
    """Whether the reader of outdated text sees more by an event than by that; thoughts take the place of no text."""
    if isinstance(event, ReasoningDelta):
        return not any(isinstance(one.event, _SAID) for one in outdated)
    return isinstance(event, _SEEN) and (not isinstance(event, TextDelta) or bool(event.text))
