"""The OpenAI back end against a real socket: replies, connections, time limits and errors."""

from __future__ import annotations

import asyncio
import base64
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from core.bridge.sync import run
from core.errors import (
    ContextTooLongError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelServiceError,
    ModelUnavailableError,
)
from core.llm.backends.openai_errors import Translator
from core.llm.open_model import get_chat_model
from core.llm.request import ChatRequest
from core.messages.content import ContentItem
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import ASSISTANT, FUNCTION, USER, FunctionCall, Message
from core.testing.behaviour import many_chunks
from core.testing.script import Reply, html_page, refusal

KEY = "sk-test-0123"
WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_a_reply_with_everything_in_it(server, opened):
    server.add(
        Reply(
            reasoning="Let me see.", text="你好, all 😀", calls=[("weather", {"城市": "北京"})], usage=(5, 7), split=3
        )
    )
    model = opened(generate_cfg={"use_raw_api": True})
    reasoning, text, call = model.chat([Message(USER, "q")], functions=[WEATHER], stream=False)
    assert (reasoning.reasoning_content, text.content) == ("Let me see.", "你好, all 😀")
    assert call.function_call == FunctionCall("weather", '{"城市": "北京"}')
    assert server.requests[0].body["tools"] == [{"type": "function", "function": WEATHER}]


@pytest.mark.anyio
async def test_the_stream_begins_and_ends_once_with_usage(server, opened):
    server.add(Reply(text="one two", usage=(5, 7)))
    model = opened()
    async with aclosing(model.stream(ChatRequest((Message(USER, "q"),)))) as stream:
        events = [event async for event in stream]
    await model.aclose()
    assert events[0] == MessageStarted()
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "one two"
    assert [e for e in events if isinstance(e, MessageFinished)] == events[-1:]
    assert (events[-1].reason, events[-1].usage.total_tokens) == ("stop", 12)


