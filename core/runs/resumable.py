"""A run that a dead process left, and that goes on by itself: at the next start, or in another process."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from core.errors import ParlourError
from core.messages.events import ItemAdded, MessageFinished, SourceCited, TextDelta, ToolFinished, ToolStarted
from core.messages.transcript import Transcript
from core.runs.begun import waiting_within, without_broken
from core.runs.ledger import ended_calls
from core.runs.log import (
    ApprovalAsked,
    ApprovalGiven,
    AskedFor,
    ClaimsChecked,
    Edited,
    InputAsked,
    InputGiven,
    LoggedEvent,
    MoreSaid,
    NestedEvent,
    Queued,
    Rated,
    RunFinished,
    RunOwn,
    TakenOver,
    ToolProgress,
    message_events,
)
from core.runs.run import cut_off_result
from core.storage.base import QUEUED, WAITING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from typing import Any

    from core.messages.events import Event
    from core.messages.message import Message
    from core.storage.base import Lease, RunRecord


# What ended with the process: a server that asked is gone, and so is how far a tool had come. Steps that were recorded
# stay, for it is still the same run.
_OF_THE_DEAD_PROCESS = (
    ClaimsChecked | MoreSaid | Rated | Edited | Queued | RunFinished | ToolProgress | InputAsked | InputGiven
)
_TRIES = 2  # of a call that takes the whole process with it each time, this many
MOST_TAKEN_OVER: Final = 2
"""How many processes may die at work on one reply before it is left alone: it may be what ends them."""
_OF_CALLS = ToolStarted | ApprovalAsked | ApprovalGiven | NestedEvent


@dataclass(frozen=True, slots=True)
class ResumableRun:
    """A run of a dead process that goes on by itself: in the middle of its calls, or before its turn had come.

    Beside other processes on the same database also where text was being written. The message that was not whole is
    written anew then, after the last result of a call: a model does not go on in the middle of a sentence that another
    request began.

    Args:
        lease: Who held it.
        logged: Its events, numbered from 1.
        may_have_run: The calls without a result that may have begun to run; `None` where no call is to be made first.
        seen: The number of the last event in the table; not looked at if left out.
        begun: Whether text was being written, or was to be.
        whole: Whether its last message is whole, and only its end was not stored.
    """

    record: RunRecord
    lease: Lease
    logged: Sequence[LoggedEvent]
    may_have_run: frozenset[str] | None
    seen: int | None = None
    begun: bool = False
    whole: bool = False

    @classmethod
    def of(
        cls,
        record: RunRecord,
        lease: Lease,
        logged: Sequence[LoggedEvent],
        *,
        shared: bool = False,
        seen: int | None = None,
    ) -> Self | None:
        """The run as it can go on; `None` where it cannot.

        Args:
            shared: Whether other processes share its database: it goes on in the middle of its text, too.
            seen: As the attribute.

        Raises:
            ParlourError: key `taken_over`: it has gone on too often.
        """
        kept = [one for one in logged if not isinstance(one.event, _OF_THE_DEAD_PROCESS)]
        if lease.worker == QUEUED:
            return cls._asked_for(record, lease, kept, seen)
        calls = Transcript(message_events(kept)).unanswered()
        if not calls and _is_queued(logged):
            return cls._queued(record, lease, kept, seen)
        if not calls:
            return cls._begun(record, lease, kept, seen) if shared else None
        kept = without_broken(kept, {*map(_id, calls)})
        tries = _tries(kept)
        at = kept[-1].at
        surely_not, waits = _surely_not_run(kept), waiting_within(kept)
        spent = [call for call in calls if tries[_id(call)] >= _TRIES and _id(call) not in waits]
        if shared and {*map(_id, calls)} - surely_not:
            kept += _taken_over(kept, lease)
        kept += ended_calls(kept)
        kept += [LoggedEvent(0, at, ToolFinished(_id(call), cut_off_result(call, "interrupted"))) for call in spent]
        return cls(record, lease, _numbered(kept), frozenset(map(_id, calls)) - surely_not, seen)

    @classmethod
    def _asked_for(cls, record: RunRecord, lease: Lease, kept: Sequence[LoggedEvent], seen: int | None) -> Self:
        """A run that nobody has begun."""
        goes_on = any(isinstance(one.event, AskedFor) and one.event.goes_on for one in kept)
        return cls(record, lease, _numbered(kept), frozenset() if goes_on else None, seen)

    @classmethod
    def _queued(cls, record: RunRecord, lease: Lease, kept: Sequence[LoggedEvent], seen: int | None) -> Self:
        """A run whose turn had not come: it has at most what it was to go on with."""
        after_calls = bool(kept) and isinstance(kept[-1].event, ToolFinished)
        return cls(record, lease, _numbered(kept), frozenset() if after_calls else None, seen)

    @classmethod
    def _begun(cls, record: RunRecord, lease: Lease, kept: list[LoggedEvent], seen: int | None) -> Self | None:
        """A run whose model was asked; `None` where a call may have been made of which nothing else is known."""
        if any(isinstance(one.event, _OF_CALLS) for one in kept[after_results(kept) :]):
            return None
        kept += _taken_over(kept, lease)
        kept += ended_calls(kept)
        run = cls(record, lease, _numbered(kept), None, seen, begun=True, whole=_is_whole(kept))
        return run if run.whole else run.anew()

    def anew(self) -> Self:
        """The same without what it has written since the last result of a call; what that cost stays."""
        cut = after_results(self.logged)
        kept = [left for one in self.logged[cut:] if (left := _left_of(one)) is not None]
        may_have_run = frozenset[str]() if cut else None
        logged = _numbered([*self.logged[:cut], *kept])
        return replace(self, logged=logged, may_have_run=may_have_run, whole=False)

    @property
    def asked_for(self) -> AskedFor | None:
        """How it was asked for, where that is known."""
        return next((one.event for one in self.logged if isinstance(one.event, AskedFor)), None)

    def messages(self) -> list[Message]:
        """The reply so far."""
        return Transcript(message_events(self.logged)).messages()


class Said:
    """Answers with nothing more: all of the reply is there."""

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        """No event."""
        del messages, kwargs
        for event in ():
            yield event


def too_often(logged: Sequence[LoggedEvent]) -> ParlourError | None:
    """Why a run goes on no more, where each process died that wrote it."""
    if sum(isinstance(one.event, TakenOver) for one in logged) < MOST_TAKEN_OVER:
        return None
    said = "Each process that wrote this reply has died, so it is not begun again."
    return ParlourError(said, hint="Go on with it, or ask otherwise.", key="taken_over")


def _taken_over(kept: Sequence[LoggedEvent], lease: Lease) -> list[LoggedEvent]:
    """That it was, where its process died at work; not where that gave it up, or nobody held it."""
    if lease.until is None or lease.worker in {WAITING, QUEUED}:
        return []
    if error := too_often(kept):
        raise error
    return [LoggedEvent(kept[-1].seq + 1 if kept else 1, kept[-1].at if kept else 0.0, TakenOver())]


def _numbered(kept: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    return [replace(one, seq=seq) for seq, one in enumerate(kept, start=1)]


def after_results(logged: Sequence[LoggedEvent]) -> int:
    """Where that begins which comes after the last result of a call."""
    return next((at for at in range(len(logged), 0, -1) if isinstance(logged[at - 1].event, ToolFinished)), 0)


def _is_whole(logged: Sequence[LoggedEvent]) -> bool:
    """Whether the last message was finished, and says something."""
    *_, before, last = [None, None, *message_events(logged)]
    is_over = isinstance(last, MessageFinished) and last.reason != "calls"
    return is_over and isinstance(before, TextDelta | ItemAdded | SourceCited)


def _left_of(one: LoggedEvent) -> LoggedEvent | None:
    """What stays of an event of a text that is written anew: the account, and what it cost."""
    if isinstance(one.event, RunOwn):
        return one
    if isinstance(one.event, MessageFinished) and one.event.usage is not None:
        return replace(one, event=replace(one.event, reason="stop", unthought=False))
    return None


def _is_queued(logged: Sequence[LoggedEvent]) -> bool:
    last = logged[-1].event if logged else None
    return isinstance(last, Queued) and last.waiting


def _surely_not_run(logged: Sequence[LoggedEvent]) -> frozenset[str]:
    """The calls that wait for the user or were refused: a yes is in the table before its tool starts."""
    asked = {one.event.call_id for one in logged if isinstance(one.event, ApprovalAsked)}
    allowed = {one.event.call_id for one in logged if isinstance(one.event, ApprovalGiven) and one.event.allowed}
    return frozenset(asked - allowed)


def _tries(logged: Sequence[LoggedEvent]) -> Counter[str]:
    """How often each call began since its user was last heard: an agent that waits for them may be begun often."""
    tries = Counter[str]()
    for one in logged:
        if isinstance(one.event, ToolStarted):
            tries[one.event.call_id] += 1
        elif isinstance(one.event, ApprovalGiven):
            del tries[one.event.call_id]
    return tries


def _id(call: Message) -> str:
    return str((call.extra or {})["function_id"])
