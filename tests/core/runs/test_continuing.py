"""What a reply takes over from an earlier one that it continues."""

from __future__ import annotations

from core.messages.events import (
    CallDelta,
    CallStarted,
    MessageFinished,
    MessageStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.transcript import Transcript
from core.runs.log import LoggedEvent, RunEvent, RunFinished, message_events
from core.runs.resume import events_to_continue


def logged(*events: RunEvent) -> list[LoggedEvent]:
    return [LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, start=1)]


def test_text_that_broke_off_goes_on_in_the_same_message() -> None:
    kept = events_to_continue(
        logged(MessageStarted(), TextDelta("half"), MessageFinished("length"), RunFinished("complete"))
    )
    assert [one.event for one in kept] == [MessageStarted(), TextDelta("half")]


def test_a_call_whose_arguments_were_never_complete_is_left_out() -> None:
    kept = events_to_continue(logged(MessageStarted(), TextDelta("so"), CallStarted("a", "f"), CallDelta("a", '{"x"')))
    assert [one.event for one in kept] == [MessageStarted(), TextDelta("so")]


def test_a_call_that_never_had_a_result_gets_one_that_says_so() -> None:
    called = [MessageStarted(), CallStarted("a", "f"), CallDelta("a", "{}"), MessageFinished("calls"), ToolStarted("a")]
    kept = events_to_continue(logged(*called))
    last = kept[-1].event
    assert isinstance(last, ToolFinished)
    assert (last.message.name, last.message.extra) == ("f", {"function_id": "a", "failed": "interrupted"})
    transcript = Transcript(message_events(kept))
    assert transcript.unanswered() == []


def test_calls_that_were_asked_for_at_the_last_moment_stay_with_results_that_say_so() -> None:
    asked = [MessageStarted(), CallStarted("a", "f"), CallDelta("a", "{}"), CallStarted("b", "g"), CallDelta("b", "{}")]
    kept = events_to_continue(logged(*asked, MessageFinished("calls"), RunFinished("interrupted")))
    assert [one.event for one in kept[:-2]] == [*asked, MessageFinished("calls")]
    results = [one.event.message for one in kept if isinstance(one.event, ToolFinished)]
    assert [(result.name, result.extra) for result in results] == [
        ("f", {"function_id": "a", "failed": "interrupted"}),
        ("g", {"function_id": "b", "failed": "interrupted"}),
    ]
    assert Transcript(message_events(kept)).unanswered() == []


def test_nothing_begins_with_nothing() -> None:
    assert events_to_continue([]) == []
    assert events_to_continue(logged(RunFinished("stopped"))) == []
