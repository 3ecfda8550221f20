"""A run that a dead process left, and that goes on by itself at the next start."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from core.messages.events import ToolFinished, ToolStarted
from core.messages.transcript import Transcript
from core.runs.ledger import ended_calls
from core.runs.log import (
    ApprovalAsked,
    ApprovalGiven,
    ClaimsChecked,
    Edited,
    InputAsked,
    InputGiven,
    LoggedEvent,
    Queued,
    Rated,
    RunFinished,
    ToolProgress,
    message_events,
)
from core.runs.run import cut_off_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.messages.message import Message
    from core.storage.base import Lease, RunRecord


# What ended with the process: a server that asked is gone, and so is how far a tool had come. Steps that were recorded
# stay, for it is still the same run.
_OF_THE_DEAD_PROCESS = ClaimsChecked | Rated | Edited | Queued | RunFinished | ToolProgress | InputAsked | InputGiven
_TRIES = 2  # of a call that takes the whole process with it each time, this many


@dataclass(frozen=True, slots=True)
class ResumableRun:
    """A run of a dead process that goes on by itself: in the middle of its calls, or before its turn had come.

    Args:
        lease: Who held it.
        logged: Its events, numbered from 1.
        may_have_run: The calls without a result that may have begun to run; `None` where no call is to be made first.
    """

    record: RunRecord
    lease: Lease
    logged: Sequence[LoggedEvent]
    may_have_run: frozenset[str] | None

    @classmethod
    def of(cls, record: RunRecord, lease: Lease, logged: Sequence[LoggedEvent]) -> Self | None:
        """The run as it can go on; `None` where it had begun and was not in the middle of its calls."""
        kept = [one for one in logged if not isinstance(one.event, _OF_THE_DEAD_PROCESS)]
        calls = Transcript(message_events(kept)).unanswered()
        if not calls:
            return cls._queued(record, lease, kept) if _is_queued(logged) else None
        tries = Counter(one.event.call_id for one in kept if isinstance(one.event, ToolStarted))
        at = kept[-1].at
        spent = [call for call in calls if tries[_id(call)] >= _TRIES]
        kept += ended_calls(kept)
        kept += [LoggedEvent(0, at, ToolFinished(_id(call), cut_off_result(call, "interrupted"))) for call in spent]
        numbered = [replace(one, seq=seq) for seq, one in enumerate(kept, start=1)]
        return cls(record, lease, numbered, frozenset(map(_id, calls)) - _surely_not_run(kept))

    @classmethod
    def _queued(cls, record: RunRecord, lease: Lease, kept: Sequence[LoggedEvent]) -> Self:
        """A run whose turn had not come: it has at most what it was to go on with."""
        numbered = [replace(one, seq=seq) for seq, one in enumerate(kept, start=1)]
        after_calls = bool(kept) and isinstance(kept[-1].event, ToolFinished)
        return cls(record, lease, numbered, frozenset() if after_calls else None)

    def messages(self) -> list[Message]:
        """The reply so far."""
        return Transcript(message_events(self.logged)).messages()


def _is_queued(logged: Sequence[LoggedEvent]) -> bool:
    last = logged[-1].event if logged else None
    return isinstance(last, Queued) and last.waiting


def _surely_not_run(logged: Sequence[LoggedEvent]) -> frozenset[str]:
    """The calls that wait for the user or were refused: a yes is in the table before its tool starts."""
    asked = {one.event.call_id for one in logged if isinstance(one.event, ApprovalAsked)}
    allowed = {one.event.call_id for one in logged if isinstance(one.event, ApprovalGiven) and one.event.allowed}
    return frozenset(asked - allowed)


def _id(call: Message) -> str:
    return str((call.extra or {})["function_id"])
