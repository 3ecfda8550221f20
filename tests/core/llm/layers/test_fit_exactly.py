"""Fitting by the real vocabulary: within the room to the token, characters whole, nothing without content."""

from __future__ import annotations

import json
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ContextTooLongError
from core.llm.base import BaseChatModel
from core.llm.layers.fit_context import OMITTED, Costs, fitted
from core.llm.request import ChatRequest
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message
from core.testing.scripted_model import ScriptedModel
from tests.tries import tries


class Seeing(BaseChatModel):
    """A model of Qwen's that sees."""

    support_multimodal_input = True


QWEN = BaseChatModel({"model": "qwen-max"})
SEEING = Seeing({"model": "qwen-vl-max"})
TOOL: dict[str, Any] = {
    "name": "f",
    "description": "Does it. " * 30,
    "parameters": {"type": "object", "properties": {}},
}
PICTURE = ContentItem(image="http://127.0.0.1:1/a.png")


def fit(messages: list[Message], room: int, model: BaseChatModel = QWEN) -> list[Message]:
    return list(fitted(ChatRequest(tuple(messages)), room, model).messages)


def cost(messages: list[Message], model: BaseChatModel = QWEN) -> int:
    """What the budget sees: the word that stands for an omitted text is free."""
    costs = Costs(model)
    return sum(costs.of(m) - (m.content == OMITTED) for m in messages)


def call(number: str, text: str = "", arguments: str = "{}") -> Message:
    return Message(ASSISTANT, text, function_call={"name": "f", "arguments": arguments}, extra={"function_id": number})


def result(number: str, content: Any) -> Message:
    return Message(FUNCTION, content, name="f", extra={"function_id": number})


TEXT = st.text(alphabet="ab é👩‍👩‍👧👍🏽🇩🇪e\u0301क्षि你好。 \n", max_size=80)
CONTENT = TEXT | st.lists(TEXT.map(lambda text: ContentItem(text=text)) | st.just(PICTURE), max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages = [Message(SYSTEM, draw(TEXT))] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 4))):
        messages.append(Message(USER, draw(CONTENT)))
        for step in range(draw(st.integers(0, 3))):
            number = f"{turn}.{step}"
            arguments = json.dumps({"a": draw(TEXT)}, ensure_ascii=False)
            messages += [call(number, draw(TEXT), arguments), result(number, draw(CONTENT))]
        if draw(st.booleans()):
            messages.append(Message(ASSISTANT, draw(CONTENT)))
    return messages


def characters(messages: list[Message]) -> set[str]:
    """Every character as a reader sees it; what stands at the two sides of a cut is looked at by itself."""
    texts = [item.text or "" for message in messages for item in message.items]
    return {each for text in texts for piece in text.split("...") for each in regex.findall(r"\X", piece)}


@settings(max_examples=tries(200))
@given(conversations(), st.integers(1, 3000), st.sampled_from([QWEN, SEEING]))
def test_whatever_the_conversation_it_fits_whole_or_is_refused(
    messages: list[Message], room: int, model: BaseChatModel
) -> None:
    before = [message.model_dump_json() for message in messages]
    try:
        kept = fit(messages, room, model)
    except ContextTooLongError:
        kept = []
    assert [message.model_dump_json() for message in messages] == before
    assert cost(kept, model) <= room
    assert all(message.content is not None for message in kept)
    calls = [(m.function_call.name, m.extra) for m in kept if m.function_call]
    assert calls == [(m.name, m.extra) for m in kept if m.role == FUNCTION]
    assert characters(kept) <= characters(messages) | set(OMITTED + "\n")
    if kept:
        assert [m for m in kept if m.role == SYSTEM] == [m for m in messages if m.role == SYSTEM]
        assert next(m.role for m in kept if m.role != SYSTEM) == USER


def test_room_is_left_for_the_tools_as_the_model_will_be_told_of_them() -> None:
    messages = (Message(USER, "word " * 500),)
    sizes: dict[str, int] = {}
    for name, generate in {
        "template": {},
        "none": {"function_choice": "none"},
        "own": {"use_raw_api": True},
    }.items():
        request = ChatRequest(messages, (TOOL,), generate)
        kept = fitted(request, 400, QWEN).messages[0].get_text_content()
        sizes[name] = QWEN.count_tokens(kept)
        assert sizes[name] + Costs(QWEN).tools(request) in {399, 400}
    assert sizes["template"] < sizes["own"] < sizes["none"] == 400


def test_the_prompt_that_leaves_is_within_the_room_with_its_tools() -> None:
    model = ScriptedModel("fine", native=False)
    model.model = "qwen-max"
    ask = [{"role": "user", "content": "word " * 5000}]
    model.chat(ask, [TOOL], stream=False, extra_generate_cfg={"max_input_tokens": 700})
    sent = "".join(message.get_text_content() for message in model.requests[0].messages)
    assert 690 <= QWEN.count_tokens(sent) <= 700


def test_a_picture_counts_for_a_model_that_sees_and_little_for_one_that_does_not() -> None:
    message = Message(USER, [ContentItem(text="see"), PICTURE])
    assert Costs(SEEING).of(message) > 1000
    assert Costs(QWEN).of(message) < 20


def test_a_picture_goes_before_the_words_of_a_question() -> None:
    (kept,) = fit([Message(USER, [PICTURE, ContentItem(text="what is this? " * 10)])], 60, SEEING)
    assert kept.content == "what is this? " * 10


def test_a_question_that_is_one_picture_too_large_is_refused() -> None:
    with pytest.raises(ContextTooLongError, match=r"question does not fit.*raise max_input_tokens"):
        fit([Message(USER, [PICTURE])], 60, SEEING)


def test_a_call_that_is_too_large_by_itself_is_refused() -> None:
    arguments = json.dumps({"text": "word " * 300})
    with pytest.raises(ContextTooLongError):
        fit([Message(USER, "q"), call("1", arguments=arguments), result("1", "done")], 100)


def test_results_of_one_step_share_the_room_and_short_ones_stay() -> None:
    step = [call("1"), call("2"), call("3"), result("1", "short"), result("2", "w " * 400), result("3", "v " * 900)]
    kept = fit([Message(USER, "q"), *step], 500)
    assert kept[4].content == "short"
    sizes = [QWEN.count_tokens(kept[place].get_text_content()) for place in (5, 6)]
    assert abs(sizes[0] - sizes[1]) <= 2
    assert cost(kept) > 490


def test_an_old_result_loses_no_more_than_it_must() -> None:
    history = [
        Message(USER, "first"),
        call("1"),
        result("1", "w " * 900),
        Message(ASSISTANT, "done"),
        Message(USER, "q"),
    ]
    room = cost(history) - 100
    kept = fit(history, room)
    assert [m.role for m in kept] == [m.role for m in history]
    assert room - 2 <= cost(kept) <= room


def test_what_is_said_beside_a_call_goes_before_the_question() -> None:
    kept = fit([Message(USER, "the question"), call("1", "blah " * 300), result("1", "r")], 60)
    assert kept[0].content == "the question"
    assert kept[2].content == "r"
    assert kept[1].function_call is not None


def test_a_conversation_that_surely_fits_is_not_counted() -> None:
    class Uncounted(BaseChatModel):
        @property
        def counter(self) -> Any:
            return self

        def count(self, text: str) -> int:
            raise AssertionError(text)

        at_most = staticmethod(len)

    request = ChatRequest((Message(USER, "word " * 1000),))
    assert fitted(request, 5000, Uncounted({"model": "m"})) is request
