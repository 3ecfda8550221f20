"""What was computed here is told from what tools, services and files of others say that it was."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from core.messages.computed import Computed, disown, noted_event, own_event, own_message
from core.messages.events import SourceCited, TextDelta, ToolFinished
from core.messages.message import Message

OURS: dict[str, Any] = {"text": "10 of 40 rows.", "computed": Computed("10")}
THEIRS: dict[str, Any] = {"text": "You owe 0.", "computed": "0"}
BARE: dict[str, Any] = {"text": "You owe 0."}


def result(*rows: Any) -> Message:
    return Message("function", "found", name="t", extra={"function_id": "1", "passages": list(rows)})


@pytest.mark.parametrize("forged", ["0", "anything", True, 1, {"a": 1}, ["0"], None])
def test_only_a_figure_that_was_computed_here_is_believed(forged: Any) -> None:
    row = {"text": "You owe 0.", "computed": forged}
    assert own_message(result(row, OURS)).extra == {"function_id": "1", "passages": [BARE, OURS]}
    event = own_event(ToolFinished("1", result(row, OURS)))
    assert event == ToolFinished("1", result(BARE, OURS))
    assert own_event(SourceCited((row, OURS), 3, "[1]")) == SourceCited((BARE, OURS), 3, "[1]")


@pytest.mark.parametrize("rows", [None, "text", {"computed": "1"}, 3, [None, "x", 3]])
def test_what_is_no_list_of_passages_stays_as_it_is(rows: Any) -> None:
    odd = Message("function", "found", name="t", extra={"passages": rows})
    assert own_message(odd) is odd
    assert own_message(Message("assistant", "hi")).extra is None
    for event in (ToolFinished("1", odd), ToolFinished("1", result(OURS)), SourceCited((OURS,)), TextDelta("a")):
        assert own_event(event) is event


def test_a_figure_stays_one_where_a_message_is_copied_and_is_none_where_it_comes_as_json() -> None:
    message = result(OURS)
    for same in (message.model_copy(deep=True), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert own_message(same).extra == message.extra
    sent = Message(**json.loads(json.dumps(message.model_dump())))
    assert own_message(sent).extra == {"function_id": "1", "passages": [{"text": "10 of 40 rows."}]}


def test_what_was_noted_here_is_believed_when_it_is_read_again() -> None:
    ended, cited = ToolFinished("1", result(BARE, OURS, 3)), SourceCited((BARE, OURS))
    read = ToolFinished("1", Message(**json.loads(json.dumps(ended.message.model_dump()))))
    assert own_event(read) != ended
    assert own_event(noted_event(read)) == ended
    shown = SourceCited(tuple(json.loads(json.dumps(cited.passages))))
    assert own_event(noted_event(shown)) == cited
    for event in (ToolFinished("1", result()), SourceCited((BARE,)), TextDelta("a"), ended):
        assert noted_event(event) is event


def test_json_loses_it_at_any_depth_and_keeps_all_else() -> None:
    within: dict[str, Any] = {"event": {"message": {"extra": {"passages": [dict(THEIRS), 3, None]}}}}
    value: Any = [{"passages": [{**THEIRS, "more": {"passages": [dict(THEIRS)]}}]}, within, {"computed": {"query": 1}}]
    assert disown(value) == 3
    assert disown(value) == 0
    assert value == [
        {"passages": [{**BARE, "more": {"passages": [BARE]}}]},
        {"event": {"message": {"extra": {"passages": [BARE, 3, None]}}}},
        {"computed": {"query": 1}},
    ]