def test_a_service_that_does_not_stream_is_understood(server, opened):
    body = {"choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]}
    server.add(Reply(body=str(body).replace("'", '"')))
    assert opened().quick_chat("q") == "whole"


def test_all_questions_share_connections(server, opened):
    server.add(*(Reply(text="a") for _ in range(6)))
    first, second = opened(), opened(model="another")
    assert [model.quick_chat("q") for model in (first, second, first, second, first, second)] == ["a"] * 6
    assert server.connections == 1


def test_closing_the_iterator_closes_the_connection(server, opened):
    server.add(many_chunks(10_000, pace=0.01))
    reply = opened().chat([{"role": "user", "content": "q"}])
    next(reply)
    reply.close()
    assert server.requests[0].ended.wait(5)
    assert server.requests[0].left_early


@pytest.mark.anyio
async def test_one_model_serves_several_loops(server, opened):
    server.add(*(Reply(text="a") for _ in range(3)))
    model = opened()
    here = await model.achat([{"role": "user", "content": "q"}])
    there = await asyncio.to_thread(model.quick_chat, "q")
    again = await model.achat([{"role": "user", "content": "q"}])
    await model.aclose()
    assert (here[0].content, there, again[0].content) == ("a", "a", "a")


def test_each_asyncio_run_of_a_script_works_and_leaves_nothing_open(server, opened):
    server.add(Reply(text="a"), Reply(text="b"))
    model = opened()
    said = [asyncio.run(model.achat([{"role": "user", "content": "q"}]))[0].content for _ in range(2)]
    assert said == ["a", "b"]


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind", "key"),
    [
        (refusal(400, "bad field"), ModelRefusedError, "model_refused"),
        (refusal(401), ModelRefusedError, "model_key_wrong"),
        (refusal(403), ModelRefusedError, "model_key_wrong"),
        (refusal(404, "no such model"), ModelRefusedError, "model_unknown"),
        (refusal(422), ModelRefusedError, "model_refused"),
        (refusal(429), ModelUnavailableError, "model_overloaded"),
        (refusal(429, "You exceeded your quota", code="insufficient_quota"), ModelRefusedError, "model_quota"),
        (refusal(500), ModelUnavailableError, "model_unavailable"),
        (refusal(503), ModelUnavailableError, "model_overloaded"),
        (refusal(400, "", code="context_length_exceeded"), ContextTooLongError, "context_too_long"),
        (refusal(400, "This model's maximum context length is 8192 tokens"), ContextTooLongError, "context_too_long"),
        (refusal(413), ContextTooLongError, "context_too_long"),
        (refusal(400, "Input may contain inappropriate content", code="DataInspectionFailed"), ModelRefusedError,
         "model_content_refused"),
        (refusal(500, "image input is not supported - hint: you may need to provide the mmproj"), ModelRefusedError,
         "picture_not_taken"),
        (refusal(400, "m is not a multimodal model"), ModelRefusedError, "picture_not_taken"),
        (refusal(422, "messages[0]: unknown variant `image_url`, expected `text`"), ModelRefusedError,
         "picture_not_taken"),
        (refusal(400, "Audio input is not supported by this model."), ModelRefusedError, "sound_not_taken"),
        (html_page(), ModelMisbehavedError, "model_html"),
        (html_page(404), ModelMisbehavedError, "model_html"),
        (html_page(502), ModelUnavailableError, "model_unavailable"),
        (Reply(body="data: oops\n\n", content_type="text/event-stream"), ModelMisbehavedError, "model_misbehaved"),
        (Reply(body="", content_type="text/event-stream"), ModelUnavailableError, "model_cut_off"),
        (Reply(body='data: {"error": {"message": "x", "code": 503}}\n\n', content_type="text/event-stream"),
         ModelUnavailableError, "model_overloaded"),
        (Reply(body='{"error": {"message": "x", "code": "odd"}}'), ModelUnavailableError, "model_unavailable"),
        (Reply(text="this is cut", cut_after=3), ModelMisbehavedError, "model_cut_off"),
    ],
)  # fmt: skip
def test_every_failure_is_one_clear_error(server, opened, reply, kind, key):
    server.add(reply)
    with pytest.raises(ModelServiceError) as caught:
        opened().quick_chat("q")
    assert (type(caught.value), caught.value.words_key) == (kind, key)
    assert caught.value.details["model"] == "scripted"
    assert caught.value.hint
    server.add(Reply(text="fine"))
    assert opened().quick_chat("the next question works") == "fine"


def test_what_came_before_the_cut_is_not_lost(server, opened):
    server.add(Reply(text="one two three", cut_after=3))
    reply = opened().chat([{"role": "user", "content": "q"}])
    seen = []
    with pytest.raises(ModelMisbehavedError):
        seen.extend(reply)
    assert seen[-1][0]["content"] == "one two"


def test_nobody_listening_is_said_plainly(free_port):
    model = get_chat_model({"model": "m", "base_url": f"http://127.0.0.1:{free_port}/v1", "api_key": KEY})
    with pytest.raises(ModelUnavailableError, match="cannot be reached") as caught:
        model.quick_chat("q")
    assert caught.value.words_key == "model_unreachable"
    assert caught.value.details["host"] == f"127.0.0.1:{free_port}"


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(text="a b c", hang_after=2)])
def test_a_silent_service_is_given_up(server, opened, reply):
    server.add(reply)
    with pytest.raises(ModelUnavailableError, match="too long") as caught:
        opened(generate_cfg={"request_timeout": 0.2}).quick_chat("q")
    assert caught.value.words_key == "model_slow"
    assert server.requests[0].ended.wait(5)


