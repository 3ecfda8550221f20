"""Steps and code in a model's text, against what Qwen-Agent took out of it."""

from __future__ import annotations

import pytest

from core.agents.react_parser import Action, Answer, Piece, StepParser, Thought, Unreadable
from core.tools.arguments import extract_code
from tests.golden.claimed import Record, name, of


def read(text: str) -> list[Piece]:
    parser = StepParser()
    return [*parser.feed(text), *parser.close()]


@pytest.mark.parametrize("record", of("react.detect_tool"), ids=name)
def test_an_action_is_found_where_it_was_and_nowhere_else(record: Record) -> None:
    """The same; what stands around an action is told apart, too, and an action without input is said to be none."""
    found, tool, given, text = record["output"]
    pieces = read(record["input"])
    actions = [piece for piece in pieces if isinstance(piece, Action)]
    assert actions == ([Action(tool, given)] if found else [])
    labels = {Thought: "Thought: ", Answer: "Final Answer: ", Unreadable: ""}
    said = [labels[type(piece)] + piece.text for piece in pieces if not isinstance(piece, Action)]
    assert said == [text.strip()]


@pytest.mark.parametrize("record", of("extract_code"), ids=name)
def test_code_is_taken_out_of_the_first_fence_that_holds_any(record: Record) -> None:
    assert extract_code(record["input"]) == record["output"]
