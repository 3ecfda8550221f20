"""What goes to an OpenAI-compatible service: settings, history, pictures and tools."""

from __future__ import annotations

import base64

import pytest

from core.errors import ModelRefusedError
from core.llm.open_model import get_chat_model
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, USER, FunctionCall, Message
from core.testing.script import Reply, refusal

KEY = "sk-test-0123"
WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_the_request_carries_model_settings_and_the_key(server, opened):
    server.add(Reply(text="a"))
    opened(generate_cfg={"temperature": 0.5, "top_k": 3, "max_retries": 1}, default_headers={"X-Team": "a"}).quick_chat(
        "q"
    )
    (request,) = server.requests
    assert request.body == {
        "model": "scripted",
        "messages": [{"role": "user", "content": "q"}],
        "temperature": 0.5,
        "top_k": 3,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-team"] == "a"


def test_what_the_vendors_client_takes_beside_the_body_goes_where_it_belongs(server, opened):
    server.add(Reply(text="a"))
    generate = {"extra_body": {"top_k": 3}, "extra_headers": {"X-Trace": "7"}, "extra_query": {"tier": "fast"}}
    opened(generate_cfg=generate, default_headers={"X-Team": "a", "X-Trace": "0"}).quick_chat("q")
    (request,) = server.requests
    assert (request.headers["x-trace"], request.headers["x-team"], request.query) == ("7", "a", "tier=fast")
    assert request.body["top_k"] == 3
    assert not any(key.startswith("extra") for key in request.body)


def test_an_older_service_that_knows_no_stream_options_is_asked_without(server, opened):
    server.add(refusal(400, "Unknown field: stream_options"), Reply(text="a"), Reply(text="b"))
    model = opened()
    assert (model.quick_chat("q"), model.quick_chat("q")) == ("a", "b")
    assert ["stream_options" in request.body for request in server.requests] == [True, False, False]


def test_a_tools_result_goes_back_under_its_calls_id(server, opened):
    server.add(Reply(calls=[("weather", {})]), Reply(text="sunny"))
    model = opened(generate_cfg={"use_raw_api": True})
    history = [Message(USER, "q")]
    history += model.chat(history, functions=[WEATHER], stream=False)
    call_id = history[-1].extra["function_id"]
    history.append(Message(FUNCTION, "20 degrees", name="weather", extra={"function_id": call_id}))
    assert model.chat(history, functions=[WEATHER], stream=False)[-1].content == "sunny"
    _, call, result = server.requests[1].messages
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == call_id


def test_continuing_sends_one_user_message(server, opened):
    server.add(Reply(text="rest"))
    opened().chat([Message(USER, "u"), Message(ASSISTANT, "part")], stream=False)
    assert server.requests[0].messages == [{"role": "user", "content": "u\n\npart"}]


@pytest.mark.parametrize(
    ("model", "more", "sees"),
    [
        ("gpt-4o-mini", {}, True),
        ("qwen2.5-vl-7b", {}, True),
        ("gemma-3-4b", {}, True),
        ("llava", {}, True),
        ("qwen2.5-7b-instruct", {}, False),
        ("deepseek-chat", {}, False),
        ("deepseek-chat", {"vision": True}, True),
        ("gpt-4o", {"vision": False}, False),
        ("anything", {"model_type": "qwenvl_oai"}, True),
    ],
)
def test_whether_a_model_sees_is_known_before_asking(opened, model, more, sees):
    assert opened(model=model, **more).support_multimodal_input is sees


def test_a_picture_on_this_machine_travels_inside_the_request(server, opened, tmp_path):
    picture = tmp_path / "dot.png"
    picture.write_bytes(DOT)
    message = Message(USER, [ContentItem(text="what?"), ContentItem(image=str(picture))])
    server.add(Reply(text="a dot"), Reply(text="no eyes"))
    opened(model="gpt-4o").chat([message], stream=False)
    opened().chat([message], stream=False)
    seen, blind = server.requests
    assert seen.messages[0]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert "dot.png" in blind.messages[0]["content"]
    assert str(tmp_path) not in blind.messages[0]["content"]
    assert message.items[1].image == str(picture)


@pytest.mark.parametrize("content", [b"root:x:0:0", b"", None])
def test_a_file_that_is_no_picture_is_never_sent(server, opened, tmp_path, content):
    file = tmp_path / "secret.png"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ModelRefusedError, match=r"secret\.png") as caught:
        opened(model="gpt-4o").chat([Message(USER, [ContentItem(image=str(file))])], stream=False)
    assert caught.value.words_key == "picture_unreadable"
    assert str(tmp_path) not in str(caught.value)
    assert server.requests == []


def test_native_calls_are_for_openai_itself_and_for_who_asks(opened):
    official = get_chat_model({"model": "gpt-5-mini", "model_type": "openai"})
    assert (official.native_calls, opened().native_calls) == (True, False)
    assert opened(generate_cfg={"use_raw_api": "True"}).native_calls
    told = get_chat_model(
        {"model": "gpt-5-mini", "model_type": "openai", "generate_cfg": {"fncall_prompt_type": "nous"}}
    )
    assert not told.native_calls


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "registry/gemma:2b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice'),
        (400, "`tool calling` is not supported with this model"),
        (404, "No endpoints found that support tool use."),
        (500, "tools param requires --jinja flag"),
    ],
)
def test_a_service_without_calls_of_its_own_gets_its_tools_in_the_prompt(server, opened, status, said):
    in_text = '<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>'
    server.add(refusal(status, said), Reply(text=in_text), Reply(text=in_text))
    model = opened(generate_cfg={"use_raw_api": True})
    for _ in range(2):
        (call,) = model.chat([Message(USER, "q")], functions=[WEATHER], stream=False)
        assert call.function_call == FunctionCall("weather", "{}")
    assert ["tools" in request.body for request in server.requests] == [True, False, False]
    assert "<tools>" in str(server.requests[1].messages)


def test_the_label_names_model_and_service_but_no_key(opened):
    model = opened()
    assert model.label == "scripted · 127.0.0.1"
    assert KEY not in repr(model.label) + str(model)
