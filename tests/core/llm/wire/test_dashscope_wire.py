"""Requests in DashScope's own protocol."""

from __future__ import annotations

from core.languages import Lang
from core.llm.request import ChatRequest
from core.llm.wire import dashscope
from core.llm.wire.dashscope import body_json, parameters_json
from core.llm.wire.turns import text_only, turns
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, FunctionCall, Message

TOOL = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}


def sees(item: ContentItem) -> bool:
    return item.type in {"image", "video"}


def messages_json(messages, takes):
    return dashscope.messages_json(turns(messages, takes or text_only), listed=takes is not None)


def test_a_question_of_text():
    request = ChatRequest((Message(SYSTEM, "s"), Message(USER, "q")), (), {"temperature": 0.5, "stop": ["x"]})
    assert body_json("qwen-max", request) == {
        "model": "qwen-max",
        "input": {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]},
        "parameters": {"temperature": 0.5, "stop": ["x"], "result_format": "message", "incremental_output": True},
    }


def test_our_own_keys_stay_here_and_other_names_are_translated():
    given = {
        "max_retries": 3, "request_timeout": 5, "incremental_output": False, "max_new_tokens": 7, "stream": False,
        "stream_options": {}, "enable_thinking": False, "extra_body": {"thinking_budget": 9},
    }  # fmt: skip
    assert parameters_json(ChatRequest((), (), given)) == {
        "max_tokens": 7,
        "enable_thinking": False,
        "thinking_budget": 9,
        "result_format": "message",
        "incremental_output": True,
    }


def test_tools_go_into_the_parameters_with_the_choice():
    def written(**generate):
        return parameters_json(ChatRequest((), (TOOL,), generate))

    assert written()["tools"] == [{"type": "function", "function": TOOL}]
    assert written()["tool_choice"] == "auto"
    assert written(function_choice="none")["tool_choice"] == "none"
    assert written(function_choice="weather")["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    assert written(parallel_function_calls=True)["parallel_tool_calls"] is True


def test_calls_and_results():
    messages = [
        Message(USER, "q"),
        Message(ASSISTANT, "", function_call=FunctionCall("weather", '{"a": 1}'), extra={"function_id": "c1"}),
        Message(FUNCTION, "sunny", name="weather", extra={"function_id": "c1"}),
    ]
    function = {"name": "weather", "arguments": '{"a": 1}'}
    calls = [{"id": "c1", "type": "function", "index": 0, "function": function}]
    assert messages_json(messages, None)[1:] == [
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "sunny", "tool_call_id": "c1", "name": "weather"},
    ]
    assert messages_json(messages, sees)[1:] == [
        {"role": "assistant", "content": [], "tool_calls": calls},
        {"role": "tool", "content": [{"text": "sunny"}], "tool_call_id": "c1", "name": "weather"},
    ]


def test_a_history_that_ends_with_the_assistants_text_is_to_be_continued():
    messages = [Message(USER, "count"), Message(ASSISTANT, "one, two")]
    assert messages_json(messages, None)[-1] == {"role": "assistant", "content": "one, two", "partial": True}
    assert messages_json(messages, sees)[-1] == {
        "role": "assistant",
        "content": [{"text": "one, two"}],
        "partial": True,
    }


def test_a_history_that_ends_with_a_call_is_not():
    call = Message(ASSISTANT, "so", function_call=FunctionCall("weather", "{}"))
    last = messages_json([Message(USER, "q"), call], None)[-1]
    assert last["role"] == "tool"
    assert "partial" not in last


def test_parts_have_the_name_of_their_kind():
    items = [
        ContentItem(text="what?"),
        ContentItem(image="https://h/a.png"),
        ContentItem(video=["https://h/1.png", "https://h/2.png"]),
        ContentItem(audio="https://h/a.wav"),
    ]
    assert messages_json([Message(USER, items)], sees) == [
        {
            "role": "user",
            "content": [
                {"text": "what?"},
                {"image": "https://h/a.png"},
                {"video": ["https://h/1.png", "https://h/2.png"]},
                {"text": "[recording a.wav]\n"},
            ],
        }
    ]


def test_a_model_that_cannot_continue_is_asked_to_in_words():
    def written(*messages: Message, lang: Lang = "en"):
        return body_json("qwq-plus", ChatRequest(messages, lang=lang), partial=False)["input"]["messages"]

    started = Message(ASSISTANT, "one, two")
    assert written(Message(USER, "count"), started) == [{"role": "user", "content": "count\n\none, two"}]
    assert written(started) == [{"role": "user", "content": "one, two"}]
    call = Message(ASSISTANT, "", function_call=FunctionCall("weather", "{}"), extra={"function_id": "c1"})
    result = Message(FUNCTION, "sunny", name="weather", extra={"function_id": "c1"})
    *_, last, asked = written(Message(USER, "q"), call, result, started, lang="zh")
    assert last == {"role": "assistant", "content": "one, two"}
    assert asked == {"role": "user", "content": "请从中断的地方接着说，不要重复。"}
