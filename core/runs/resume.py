"""What a new run takes over from an earlier reply: after *Continue*, and after *Run again* with other arguments.

What goes on by itself after a restart is in `resumable.py`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

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
from core.messages.marks import text_of, without_marks
from core.messages.transcript import call_message
from core.runs.log import (
    AskedFor,
    CallStages,
    ClaimsChecked,
    Edited,
    LoggedEvent,
    ModelAsked,
    ModelCalled,
    NestedEvent,
    Queued,
    Rated,
    RunFinished,
    StepRecorded,
    TakenOver,
    ToolProgress,
    TracedWithin,
)
from core.runs.run import cut_off_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.message import Message


# The new run counts its steps itself, keeps an account of its own, and waits for its own turn.
_OF_THE_OLD_RUN = (
    AskedFor
    | CallStages
    | ClaimsChecked
    | Edited
    | ModelAsked
    | ModelCalled
    | Queued
    | Rated
    | RunFinished
    | TakenOver
    | ToolProgress
    | TracedWithin
    | StepRecorded
)


def events_to_continue(logged: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """The events that a reply begins with which *Continue* makes of an earlier one.

    The end of its last text is left out, so that the text goes on in the same message. Calls whose arguments were
    never complete are left out, and calls that never had a result get one that says so.

    Args:
        logged: What happened in the earlier reply.
    """
    kept = [one for one in logged if not isinstance(one.event, _OF_THE_OLD_RUN)]
    # The end of a message with calls stays: it is what says that their arguments are complete.
    while kept and isinstance(kept[-1].event, MessageFinished) and kept[-1].event.reason != "calls":
        kept.pop()
    complete = _complete_calls(kept) | {one.event.call_id for one in kept if isinstance(one.event, ToolStarted)}
    kept = [one for one in kept if not isinstance(one.event, CallStarted | CallDelta) or one.event.call_id in complete]
    return _with_results(kept)


def events_to_edit(logged: Sequence[LoggedEvent], text: str) -> list[LoggedEvent]:
    """The events of a reply whose answer its reader has written: what it thought, called and found stays.

    Args:
        logged: What happened in the earlier reply.
        text: In place of that of its last message; where it ended in calls, in a message of its own.
    """
    kept = _with_results([one for one in logged if not isinstance(one.event, _OF_THE_OLD_RUN)])
    at = kept[-1].at if kept else 0.0
    answer = _last_message(kept)
    before = kept[:answer]
    told = [one for one in kept[answer:] if not isinstance(one.event, TextDelta | MessageFinished)]
    after = [replace(one, event=without_marks(one.event)) for one in told]
    place = next((n for n, one in enumerate(kept[answer:]) if isinstance(one.event, TextDelta)), len(after))
    after.insert(place, LoggedEvent(0, at, TextDelta(text)))
    ended = [*after, LoggedEvent(0, at, MessageFinished("stop")), LoggedEvent(0, at, Edited())]
    began = [] if answer < len(kept) else [LoggedEvent(0, at, MessageStarted())]
    return [replace(one, seq=seq) for seq, one in enumerate([*before, *began, *ended], start=1)]


def answer_in(logged: Sequence[LoggedEvent]) -> str:
    """The text of a reply's last message, which `events_to_edit` takes the place of; "" where it ended in calls."""
    return text_of(one.event for one in logged[_last_message(logged) :])


def _last_message(logged: Sequence[LoggedEvent]) -> int:
    """Where the last message begins, if it has no calls; else the end."""
    for at in range(len(logged) - 1, -1, -1):
        if isinstance(logged[at].event, CallStarted | ToolFinished):
            return len(logged)
        if isinstance(logged[at].event, MessageStarted):
            return at
    return len(logged)


def _with_results(kept: list[LoggedEvent], except_for: str = "") -> list[LoggedEvent]:
    """The same, and a result that says so for each call that never had one."""
    answered = {one.event.call_id for one in kept if isinstance(one.event, ToolFinished)} | {except_for}
    at = kept[-1].at if kept else 0.0
    for call in _calls(kept):
        call_id = str((call.extra or {})["function_id"])
        if call_id not in answered:
            kept.append(LoggedEvent(0, at, ToolFinished(call_id, cut_off_result(call, "interrupted"))))
    return kept


def events_to_rerun_call(
    logged: Sequence[LoggedEvent], call_id: str, arguments: Mapping[str, Any]
) -> list[LoggedEvent]:
    """The events that a reply begins with which makes one call of an earlier one anew, with other arguments.

    All that came before the call stays, and what the other calls of its turn gave; what came after goes.

    Args:
        logged: What happened in the earlier reply.
        arguments: For it.

    Raises:
        NotFoundError: There is no such call, or its arguments were never complete.
    """
    turn = _up_to_the_end_of_the_turn(logged, call_id)
    kept: list[LoggedEvent] = []
    for one in turn:
        event = one.event
        if isinstance(event, NestedEvent):
            kept += [] if event.calls[0] == call_id else [one]
        elif getattr(event, "call_id", None) != call_id:
            kept.append(one)
        elif isinstance(event, CallStarted):
            text = json.dumps(dict(arguments), ensure_ascii=False)
            kept += [one, LoggedEvent(0, one.at, CallDelta(call_id, text))]
    if _is_open(kept):
        kept.append(LoggedEvent(0, kept[-1].at, MessageFinished("calls")))
    return _with_results(kept, except_for=call_id)


def _up_to_the_end_of_the_turn(logged: Sequence[LoggedEvent], call_id: str) -> list[LoggedEvent]:
    complete = _complete_calls(logged) | {one.event.call_id for one in logged if isinstance(one.event, ToolFinished)}
    kept: list[LoggedEvent] = []
    found = worked = False
    for one in logged:
        event = one.event
        if isinstance(event, _OF_THE_OLD_RUN):
            continue
        if isinstance(event, CallStarted) and event.call_id == call_id and call_id in complete:
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


def _complete_calls(logged: Sequence[LoggedEvent]) -> set[str]:
    """The calls of messages that were finished."""
    complete: set[str] = set()
    open_calls: set[str] = set()
    for one in logged:
        if isinstance(one.event, CallStarted):
            open_calls.add(one.event.call_id)
        elif isinstance(one.event, MessageFinished):
            complete |= open_calls
    return complete


def _calls(logged: Sequence[LoggedEvent]) -> list[Message]:
    started = [one.event for one in logged if isinstance(one.event, CallStarted)]
    return [call_message(call.call_id, call.name, "{}") for call in started]
