"""Messages: checked once, and read like dicts as in the peer."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, USER, FunctionCall, Message, ModelResponse, Usage

# Recorded from the peer: what goes in, and what its dump, text or repr is.
RECORDED = {
    "empty_text": (lambda: ContentItem(text="").model_dump(), {"text": ""}),
    "dump_excludes_none": (lambda: Message(USER, "x").model_dump(), {"role": "user", "content": "x"}),
    "json": (
        lambda: Message(USER, [ContentItem(text="你")]).model_dump_json(),
        '{"role":"user","content":[{"text":"你"}]}',
    ),
    "get_falsy_default": (
        lambda: [
            Message(USER, "")["content"] or "D",
            Message(USER, "").get("name", "D"),
            Message(USER, "").get("role"),
        ],
        ["D", "D", "user"],
    ),
    "repr": (
        lambda: repr(Message(ASSISTANT, "", function_call=FunctionCall("f", "{}"))),
        "Message({'role': 'assistant', 'content': '', 'function_call': {'name': 'f', 'arguments': '{}'}})",
    ),
    "video_list": (lambda: ContentItem(video=["a"]).type, "video"),
    "dict_fc": (
        lambda: Message(ASSISTANT, "", function_call={"name": "f", "arguments": "{}"}).model_dump(),
        {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}},
    ),
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_message_behaves_as_the_peers_does(name):
    made, expected = RECORDED[name]
    assert made() == expected


def test_get_gives_the_default_for_empty_values():
    message = Message(USER, "")
    assert message.get("content", "default") == "default"
    assert message.get("unknown", 3) == 3
    assert message.get("keys", 3) == message.get("items", 3) == 3  # names of methods, not of fields


@pytest.mark.parametrize("role", ["tool", "", "User", "developer"])
def test_only_four_roles_exist(role):
    with pytest.raises(ValidationError, match="role must be one of"):
        Message(role, "x")


def test_no_content_is_empty_content():
    assert Message(USER, None).content == ""


def test_a_function_message_needs_a_name():
    with pytest.raises(ValidationError, match="name of its tool"):
        Message(FUNCTION, "result")
    assert Message(FUNCTION, "result", name="f").name == "f"


def test_unknown_fields_are_left_out():
    assert Message(role=USER, content="x", refusal=None, whatever=1).model_dump() == {"role": "user", "content": "x"}


def test_a_list_of_dicts_becomes_items():
    message = Message(USER, [{"text": "a"}, {"image": "b.png"}])
    assert [item.type for item in message.items] == ["text", "image"]
    assert message.is_multimodal()
    assert message.get_text_content() == "a"


def test_a_message_reads_and_writes_like_a_dict():
    message = Message(USER, "x")
    message["name"] = "Ann"
    assert message["name"] == "Ann"
    assert list(message.keys()) == ["role", "content", "name"]
    assert dict(message.model_dump()) == {"role": "user", "content": "x", "name": "Ann"}
    with pytest.raises(KeyError):
        message["nothing"]


def test_a_call_strips_its_name_and_refuses_an_empty_one():
    assert FunctionCall(" f ", "{}").name == "f"
    with pytest.raises(ValidationError, match="cannot be empty"):
        FunctionCall("  ", "{}")


@pytest.mark.parametrize("arguments", [{"a": 1}, "{a: 1}", '{"a": 1', "", None])
def test_arguments_are_whole_json_text(arguments):
    with pytest.raises(ValidationError, match="JSON text"):
        FunctionCall("f", arguments)


def test_adding_an_argument_makes_a_new_call():
    call = FunctionCall("f", '{"a": 1}')
    more = call.add_argument("城市", "北京")
    assert call.get_parsed_arguments() == {"a": 1}
    assert json.loads(more.arguments) == {"a": 1, "城市": "北京"}
    assert "北京" in more.arguments


def test_usage_adds_up_cost_included():
    total = Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3, reasoning_tokens=1, cost=0.5) + Usage(
        prompt_tokens=10, total_tokens=10, reasoning_tokens=2, cached_tokens=4, estimated=True
    )
    assert total.model_dump() == {
        "prompt_tokens": 11,
        "completion_tokens": 2,
        "total_tokens": 13,
        "reasoning_tokens": 3,
        "cached_tokens": 4,
        "cost": 0.5,
        "estimated": True,
    }


def test_a_response_finds_its_text_and_calls():
    response = ModelResponse(
        messages=[Message(ASSISTANT, "", function_call=FunctionCall("f", "{}")), Message(ASSISTANT, "done")],
        usage=Usage(total_tokens=1),
    )
    assert response.get_content() == "done"
    assert [call.name for call in response.get_function_calls()] == ["f"]
    assert ModelResponse(messages=[]).get_content() == ""
