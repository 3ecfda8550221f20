"""A program's memory of a conversation: the newest messages that fit, and steps of thought."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import AgentScratchpadUnit, AgentThought, FunctionCall, Message, TokenBufferMemory
from core.agents.react_parser import Action, StepParser
from core.errors import SettingsError
from core.llm.layers.fit_context import Costs
from core.testing.scripted_model import ScriptedModel

MODEL = ScriptedModel("ok")


def said(text: str, role: str = "user") -> Message:
    return Message(role, text)


def call(name: str) -> Message:
    return Message("assistant", "", function_call=FunctionCall(name, "{}"), extra={"function_id": name})


def result(name: str) -> Message:
    return Message("function", "it gave " * 5, name=name, extra={"function_id": name})


def memory(max_tokens: int, *messages: Message) -> TokenBufferMemory:
    made = TokenBufferMemory(MODEL, max_tokens)
    for message in messages:
        made.add_message(message)
    return made


def cost(*messages: Message) -> int:
    return sum(map(Costs(MODEL).of, messages))


def test_the_newest_that_fit_come_back_the_oldest_first() -> None:
    one, two, three = said("one " * 20), said("two", "assistant"), said("three")
    assert memory(10_000, one, two, three).get_history_messages() == [one, two, three]
    assert memory(cost(two, three), one, two, three).get_history_messages() == [two, three]
    assert memory(cost(two, three) - 1, one, two, three).get_history_messages() == [three]


def test_there_is_no_hole_in_what_comes_back() -> None:
    small, long, last = said("small"), said("long " * 200), said("last")
    assert memory(cost(small, last), small, long, last).get_history_messages() == [last]
    assert memory(50, said("long " * 200)).get_history_messages() == []


def test_calls_and_their_results_are_both_there_or_neither() -> None:
    turn = [call("a"), call("b"), result("a"), result("b")]
    question, answer = said("question"), said("answer", "assistant")
    whole = memory(cost(*turn, answer), question, *turn, answer)
    assert whole.get_history_messages() == [*turn, answer]
    whole.max_tokens -= 1
    assert whole.get_history_messages() == [answer]


def test_dicts_are_messages_too_and_clear_forgets() -> None:
    buffer = TokenBufferMemory(MODEL)
    buffer.add_message({"role": "user", "content": "hello"})
    assert [one.content for one in buffer.get_history_messages()] == ["hello"]
    buffer.clear()
    assert buffer.get_history_messages() == buffer.history_messages == []


@pytest.mark.parametrize("most", [0, -5])
def test_no_room_at_all_is_an_error(most: int) -> None:
    with pytest.raises(SettingsError, match="max_tokens"):
        TokenBufferMemory(MODEL, most)


@given(st.lists(st.sampled_from(["said", "call", "result"]), max_size=12), st.integers(1, 200))
def test_what_comes_back_is_the_end_and_fits(kinds: list[str], most: int) -> None:
    made = {"said": lambda: said("a b c"), "call": lambda: call("f"), "result": lambda: result("f")}
    messages = [made[kind]() for kind in kinds]
    kept = memory(most, *messages).get_history_messages()
    assert kept == messages[len(messages) - len(kept) :]
    assert cost(*kept) <= most
    if 0 < len(kept) < len(messages):
        assert kept[0].role != "function", "its call would be missing"


def step(**values: Any) -> AgentThought:
    usual = {"thought": "I look.", "tool_name": "search", "tool_input": '{"query": "tea"}', "observation": "Hot."}
    return AgentThought("t1", "m1", **{**usual, **values}, position=2)


def test_a_unit_reads_as_the_four_lines_of_a_step() -> None:
    action = AgentScratchpadUnit.Action(action_name="search", action_input={"query": "茶", "k": 2}, thought="I look.")
    unit = AgentScratchpadUnit(action=action, thought="I look.", observation="Hot.", action_str="search(query='茶')")
    assert str(unit) == ('Thought: I look.\nAction: search\nAction Input: {"query": "茶", "k": 2}\nObservation: Hot.')
    assert unit.to_prompt_message() == str(unit)
    assert unit.to_dict() == {
        "action": {"action_name": "search", "action_input": {"query": "茶", "k": 2}, "thought": "I look."},
        "thought": "I look.",
        "observation": "Hot.",
        "action_str": "search(query='茶')",
    }
    assert json.loads(json.dumps(unit.to_dict())) == unit.to_dict()


def test_a_stored_step_comes_back_as_a_unit() -> None:
    unit = AgentScratchpadUnit.of(step())
    action = AgentScratchpadUnit.Action("search", {"query": "tea"}, "I look.")
    assert unit == AgentScratchpadUnit(action, "I look.", "Hot.", "search(query='tea')")


def test_the_last_step_is_a_thought_alone() -> None:
    unit = AgentScratchpadUnit.of(step(tool_name=None, tool_input=None, observation=None))
    assert (unit.action, unit.observation, str(unit)) == (None, "", "Thought: I look.")


@pytest.mark.parametrize(
    ("given", "shown"), [("{}", "search()"), ('"tea', 'search("tea)'), ('"tea"', 'search("tea")'), (None, "search()")]
)
def test_arguments_that_are_no_object_are_kept_as_text(given: str | None, shown: str) -> None:
    unit = AgentScratchpadUnit.of(step(tool_input=given))
    assert unit.action is not None
    assert (unit.action.action_input, unit.action_str) == ({}, shown)


def test_a_thought_without_a_time_is_a_dict_too() -> None:
    assert step().to_dict()["created_at"] is None
    timed = AgentThought("t", "m", "", None, None, None, 1, datetime(2026, 1, 2, tzinfo=UTC))
    assert timed.to_dict()["created_at"] == "2026-01-02T00:00:00+00:00"


@given(st.dictionaries(st.text(min_size=1), st.text() | st.integers() | st.booleans() | st.none(), max_size=4))
def test_what_a_unit_shows_a_model_is_read_back_as_the_same_action(given: dict[str, Any]) -> None:
    unit = AgentScratchpadUnit.of(step(tool_input=json.dumps(given)))
    parser = StepParser(["search"])
    pieces = [*parser.feed(str(unit).partition("\nObservation:")[0]), *parser.close(cut=False)]
    (action,) = [piece for piece in pieces if isinstance(piece, Action)]
    assert (action.name, json.loads(action.input)) == ("search", given)
