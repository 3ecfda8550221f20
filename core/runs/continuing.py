"""What a reply that broke off hands to the one that goes on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.messages.events import CallDelta, CallStarted, MessageFinished, ToolFinished, ToolStarted
from core.messages.transcript import call_message
from core.runs.log import ClaimsChecked, LoggedEvent, RunFinished
from core.runs.run import cut_off_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.messages.message import Message


def beginning_of(logged: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """The events that a continued reply begins with.

    Its end is left out, so that text goes on where it broke off; calls whose arguments never were whole are left out,
    and calls that never had a result get one that says so.
    """
    kept = [one for one in logged if not isinstance(one.event, ClaimsChecked | RunFinished)]
    while kept and isinstance(kept[-1].event, MessageFinished) and kept[-1].event.reason != "calls":
        kept.pop()
    answered = {one.event.call_id for one in kept if isinstance(one.event, ToolFinished)}
    started = {one.event.call_id for one in kept if isinstance(one.event, ToolStarted)}
    whole = started | _whole_calls(kept)
    kept = [one for one in kept if not isinstance(one.event, CallStarted | CallDelta) or one.event.call_id in whole]
    at = kept[-1].at if kept else 0.0
    for call in _calls(kept):
        call_id = str((call.extra or {})["function_id"])
        if call_id not in answered:
            kept.append(LoggedEvent(0, at, ToolFinished(call_id, cut_off_result(call, "interrupted"))))
    return kept


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
