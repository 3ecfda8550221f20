"""Events as the table keeps them: JSON values, neighbouring pieces of text joined."""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import BaseModel

from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message, Usage
from core.runs.log import (
    ApprovalAsked,
    ApprovalGiven,
    Checked,
    ClaimsChecked,
    InputAsked,
    InputGiven,
    LoggedEvent,
    Queued,
    StepRecorded,
    ToolProgress,
    TurnsSummarised,
    Within,
)
from core.storage.base import EventRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from core.rag.attribution import Verdict
    from core.runs.log import RunEvent

_Piece: TypeAlias = TextDelta | ReasoningDelta | CallDelta


def _claims(claims: list[tuple[int, int, Verdict, list[int]]]) -> ClaimsChecked:
    return ClaimsChecked(tuple(Checked(block, end, said, tuple(numbers)) for block, end, said, numbers in claims))


def _within(calls: list[str], event: dict[str, Any]) -> Within:
    kind = str(event["kind"])
    return Within(tuple(calls), cast("Event", _made(kind, {name: v for name, v in event.items() if name != "kind"})))


_LOG = logging.getLogger(__name__)
_CLASSES: dict[str, Callable[..., RunEvent]] = {
    "message_started": MessageStarted,
    "text_delta": TextDelta,
    "reasoning_delta": ReasoningDelta,
    "item_added": ItemAdded,
    "call_started": CallStarted,
    "call_delta": CallDelta,
    "tool_started": ToolStarted,
    "tool_finished": ToolFinished,
    "message_finished": MessageFinished,
    "approval_asked": ApprovalAsked,
    "approval_given": ApprovalGiven,
    "input_asked": InputAsked,
    "input_given": InputGiven,
    "tool_progress": ToolProgress,
    "step_recorded": StepRecorded,
    "turns_summarised": TurnsSummarised,
    "queued": Queued,
    "claims_checked": _claims,
    "within": _within,
}
_MODELS: dict[str, type[BaseModel]] = {"message": Message, "item": ContentItem, "usage": Usage}


def rows_of(logged: Iterable[LoggedEvent]) -> list[EventRow]:
    """Rows for the table. Joined pieces are one row, with the number of the last piece and the time of the first.

    The end of a run is no row: the run itself has a status.
    """
    rows: list[EventRow] = []
    pending: list[LoggedEvent] = []
    for one in logged:
        if pending and not _same_text(pending[-1].event, one.event):
            rows.append(_row(pending))
            pending = []
        if one.event.kind in _CLASSES:
            pending.append(one)
    return [*rows, _row(pending)] if pending else rows


def logged_of(rows: Iterable[EventRow]) -> list[LoggedEvent]:
    """The events that rows keep; one that cannot be read, such as a newer program's, takes no other along."""
    logged: list[LoggedEvent] = []
    for row in rows:
        try:
            logged.append(LoggedEvent(row.seq, row.at, _made(row.kind, row.payload)))
        except (KeyError, TypeError, ValueError) as error:
            _LOG.warning("An event of the kind %r cannot be read: %s", row.kind, type(error).__name__)
    return logged


def _made(kind: str, payload: Mapping[str, Any]) -> RunEvent:
    values = {name: _MODELS[name](**value) if name in _MODELS and value else value for name, value in payload.items()}
    return _CLASSES[kind](**values)


def events_of(messages: Iterable[Message]) -> list[Event]:
    """Events that would give these messages: for replies that no run wrote."""
    events: list[Event] = []
    calling = False
    for message in messages:
        call_id = str((message.extra or {}).get("function_id") or len(events))
        if message.role == "function":
            events += [ToolStarted(call_id), ToolFinished(call_id, message)]
            calling = False
            continue
        if not (calling and message.function_call is not None):  # calls one after the other are of one turn
            events.append(MessageStarted(message.name))
        calling = message.function_call is not None
        if isinstance(message.reasoning_content, str) and message.reasoning_content:
            events.append(ReasoningDelta(message.reasoning_content))
        events += [TextDelta(item.text) if item.text else ItemAdded(item) for item in message.items]
        if message.function_call is not None:
            call = message.function_call
            events += [CallStarted(call_id, call.name), CallDelta(call_id, call.arguments)]
    return events


def _same_text(one: object, other: object) -> bool:
    match one, other:
        case (TextDelta(), TextDelta()) | (ReasoningDelta(), ReasoningDelta()):
            return True
        case CallDelta(), CallDelta():
            return one.call_id == other.call_id
        case Within(), Within():
            return one.calls == other.calls and _same_text(one.event, other.event)
        case _:
            return False


def _row(joined: list[LoggedEvent]) -> EventRow:
    first = joined[0].event
    if isinstance(first, Within):
        inner = [one.event.event for one in joined if isinstance(one.event, Within)]
        event: RunEvent = replace(first, event=cast("Event", joined_text(inner)))
    else:
        event = joined_text([one.event for one in joined])
    return EventRow(joined[-1].seq, joined[0].at, event.kind, _payload(event))


def joined_text(pieces: Sequence[RunEvent]) -> RunEvent:
    """Neighbouring pieces of one text as one; of anything else there is only one."""
    first = pieces[0]
    match first:
        case TextDelta() | ReasoningDelta():
            return replace(first, text="".join(one.text for one in pieces if isinstance(one, type(first))))
        case CallDelta():
            return replace(first, arguments="".join(one.arguments for one in pieces if isinstance(one, CallDelta)))
        case _:
            return first


def _payload(event: RunEvent) -> dict[str, Any]:
    if isinstance(event, Within):
        return {"calls": list(event.calls), "event": {"kind": event.event.kind, **_payload(event.event)}}
    values = {field.name: getattr(event, field.name) for field in fields(event) if field.name != "kind"}
    if not values.get("unthought", True):
        del values["unthought"]  # earlier versions read the rows, too
    return {
        name: v.model_dump(mode="json", fallback=str) if isinstance(v, BaseModel) else v for name, v in values.items()
    }
