"""Growing messages of Qwen-Agent's hooks, told as events."""

from __future__ import annotations

import pytest

from core.errors import ModelMisbehavedError
from core.llm.sync_hooks import Growth
from core.messages.content import ContentItem
from core.messages.events import CallDelta, CallStarted, ItemAdded, ReasoningDelta, TextDelta
from core.messages.message import ASSISTANT, FunctionCall, Message


def grown(*snapshots):
    growth = Growth()
    return [event for snapshot in snapshots for event in growth.events(snapshot)]


def said(text, **more):
    return Message(ASSISTANT, text, **more)


def test_only_what_is_new_is_told():
    assert grown([said("a")], [said("ab")], [said("ab")], [said("ab"), said("c")]) == [
        TextDelta("a"),
        TextDelta("b"),
        TextDelta("c"),
    ]


def test_a_hook_may_strip_the_end_while_it_grows():
    assert grown([said("a ")], [said("a")], [said("a b")]) == [TextDelta("a "), TextDelta("b")]


def test_changing_what_was_said_is_an_error():
    with pytest.raises(ModelMisbehavedError, match="changed"):
        grown([said("abc")], [said("xyz!")])


def test_reasoning_items_and_calls_are_told_once():
    picture = ContentItem(image="a.png")
    call = said("", function_call=FunctionCall("f", "{}"), extra={"function_id": "9"})
    whole = [said("", reasoning_content="hm"), said([ContentItem(text="t"), picture]), call]
    assert grown(whole, whole) == [
        ReasoningDelta("hm"),
        TextDelta("t"),
        ItemAdded(picture),
        CallStarted("9", "f"),
        CallDelta("9", "{}"),
    ]


def test_a_call_without_an_id_gets_one():
    started, delta = grown([said("", function_call=FunctionCall("f", "{}"))])
    assert isinstance(started, CallStarted)
    assert isinstance(delta, CallDelta)
    assert started.call_id == delta.call_id
    assert started.call_id.startswith("call_")
