"""`quick_chat_oai` speaks as OpenAI does: messages and tools in, chunks with real usage out."""

from __future__ import annotations

from typing import Any, cast

import pytest

from core.errors import BadMessagesError
from core.llm.oai_surface import from_oai
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

TOOLS: Any = [
    {"type": "function", "function": {"name": "weather", "description": "", "parameters": {"type": "object"}}}
]
ASK: Any = [{"role": "user", "content": "q"}]


def test_each_chunk_holds_the_message_so_far_and_what_is_new_and_the_last_one_the_usage() -> None:
    model = ScriptedModel(Reply(reasoning="hm", text=["one ", "two ", "three"], usage=(7, 3), pace=0.06))
    *grown, last = list(model.quick_chat_oai(ASK))
    assert len(grown) > 1
    assert all(chunk["usage"] is None and chunk["choices"][0]["finish_reason"] is None for chunk in grown)
    whole = {"role": "assistant", "content": "one two three", "reasoning_content": "hm"}
    assert last["choices"][0] == {"index": 0, "message": whole, "delta": {}, "finish_reason": "stop"}
    said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in grown)
    thought = "".join(chunk["choices"][0]["delta"].get("reasoning_content", "") for chunk in grown)
    assert (said, thought) == ("one two three", "hm")
    assert last["usage"]["prompt_tokens"] == 7
    assert last["usage"]["completion_tokens"] == 3
    assert last["usage"]["total_tokens"] == 10
    assert {chunk["id"] for chunk in grown} == {last["id"]}
    assert last["object"] == "chat.completion.chunk"


def test_calls_and_their_results_go_round_as_openai_has_them() -> None:
    model = ScriptedModel(
        Reply(text="I look", calls=[("weather", {"city": "A"}), ("weather", {"city": "B"})]), "Sunny."
    )
    messages = [*ASK]
    *_, last = model.quick_chat_oai(messages, TOOLS)
    choice = last["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert [call["function"]["arguments"] for call in choice["message"]["tool_calls"]] == [
        '{"city": "A"}',
        '{"city": "B"}',
    ]
    first, second = (call["id"] for call in choice["message"]["tool_calls"])
    results = [
        {"role": "tool", "tool_call_id": second, "content": "rain"},
        {"role": "tool", "name": "weather", "content": "sun"},
    ]
    asked = [*messages, choice["message"], *results]
    before = str(asked)
    *_, last = model.quick_chat_oai(asked, TOOLS)
    assert last["choices"][0]["message"]["content"] == "Sunny."
    assert str(asked) == before
    sent = model.requests[1].messages
    assert [(m.role, m.name, (m.extra or {}).get("function_id")) for m in sent[2:]] == [
        ("assistant", None, first),
        ("assistant", None, second),
        ("function", "weather", second),
        ("function", "weather", first),
    ]
    assert model.requests[0].functions == (TOOLS[0]["function"],)


def test_parts_of_a_content_become_items() -> None:
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "http://x/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "video_url", "video_url": {"url": "http://x/a.mp4"}},
    ]
    (message,) = from_oai([{"role": "user", "content": parts}])
    assert [item.get_type_and_value()[0] for item in message.items] == ["text", "image", "audio", "video"]
    (developer,) = from_oai([{"role": "developer", "content": "be kind"}])
    assert developer.role == "system"


@pytest.mark.parametrize("call", ["f", {}, {"function": "f"}, {"function": {"arguments": "{}"}}])
def test_a_call_that_names_no_function_is_refused_with_its_form(call: Any) -> None:
    with pytest.raises(BadMessagesError, match="names no function") as caught:
        from_oai([*ASK, {"role": "assistant", "content": None, "tool_calls": [call]}])
    assert '"function"' in caught.value.hint


def test_closing_it_stops_the_model() -> None:
    model = ScriptedModel(Reply(text="a b c", pace=0.05))
    reply = model.quick_chat_oai(ASK)
    next(reply)
    reply.close()
    assert model.closed == 1


@pytest.mark.parametrize("stream", [True, False])
def test_raw_chat_uses_the_services_own_calls_whatever_the_model_would_do(stream: bool) -> None:
    model = ScriptedModel(Reply(calls=[("weather", {})]), native=False)
    reply = model.raw_chat(ASK, [TOOLS[0]["function"]], stream)
    (message,) = list(reply)[-1] if stream else reply
    assert cast("Any", message)["function_call"]["name"] == "weather"
    assert model.requests[0].functions == (TOOLS[0]["function"],)
    assert model.native_calls is False


def test_one_call_may_ask_for_the_prompt_instead() -> None:
    model = ScriptedModel('<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>', native=True)
    (message,) = model.chat(ASK, [TOOLS[0]["function"]], stream=False, extra_generate_cfg={"use_raw_api": "False"})
    assert message["function_call"]["name"] == "weather"
    assert model.requests[0].functions == ()
