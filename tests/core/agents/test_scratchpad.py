"""A step of thought, as it is shown to a model and as it comes back from the table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import AgentScratchpadUnit, AgentThought
from core.agents.react_parser import Action, StepParser


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
