"""A reply that another process writes, as this one sees it."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from core.errors import StorageError
from core.runs.feed import Rewound
from core.runs.log import LoggedEvent, RunFinished, RunLog, Unwritten
from core.runs.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.runs.feed import Feed, Told
    from core.storage.base import RunRecord, RunStatus


_LOG = logging.getLogger(__name__)
_TRY_AGAIN_AFTER = 1.0


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
        self._seen = [one.seq for one in known]
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
            else:
                self._seen.append(one.seq)
                self.log.append(one.event, one.at)
        self._ready.set()

    def stand(self, why: Literal["", "nobody", "busy"]) -> None:
        """Show whether nobody writes it at present, as `Unwritten` says; whoever goes on with it takes that back."""
        if self.reply().unwritten != why:
            self._seen.append(self._seen[-1] if self._seen else 0)
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

    def rewound(self, after: int) -> FollowedRun:
        """The same run, known up to a number; this one is left where it is, and who looks at it looks again."""
        kept = [
            LoggedEvent(seq, one.at, one.event)
            for seq, one in zip(self._seen, self.log.since(), strict=False)
            if seq <= after
        ]
        again = FollowedRun(self.record, kept)
        again.used, again._end = self.used, self._end
        if after:
            again._ready.set()
        self.leave_off()
        return again

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
        if isinstance(told, Rewound):
            self.run = self.run.rewound(told.after)
            self._now(self.run)
        else:
            self.run.take(told)
