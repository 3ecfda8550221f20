"""What an interrupted reply hands to the one that goes on with it: after a dead process, an edit or a retry."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from core.errors import NotFoundError
from core.messages.events import (
    CallDelta,
    CallStarted,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.transcript import Transcript, call_message
from core.runs.log import (
    ApprovalAsked,
    ApprovalGiven,
    ClaimsChecked,
    InputAsked,
    InputGiven,
    LoggedEvent,
    Queued,
    RunFinished,
    StepRecorded,
    ToolProgress,
    Within,
    spoken,
)
from core.runs.run import cut_off_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.message import Message
    from core.storage.base import Lease, RunRecord


# The new one counts its steps itself, and has its own turn.
_OF_THE_OLD_RUN = ClaimsChecked | Queued | RunFinished | ToolProgress | StepRecorded


def beginning_of(logged: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """The events that a continued reply begins with.

    Its end is left out, so that text goes on where it broke off; calls whose arguments never were whole are left out,
    and calls that never had a result get one that says so.
    """
    kept = [one for one in logged if not isinstance(one.event, _OF_THE_OLD_RUN)]
    while kept and isinstance(kept[-1].event, MessageFinished) and kept[-1].event.reason != "calls":
        kept.pop()
    started = {one.event.call_id for one in kept if isinstance(one.event, ToolStarted)}
    whole = started | _whole_calls(kept)
    kept = [one for one in kept if not isinstance(one.event, CallStarted | CallDelta) or one.event.call_id in whole]
    return _with_results(kept)


def _with_results(kept: list[LoggedEvent], but: str = "") -> list[LoggedEvent]:
    """The same, and a result that says so for each call that never had one."""
    answered = {one.event.call_id for one in kept if isinstance(one.event, ToolFinished)} | {but}
    at = kept[-1].at if kept else 0.0
    for call in _calls(kept):
        call_id = str((call.extra or {})["function_id"])
        if call_id not in answered:
            kept.append(LoggedEvent(0, at, ToolFinished(call_id, cut_off_result(call, "interrupted"))))
    return kept


def beginning_with(logged: Sequence[LoggedEvent], call_id: str, arguments: Mapping[str, Any]) -> list[LoggedEvent]:
    """The events that a reply begins with which makes one call anew, with other arguments.

    All that came before the call stays, and what the other calls of its turn gave; what came after goes.

    Args:
        logged: What happened in the old reply.
        call_id: The call.
        arguments: For it.

    Raises:
        NotFoundError: There is no such call, or its arguments never were whole.
    """
    turn = _up_to_the_end_of_the_turn(logged, call_id)
    kept: list[LoggedEvent] = []
    for one in turn:
        event = one.event
        if isinstance(event, Within):
            kept += [] if event.calls[0] == call_id else [one]
        elif getattr(event, "call_id", None) != call_id:
            kept.append(one)
        elif isinstance(event, CallStarted):
            text = json.dumps(dict(arguments), ensure_ascii=False)
            kept += [one, LoggedEvent(0, one.at, CallDelta(call_id, text))]
    if _is_open(kept):
        kept.append(LoggedEvent(0, kept[-1].at, MessageFinished("calls")))
    return _with_results(kept, but=call_id)


def _up_to_the_end_of_the_turn(logged: Sequence[LoggedEvent], call_id: str) -> list[LoggedEvent]:
    whole = {one.event.call_id for one in logged if isinstance(one.event, ToolFinished)} | _whole_calls(logged)
    kept: list[LoggedEvent] = []
    found = worked = False
    for one in logged:
        event = one.event
        if isinstance(event, _OF_THE_OLD_RUN):
            continue
        if isinstance(event, CallStarted) and event.call_id == call_id and call_id in whole:
            found = True
        if found and worked and isinstance(event, MessageStarted | TextDelta | ReasoningDelta | CallStarted):
            break
        worked = found and (worked or isinstance(event, ToolStarted | ToolFinished))
        kept.append(one)
    if not found:
        raise NotFoundError("There is no such call in this reply.", kind="call")
    return kept


def _is_open(logged: Sequence[LoggedEvent]) -> bool:
    """Whether a call was begun after the last end of a message."""
    for one in reversed(logged):
        if isinstance(one.event, MessageFinished):
            return False
        if isinstance(one.event, CallStarted):
            return True
    return False


def _whole_calls(logged: Sequence[LoggedEvent]) -> set[str]:
    """The calls of messages that were finished."""
    whole: set[str] = set()
    open_calls: set[str] = set()
    for one in logged:
        if isinstance(one.event, CallStarted):
            open_calls.add(one.event.call_id)
        elif isinstance(one.event, MessageFinished):
            whole |= open_calls
    return whole


def _calls(logged: Sequence[LoggedEvent]) -> list[Message]:
    started = [one.event for one in logged if isinstance(one.event, CallStarted)]
    return [call_message(call.call_id, call.name, "{}") for call in started]


# What is over with the process: a server that asked is gone, and so is how far a tool had come.
_OVER = ClaimsChecked | Queued | RunFinished | ToolProgress | InputAsked | InputGiven
_TRIES = 2  # of a call that takes the whole process with it each time, this many


@dataclass(frozen=True, slots=True)
class Left:
    """What there is to go on with.

    Args:
        record: The run.
        lease: Who held it.
        logged: Its events, numbered from 1.
        begun: The calls without a result that may have begun; `None` where no call waits for its turn.
    """

    record: RunRecord
    lease: Lease
    logged: Sequence[LoggedEvent]
    begun: frozenset[str] | None

    @classmethod
    def of(cls, record: RunRecord, lease: Lease, logged: Sequence[LoggedEvent]) -> Self | None:
        """What was left; `None` where the run had begun and was not in the middle of its calls."""
        kept = [one for one in logged if not isinstance(one.event, _OVER)]
        calls = Transcript(spoken(kept)).unanswered()
        if not calls:
            return cls._queued(record, lease, kept) if _is_queued(logged) else None
        tries = Counter(one.event.call_id for one in kept if isinstance(one.event, ToolStarted))
        at = kept[-1].at
        spent = [call for call in calls if tries[_id(call)] >= _TRIES]
        kept += [LoggedEvent(0, at, ToolFinished(_id(call), cut_off_result(call, "interrupted"))) for call in spent]
        numbered = [replace(one, seq=seq) for seq, one in enumerate(kept, start=1)]
        return cls(record, lease, numbered, frozenset(map(_id, calls)) - _surely_not_begun(kept))

    @classmethod
    def _queued(cls, record: RunRecord, lease: Lease, kept: Sequence[LoggedEvent]) -> Self:
        """A run whose turn had not come: it has at most what it was to go on with."""
        numbered = [replace(one, seq=seq) for seq, one in enumerate(kept, start=1)]
        after_calls = bool(kept) and isinstance(kept[-1].event, ToolFinished)
        return cls(record, lease, numbered, frozenset() if after_calls else None)

    def messages(self) -> list[Message]:
        """The reply so far."""
        return Transcript(spoken(self.logged)).messages()


def _is_queued(logged: Sequence[LoggedEvent]) -> bool:
    last = logged[-1].event if logged else None
    return isinstance(last, Queued) and last.waiting


def _surely_not_begun(logged: Sequence[LoggedEvent]) -> frozenset[str]:
    """The calls that wait for the user or were refused: a yes is in the table before its tool starts."""
    asked = {one.event.call_id for one in logged if isinstance(one.event, ApprovalAsked)}
    allowed = {one.event.call_id for one in logged if isinstance(one.event, ApprovalGiven) and one.event.allowed}
    return frozenset(asked - allowed)


def _id(call: Message) -> str:
    return str((call.extra or {})["function_id"])
