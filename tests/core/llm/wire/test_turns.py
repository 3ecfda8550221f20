"""Conversations as services with calls of their own want them."""

from __future__ import annotations

import pytest

from core.languages import Lang
from core.llm.wire.turns import text_only, turns
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, FunctionCall, Message


def call(name: str, call_id: str = "", arguments: str = "{}") -> Message:
    extra = {"function_id": call_id} if call_id else None
    return Message(ASSISTANT, "", function_call=FunctionCall(name, arguments), extra=extra)


def result(name: str, text: object, call_id: str = "") -> Message:
    return Message(FUNCTION, text, name=name, extra={"function_id": call_id} if call_id else None)  # pyright: ignore[reportArgumentType]


def told(messages, takes=text_only, lang: Lang = "en"):
    return [
        (turn.role, turn.text, [tuple(c) for c in turn.calls], turn.call_id) for turn in turns(messages, takes, lang)
    ]


def test_text_and_calls_of_the_assistant_are_one_turn_and_results_keep_their_ids():
    messages = [
        Message(SYSTEM, "be brief"),
        Message(USER, "q"),
        Message(ASSISTANT, "", reasoning_content="hm"),
        Message(ASSISTANT, "one moment"),
        call("a", "1", '{"x": 1}'),
        call("b", "2"),
        result("b", "second", "2"),
        result("a", "first", "1"),
        Message(ASSISTANT, "done"),
    ]
    assert told(messages) == [
        ("system", "be brief", [], ""),
        ("user", "q", [], ""),
        ("assistant", "one moment", [("1", "a", '{"x": 1}'), ("2", "b", "{}")], ""),
        ("tool", "second", [], "2"),
        ("tool", "first", [], "1"),
        ("assistant", "done", [], ""),
    ]


def test_calls_without_ids_get_their_own_and_results_find_them_by_name():
    written = turns([Message(USER, "q"), call("a"), call("a"), result("a", "1"), result("a", "2")], text_only)
    first, second = written[1].calls
    assert first.call_id != second.call_id
    assert [(turn.call_id, turn.text) for turn in written[2:]] == [(first.call_id, "1"), (second.call_id, "2")]


@pytest.mark.parametrize(("lang", "words"), [("en", "No result."), ("zh", "没有结果。")])
def test_a_call_without_a_result_gets_one_that_says_so(lang, words):
    messages = [Message(USER, "q"), call("a", "1"), Message(USER, "never mind")]
    assert told(messages, lang=lang)[2:] == [("tool", words, [], "1"), ("user", "never mind", [], "")]


def test_a_result_without_a_call_is_the_users_text():
    assert told([result("weather", "sunny")]) == [("user", 'The tool "weather" returned:\nsunny', [], "")]


def test_what_the_model_does_not_take_is_named_in_its_place():
    items = [ContentItem(text="look:"), ContentItem(image="/a/sky.png"), ContentItem(text="well?")]
    assert told([Message(USER, items)]) == [("user", "look:\n[picture sky.png]\nwell?", [], "")]
    assert [item.type for item in turns([Message(USER, items)], lambda item: item.type == "image")[0].items] == [
        "text",
        "image",
        "text",
    ]


def test_what_a_result_brings_beside_text_follows_in_a_turn_of_the_users():
    items = [ContentItem(text="here"), ContentItem(image="https://h/a.png")]
    written = turns([Message(USER, "q"), call("draw", "1"), result("draw", items, "1")], lambda _item: True)
    assert (written[2].role, written[2].text) == ("tool", "here")
    assert (written[3].role, written[3].items[1].image) == ("user", "https://h/a.png")
    assert written[3].text == 'From the tool "draw":'


def test_empty_messages_stay_turns():
    assert told([Message(USER, ""), Message(ASSISTANT, "")]) == [("user", "", [], "")]


def test_instructions_are_one_turn_the_first():
    messages = [Message(USER, "q"), Message(SYSTEM, "be brief"), Message(SYSTEM, "be kind")]
    assert told(messages) == [("system", "be brief\n\nbe kind", [], ""), ("user", "q", [], "")]


def test_what_the_assistant_drew_is_told_by_its_text():
    drawn = [ContentItem(text="There."), ContentItem(image="https://h/a.png")]
    assert told([Message(USER, "draw"), Message(ASSISTANT, drawn)], lambda _item: True)[1][1] == "There."
    assert told([Message(USER, "draw"), Message(ASSISTANT, drawn[1:])])[1][1] == "[picture a.png]\n"
