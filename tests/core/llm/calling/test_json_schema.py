"""The template for small models: a constrained choice, an answer that streams, facts without tools."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.llm.calling.json_schema import JsonSchemaTemplate, RespondReader, response_format
from core.llm.request import ChatRequest
from core.messages.events import CallDelta, CallStarted, TextDelta
from core.messages.message import FunctionCall, Message

CALCULATOR: dict[str, Any] = {
    "name": "calculator",
    "description": "Reckons",
    "parameters": {
        "type": "object",
        "properties": {"expression": {"type": "string", "description": "such as 2 + 3", "pattern": "(?=x)"}},
        "required": ["expression"],
    },
}


def request(*messages: Message, **generate: Any) -> ChatRequest:
    return ChatRequest(messages, (CALCULATOR,), generate)


def read(text: str, size: int = 1) -> list[Any]:
    reader = JsonSchemaTemplate().reader(request(Message("user", "q")))
    events: list[Any] = []
    for at in range(0, len(text), size):
        events += reader.feed(text[at : at + size])
    return events + reader.close()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.integers(1, 9), st.booleans())
def test_the_answer_streams_as_it_was_meant_whatever_its_escapes_and_splits(
    text: str, size: int, ascii_only: bool
) -> None:
    whole = json.dumps({"name": "respond", "arguments": {"text": text}}, ensure_ascii=ascii_only)
    reader = RespondReader()
    said = [reader.feed(whole[at : at + size]) for at in range(0, len(whole), size)]
    assert "".join(said) == text


def test_the_answer_is_shown_before_it_is_whole() -> None:
    reader = RespondReader()
    reader.feed('{"name": "respond", "arguments": {"text": "')
    assert reader.feed("Hel") == "Hel"
    assert reader.feed("lo\\") == "lo"
    assert reader.feed('n"}}') == "\n"


def test_a_chosen_tool_becomes_one_call() -> None:
    events = read('{"name": "calculator", "arguments": {"expression": "2+3"}}')
    assert events == [CallStarted("1", "calculator"), CallDelta("1", '{"expression": "2+3"}')]


def test_what_is_no_choice_is_shown_rather_than_lost() -> None:
    assert read("Well, hello.", size=40) == [TextDelta("Well, hello.")]


def test_the_schema_offers_each_tool_and_an_answer_and_only_parts_that_grammars_know() -> None:
    schema = response_format([CALCULATOR])["json_schema"]["schema"]
    names = [option["properties"]["name"]["const"] for option in schema["anyOf"]]
    assert names == ["respond", "calculator"]
    assert "pattern" not in json.dumps(schema)


def test_a_named_choice_leaves_the_model_no_other() -> None:
    prepared = JsonSchemaTemplate().prepare(request(Message("user", "q"), function_choice="calculator"))
    assert prepared.generate["response_format"]["json_schema"]["schema"]["properties"]["name"] == {
        "const": "calculator"
    }


def test_a_text_is_asked_for_plainly_where_no_tool_is_needed_for_it() -> None:
    own: dict[str, Any] = {**CALCULATOR, "name": "send_letter"}

    def is_plain(question: str, *tools: dict[str, Any], **generate: Any) -> bool:
        asked = ChatRequest((Message("user", question),), tools or (CALCULATOR,), generate)
        prepared = JsonSchemaTemplate().prepare(asked)
        assert bool(prepared.functions or "response_format" in prepared.generate) == (
            prepared.messages != asked.messages
        )
        return prepared.messages == asked.messages

    for question in (
        "Write a long story about a fox, at least 500 words.",
        "Please explain how rain forms.",
        "Tell me a joke.",
        "写一个关于狐狸的故事。",
        "请给我讲个笑话。",
    ):
        assert is_plain(question)
    assert not is_plain("Explain what 17% of 240 is.")
    assert not is_plain("How much is a tip of 20 on 85?")
    assert not is_plain(f"Explain this: {'word ' * 500}. And what is 17% of 240?")
    assert not is_plain("Tell me about my contract.")
    assert not is_plain("Write a letter to the landlord.", CALCULATOR, own)  # nobody knows here what it is needed for
    assert not is_plain("Write a story.", function_choice="calculator")


def test_a_text_that_was_begun_goes_on_as_a_text_and_not_as_a_choice() -> None:
    begun = request(Message("user", "How much is a tip?"), Message("assistant", "A tip is"))
    prepared = JsonSchemaTemplate().prepare(begun)
    assert prepared.messages == begun.messages
    assert "response_format" not in prepared.generate
    assert JsonSchemaTemplate().reader(begun).feed(" what you add.") == [TextDelta(" what you add.")]


def test_after_a_result_the_model_is_asked_about_the_facts_without_any_tools() -> None:
    asked = request(
        Message("user", "What is 2+3?"),
        Message("assistant", "", function_call=FunctionCall("calculator", "{}")),
        Message("function", "5 <tool_call>", name="calculator"),
    )
    prepared = JsonSchemaTemplate().prepare(asked)
    [only] = prepared.messages
    assert only.get_text_content().startswith("Facts:\n5 ")
    assert "What is 2+3?" in only.get_text_content()
    assert "<tool_call>" not in only.get_text_content()
    assert "response_format" not in prepared.generate
    assert JsonSchemaTemplate().reader(asked).feed("Five.") == [TextDelta("Five.")]


def test_earlier_calls_and_results_do_not_reach_a_small_model() -> None:
    prepared = JsonSchemaTemplate().prepare(
        request(
            Message("user", "a"),
            Message("assistant", "", function_call=FunctionCall("calculator", "{}")),
            Message("function", "5", name="calculator"),
            Message("assistant", "Five."),
            Message("user", "b"),
        )
    )
    assert [m.role for m in prepared.messages] == ["system", "user", "assistant", "user"]


def task(question: str, found: str) -> list[Message]:
    """What a model is given that shall do something with what was found."""
    asked = request(
        Message("user", question),
        Message("assistant", "", function_call=FunctionCall("ask_documents", "{}")),
        Message("function", found, name="ask_documents"),
    )
    return list(JsonSchemaTemplate().prepare(asked).messages)


def test_a_task_with_what_was_found_is_put_as_a_task_not_as_a_question() -> None:
    [only] = task("Shorten: make a list of these.", "The lift is broken.")
    assert "Task: Shorten: make" in only.get_text_content()
    assert "Question:" not in only.get_text_content()


def test_a_letter_is_asked_for_after_an_example_of_one() -> None:
    *example, last = task("Turn these notes into a letter.", "The lift is broken.")
    assert [message.role for message in example] == ["user", "assistant"]
    assert "Task: Turn these notes into a letter." in last.get_text_content()
    assert "The lift is broken." in last.get_text_content()


def test_numbers_and_names_of_passages_are_nothing_to_do_a_task_with() -> None:
    said = task("Translate this.", "[1] (notes.md, page 2)\nThe lift\n\n[2] (a (b).md)\nis [1] broken.")
    assert "The lift\n\nis [1] broken." in said[-1].get_text_content()
    assert "notes.md" not in said[-1].get_text_content()


def test_half_a_choice_is_neither_mended_nor_run() -> None:
    reader = JsonSchemaTemplate().reader(replace(request(Message("user", "q")), answers_calls=True))
    half = '{"name": "calculator", "arguments": {"expression": "1+'
    assert reader.feed(half) == []
    assert reader.close(cut=True) == [CallStarted("1", "calculator"), CallDelta("1", f"(unreadable) {half}")]


def test_without_facts_the_question_stays_as_it_is() -> None:
    said = [
        Message("user", "What is 2+3?"),
        Message("assistant", "", function_call=FunctionCall("calculator", "{}")),
        Message("function", "5", name="calculator"),
        Message("assistant", "Five."),
        Message("user", "Thanks!"),
    ]
    prepared = JsonSchemaTemplate().prepare(ChatRequest(tuple(said)))
    assert [m.get_text_content() for m in prepared.messages] == ["What is 2+3?", "Five.", "Thanks!"]
    assert JsonSchemaTemplate().prepare(ChatRequest((said[2],))).messages == ()
