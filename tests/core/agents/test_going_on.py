"""The loop within a run: it can begin in the middle of calls, notices repetition, and pauses instead of giving up."""

from __future__ import annotations

from typing import Any

import pytest

from core.agents.limits import Budget
from core.agents.tool_loop import ToolLoop
from core.errors import LimitReachedError
from core.messages.events import CallStarted, Event, ToolFinished
from core.messages.message import Message
from core.messages.transcript import Transcript, call_message
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy
from tests.core.runs.note_tools import Note, writes

pytestmark = pytest.mark.anyio


def in_the_middle(*done: str) -> list[Message]:
    """A question, and calls a, b and c of which these have results."""
    called = [call_message(name, "write_note", f'{{"text": "{name}"}}') for name in ("a", "b", "c")]
    results = [Message("function", f"was {n}", name="write_note", extra={"function_id": n}) for n in done]
    return [Message("user", "Go"), *called, *results]


async def events_of(model: ScriptedModel, messages: list[Message], note: Note, **options: Any) -> list[Event]:
    loop = ToolLoop(model, {"write_note": note}, most_calls=options.pop("most_calls", 20))
    return [event async for event in loop.reply(messages, lang="en", **options)]


def failures(events: list[Event]) -> list[str | None]:
    return [(event.message.extra or {}).get("failed") for event in events if isinstance(event, ToolFinished)]


async def test_calls_without_a_result_are_made_before_the_model_is_asked() -> None:
    note, model = Note(), ScriptedModel("Done.")
    events = await events_of(model, in_the_middle("b"), note, may_have_run=())
    assert note.written == ["a", "c"]
    assert [event.call_id for event in events if isinstance(event, ToolFinished)] == ["a", "c"]
    roles = [(m.role, m.get_text_content()) for m in model.requests[0].messages[4:]]
    assert roles == [("function", "was b"), ("function", "written: a"), ("function", "written: c")]


async def test_what_may_have_begun_and_cannot_be_done_twice_is_not() -> None:
    note, model = Note(), ScriptedModel("Done.")
    events = await events_of(model, in_the_middle("b"), note, may_have_run={"a"})
    assert (note.written, failures(events)) == (["c"], ["interrupted", None])
    note.idempotent = True
    await events_of(ScriptedModel("Done."), in_the_middle("b", "c"), note, may_have_run={"a"})
    assert note.written == ["c", "a"]


async def test_what_may_have_begun_is_made_again_where_its_service_knows_it_by_a_key() -> None:
    note = Note()
    note.takes_key = True
    events = await events_of(ScriptedModel("Done."), in_the_middle("b", "c"), note, may_have_run={"a"})
    assert (note.written, failures(events)) == (["a"], [None])


async def test_calls_that_go_on_are_decided_about_like_others() -> None:  # P4
    note = Note()
    events = await events_of(ScriptedModel("Done."), in_the_middle(), note, may_have_run=(), approval=Policy())
    assert (note.written, failures(events)) == ([], ["refused_unattended"] * 3)


async def test_a_history_that_ends_in_a_call_is_left_as_it_is_where_nothing_goes_on() -> None:
    note = Note()
    events = await events_of(ScriptedModel("Done."), in_the_middle(), note)
    assert note.written == []
    assert not any(isinstance(event, ToolFinished) for event in events)


async def test_the_same_call_for_the_third_turn_in_a_row_is_not_run_and_the_model_is_told() -> None:  # R3
    note = Note()
    same = Say(calls=[("write_note", '{"text": "x"}')])
    spelled = Say(calls=[("write_note", ' { "text" : "x" } ')])
    model = ScriptedModel(same, spelled, same, same, writes("y"), same, "Enough.")
    events = await events_of(model, [Message("user", "Go")], note)
    assert note.written == ["x", "x", "y", "x"]
    assert failures(events) == [None, None, "repeated", "repeated", None, None]
    assert "same arguments twice" in model.requests[3].messages[-1].get_text_content()
    assert Transcript(events).messages()[-1].get_text_content() == "Enough."


async def test_the_same_call_twice_in_one_turn_is_no_repetition() -> None:
    note = Note()
    events = await events_of(ScriptedModel(writes("x", "x", "x"), "Done."), [Message("user", "Go")], note)
    assert (note.written, failures(events)) == (["x", "x", "x"], [None, None, None])


async def test_within_a_budget_it_pauses_before_the_call_too_many_with_all_calls_answered() -> None:  # R3, case 9
    note = Note()
    model = ScriptedModel(writes("1"), writes("2"), writes("3"))
    loop = ToolLoop(model, {"write_note": note}, most_calls=2)
    events: list[Event] = []
    with pytest.raises(LimitReachedError) as caught:
        async for event in loop.reply([Message("user", "Go")], lang="en", budget=Budget()):
            events.append(event)  # noqa: PERF401 - what came before the error counts
    assert (caught.value.words_key, note.written, len(model.requests)) == ("call_limit", ["1", "2"], 2)
    assert sum(isinstance(e, CallStarted) for e in events) == sum(isinstance(e, ToolFinished) for e in events) == 2


async def test_an_answer_on_the_last_call_of_a_budget_is_the_answer() -> None:
    events = await events_of(
        ScriptedModel(writes("1"), "Done."), [Message("user", "Go")], Note(), budget=Budget(), most_calls=2
    )
    assert Transcript(events).messages()[-1].get_text_content() == "Done."


async def test_fifty_calls_in_one_turn_are_all_answered_and_the_loop_ends() -> None:  # fault case 9
    note = Note()
    many = Say(calls=[("write_note", '{"text": "x"}'), ("no_such_tool", "{}"), ("write_note", "{{{")] * 17)
    events = await events_of(ScriptedModel(many, "Done."), [Message("user", "Go")], note)
    assert (len(failures(events)), len(note.written)) == (51, 17)
    assert Transcript(events).messages()[-1].get_text_content() == "Done."
