"""What a reply begins with that makes one of its calls anew."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.errors import NotFoundError
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message
from core.messages.transcript import Transcript
from core.runs.log import ApprovalAsked, ApprovalGiven, LoggedEvent, RunEvent, RunFinished, ToolProgress, message_events
from core.runs.resume import events_to_rerun_call
from core.runs.rows import events_of


def logged(*events: RunEvent) -> list[LoggedEvent]:
    return [LoggedEvent(seq, float(seq), event) for seq, event in enumerate(events, start=1)]


def call(call_id: str) -> list[Event]:
    return [CallStarted(call_id, "f"), CallDelta(call_id, json.dumps({"n": call_id}))]


def done(call_id: str) -> list[Event]:
    extra = {"function_id": call_id}
    return [ToolStarted(call_id), ToolFinished(call_id, Message("function", f"was {call_id}", name="f", extra=extra))]


TWO_TURNS: list[RunEvent] = [
    *(MessageStarted(), *call("a"), MessageFinished("calls"), *done("a")),
    *(MessageStarted(), TextDelta("now two"), *call("b"), *call("c"), MessageFinished("calls")),
    ApprovalAsked("b", "f", {}, "writes", {}, [], 1.0),
    *(*done("c"), ApprovalGiven("b", True, None, "user"), ToolProgress("b", "half"), *done("b")),
    *(MessageStarted(), *call("d"), MessageFinished("calls"), *done("d")),
    *(MessageStarted(), TextDelta("the end"), MessageFinished("stop"), RunFinished("complete")),
]


def messages(kept: list[LoggedEvent]) -> list[tuple[str, str]]:
    """Each as its role, and what it says or is called with."""
    said = Transcript(message_events(kept)).messages()
    return [(m.role, m.function_call.arguments if m.function_call else m.get_text_content()) for m in said]


def test_what_came_before_and_beside_the_call_stays_and_what_came_after_goes() -> None:
    kept = events_to_rerun_call(logged(*TWO_TURNS), "b", {"n": "new"})
    assert messages(kept) == [
        ("assistant", '{"n": "a"}'),
        ("function", "was a"),
        ("assistant", "now two"),
        ("assistant", '{"n": "new"}'),
        ("assistant", '{"n": "c"}'),
        ("function", "was c"),
    ]
    assert [(call.extra or {})["function_id"] for call in Transcript(message_events(kept)).unanswered()] == ["b"]
    assert not any(isinstance(one.event, ApprovalAsked | ApprovalGiven | ToolProgress) for one in kept)


def test_another_call_that_never_had_a_result_gets_one_that_says_so() -> None:
    events: list[RunEvent] = [MessageStarted(), *call("a"), *call("b"), MessageFinished("calls"), *done("a")]
    kept = events_to_rerun_call(logged(*events, RunFinished("stopped")), "a", {})
    (result,) = [one.event.message for one in kept if isinstance(one.event, ToolFinished)]
    assert (result.extra or {}) == {"function_id": "b", "failed": "interrupted"}


def test_a_reply_that_no_run_wrote_is_begun_in_the_same_way() -> None:
    parts = Transcript(message_events(logged(*TWO_TURNS))).messages()
    events = logged(*events_of(parts))
    for call_id in ("a", "b", "c", "d"):
        there = messages(events_to_rerun_call(logged(*TWO_TURNS), call_id, {"n": "new"}))
        kept = events_to_rerun_call(events, call_id, {"n": "new"})
        assert messages(kept) == there
        assert len(Transcript(message_events(kept)).unanswered()) == 1


@pytest.mark.parametrize("events", [[], TWO_TURNS, [MessageStarted(), CallStarted("x", "f"), CallDelta("x", '{"n')]])
def test_a_call_that_is_not_there_or_was_never_complete_cannot_be_made_again(events: Any) -> None:
    with pytest.raises(NotFoundError):
        events_to_rerun_call(logged(*events), "x", {})