@pytest.mark.parametrize(
    "said", [f"Incorrect API key provided: {KEY}.", "Wrong: sk-proj-abcdef123456", f"Bearer {KEY}"]
)
def test_no_error_ever_holds_a_key(server, opened, said):
    server.add(refusal(401, said))
    with pytest.raises(ModelRefusedError) as caught:
        opened().quick_chat("q")
    everything = f"{caught.value} {caught.value.details} {caught.value.extra} {caught.value.message}"
    assert KEY not in everything
    assert "abcdef123456" not in everything


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        ('{"error": {"message": "boom", "type": "server_error"}}', ModelUnavailableError),
        ('{"error": {"message": "maximum context length is 10"}}', ContextTooLongError),
        ('{"error": {"message": "boom"}}', ModelMisbehavedError),
    ],
)
def test_an_error_in_mid_stream_ends_the_reply_with_what_it_said(server, opened, chunk, kind):
    begun = 'data: {"choices": [{"delta": {"content": "half"}}]}\n\n'
    server.add(Reply(body=f"{begun}data: {chunk}\n\n", content_type="text/event-stream", split=40, pace=0.02))
    seen = []
    with pytest.raises(kind, match=r"boom|length"):
        seen.extend(opened().chat([{"role": "user", "content": "q"}]))
    assert seen[-1][0]["content"] == "half"


def test_an_address_may_lack_its_scheme_or_be_a_name(free_port):
    model = get_chat_model({"model": "m", "base_url": f"127.0.0.1:{free_port}/v1", "api_key": KEY})
    with pytest.raises(ModelUnavailableError):
        model.quick_chat("q")
    named = get_chat_model({"model": "qwen-plus", "model_type": "oai", "model_server": "dashscope", "api_key": KEY})
    assert named.label == "qwen-plus · dashscope.aliyuncs.com"


def test_a_server_of_ones_own_needs_no_key(server):
    server.add(Reply(text="a"))
    model = get_chat_model({"model": "m", "base_url": server.base_url})
    assert model.quick_chat("q") == "a"
    run(model.aclose())


def test_a_long_error_is_cut():
    translator = Translator("http://127.0.0.1/v1", "", "m")
    assert len(translator.redacted("x" * 10_000)) < 600


def test_a_missing_key_is_said_before_anything_is_sent():
    with pytest.raises(ModelRefusedError) as caught:
        get_chat_model({"model": "gpt-5-mini", "model_type": "openai"}).quick_chat("q")
    assert caught.value.words_key == "model_key_missing"


def test_the_service_says_when_to_come_back(server, opened):
    server.add(refusal(429, retry_after="7"))
    with pytest.raises(ModelUnavailableError) as caught:
        opened().quick_chat("q")
    assert caught.value.retry_after == 7.0
    later = datetime.now(UTC) + timedelta(seconds=30)
    soon = refusal(429)
    server.add(replace(soon, headers={"retry-after-ms": "1500", "Retry-After": "2"}))
    with pytest.raises(ModelUnavailableError) as caught:
        opened().quick_chat("q")
    assert caught.value.retry_after == 1.5
    server.add(refusal(429, retry_after=format_datetime(later, usegmt=True)), refusal(429, retry_after="soon"))
    with pytest.raises(ModelUnavailableError) as caught:
        opened().quick_chat("q")
    assert 15 < (caught.value.retry_after or 0) <= 30
    with pytest.raises(ModelUnavailableError) as caught:
        opened().quick_chat("q")
    assert caught.value.retry_after is None


def test_retries_are_ours_and_off_in_the_library(server, opened):
    server.add(refusal(500), Reply(text="a"))
    with pytest.raises(ModelUnavailableError):
        opened().quick_chat("q")
    assert len(server.requests) == 1


def test_with_retries_a_failing_service_is_asked_four_times(server, opened):
    server.add(*(refusal(429, retry_after="0") for _ in range(4)), Reply(text="too late"))
    with pytest.raises(ModelUnavailableError):
        opened(generate_cfg={"max_retries": 3}).quick_chat("q")
    assert len(server.requests) == 4
    assert opened(generate_cfg={"max_retries": 3}).quick_chat("q") == "too late"


# -- requests ---------------------------------------------------------------------------------------------------------


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
