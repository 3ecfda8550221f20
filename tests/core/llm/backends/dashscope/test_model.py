"""The DashScope back ends against a real socket: settings, time limits, errors, faults of the line."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

import pytest

from core.bridge.sync import run
from core.errors import (
    ContextTooLongError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelServiceError,
    ModelUnavailableError,
    SettingsError,
)
from core.llm.request import CallNotes, ChatRequest
from core.messages.events import MessageFinished, MessageStarted
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.testing.behaviour import many_chunks
from core.testing.script import Reply, html_page, refusal

KEY = "sk-test-0123"
WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}
QUESTION = [{"role": "user", "content": "q"}]


@pytest.fixture
def qwen(server, opened):
    """Opens models on the server."""

    def open_one(model_type="qwen_dashscope", **cfg):
        address = server.dashscope_url
        return opened(**{"model": "qwen-max", "model_type": model_type, "base_url": address, "api_key": KEY, **cfg})

    return open_one


# -- replies ----------------------------------------------------------------------------------------------------------


def test_a_question_of_text_goes_to_the_text_service(server, qwen):
    server.add(Reply(reasoning="Let me see.", text="你好 😀", split=3))
    thought, text = qwen(workspace="ws-1", default_headers={"X-More": "1"}).chat([Message(USER, "q")], stream=False)
    assert (thought.reasoning_content, text.content) == ("Let me see.", "你好 😀")
    exchange = server.requests[0]
    assert exchange.path == "/api/v1/services/aigc/text-generation/generation"
    assert exchange.headers["authorization"] == f"Bearer {KEY}"
    assert (exchange.headers["x-dashscope-sse"], exchange.headers["accept"]) == ("enable", "text/event-stream")
    assert (exchange.headers["x-dashscope-workspace"], exchange.headers["x-more"]) == ("ws-1", "1")
    assert exchange.body["parameters"] == {"result_format": "message", "incremental_output": True}


def test_those_that_see_and_hear_are_asked_at_the_multimodal_service(server, qwen):
    for model_type in ("qwenvl_dashscope", "qwenaudio_dashscope"):
        server.add(Reply(reasoning="hm", text="a word"))
        thought, text = qwen(model_type).chat([Message(USER, "q")], stream=False)
        assert (thought.reasoning_content, text.content) == ("hm", "a word")
        assert server.requests[-1].path == "/api/v1/services/aigc/multimodal-generation/generation"
        assert server.requests[-1].messages == [{"role": "user", "content": [{"text": "q"}]}]


def test_each_default_model_is_one_of_its_kind(qwen):
    types = ("qwen_dashscope", "qwenvl_dashscope", "qwenaudio_dashscope")
    assert [qwen(name, model="").model for name in types] == ["qwen-plus", "qwen-vl-max", "qwen-audio-turbo-latest"]


def test_a_model_that_does_not_stream_is_understood(server, qwen):
    server.add(Reply(body='{"output": {"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}}'))
    assert qwen().quick_chat("q") == "whole"


def test_a_partial_reply_is_continued_by_the_service(server, qwen):
    server.add(Reply(text=" three"))
    qwen().chat([Message(USER, "count"), Message(ASSISTANT, "one two")], stream=False)
    assert server.requests[0].messages[-1] == {"role": "assistant", "content": "one two", "partial": True}


def test_a_model_that_cannot_continue_is_asked_to_in_words_from_then_on(server, qwen):
    refused = "<400> InternalError.Algo.InvalidParameter: Partial mode is not supported when enable_thinking is true"
    server.add(told(400, "InvalidParameter", refused), Reply(text=" three"), Reply(text=" three"))
    model, history = qwen(), [Message(USER, "count"), Message(ASSISTANT, "one two")]
    for _ in range(2):
        assert model.chat(history, stream=False)[-1].content == " three"
    assert [exchange.messages[-1]["content"] for exchange in server.requests] == [
        "one two",
        "count\n\none two",
        "count\n\none two",
    ]


def test_tools_go_to_the_service_unless_a_template_is_named(server, qwen):
    server.add(Reply(text="a"), Reply(text="b"), Reply(text="c"), Reply(text="d"))
    for generate in ({}, {"fncall_prompt_type": "nous"}, {"use_raw_api": False}):
        qwen(generate_cfg=generate).chat([Message(USER, "q")], functions=[WEATHER], stream=False)
    qwen("qwenvl_dashscope").chat([Message(USER, "q")], functions=[WEATHER], stream=False)
    assert ["tools" in exchange.body["parameters"] for exchange in server.requests] == [True, False, False, False]
    assert all("weather" in str(exchange.messages) for exchange in server.requests[1:])


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "<400> InternalError.Algo.InvalidParameter: The tool call is not supported."),
        (500, "<400> InternalError.Algo.InvalidParameter: The tool call is not supported."),
        (400, "The tool_choice parameter does not support being set to required or object in thinking mode"),
        (400, '<400> InternalError.Algo.InvalidParameter: tool_choice is one of the strings that should be ["none"]'),
    ],
)
def test_a_model_without_calls_of_its_own_gets_tools_in_the_prompt(server, qwen, status, said):
    server.add(refusal(status, said))
    server.add(Reply(text='<tool_call>\n{"name": "weather", "arguments": {}}\n</tool_call>'))
    model = qwen()
    (call,) = model.chat([Message(USER, "q")], functions=[WEATHER], stream=False)
    assert call.function_call.name == "weather"
    assert not model.native_calls


@pytest.mark.anyio
async def test_the_services_name_for_a_reply_is_noted(server, qwen):
    server.add(Reply(text="a"))
    notes, model = CallNotes(), qwen()
    async with aclosing(model._stream(ChatRequest((Message(USER, "q"),), notes=notes))) as stream:
        events = [event async for event in stream]
    await model.aclose()
    assert notes.response_id == "reply1"
    assert isinstance(events[0], MessageStarted)
    assert isinstance(events[-1], MessageFinished)


@pytest.mark.parametrize(
    "fault",
    [
        {"split": 1},
        {"crlf": True},
        {"comments": True},
        {"crlf": True, "comments": True, "split": 7},
        {"stall_after": 2, "stall": 0.05},
    ],
)
def test_a_whole_reply_survives_what_happens_on_the_line(server, qwen, fault):
    server.add(Reply(reasoning="想 it", text="one 二 😀 three", calls=[("weather", {"城": "北"})], **fault))
    thought, text, call = qwen().chat([Message(USER, "q")], functions=[WEATHER], stream=False)
    assert (thought.reasoning_content, text.content) == ("想 it", "one 二 😀 three")
    assert call.function_call.arguments == '{"城": "北"}'


def test_questions_share_a_connection(server, qwen):
    server.add(*(Reply(text="a") for _ in range(4)))
    first, second = qwen(), qwen("qwenvl_dashscope")
    assert [model.quick_chat("q") for model in (first, second, first, second)] == ["a"] * 4
    assert server.connections == 1


def test_a_model_that_is_warm_has_its_connection(server, qwen):
    server.add(Reply(text="a"))
    model = qwen()
    model.warm_up()
    assert (server.connections, model.quick_chat("q"), server.connections) == (1, "a", 1)
    server.stop()
    with pytest.raises(ModelUnavailableError):
        qwen(base_url=server.dashscope_url).warm_up()


def test_each_asyncio_run_of_a_script_works(server, qwen):
    server.add(Reply(text="a"), Reply(text="b"))
    model = qwen()
    assert [asyncio.run(model.achat(QUESTION))[0].content for _ in range(2)] == ["a", "b"]


# -- time limits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(text="one two three", hang_after=2)])
def test_silence_has_a_limit(server, qwen, reply):
    server.add(reply)
    began = time.monotonic()
    with pytest.raises(ModelUnavailableError) as caught:
        qwen(generate_cfg={"request_timeout": 0.2}).quick_chat("q")
    assert caught.value.words_key == "model_slow"
    assert time.monotonic() - began < 5


def test_a_service_that_keeps_the_line_open_after_the_end_is_not_waited_for(server, qwen):
    server.add(Reply(text="one", hang_after=2))
    began = time.monotonic()
    assert qwen().quick_chat("q") == "one"
    assert time.monotonic() - began < 5


def test_leaving_a_reply_ends_it_at_the_service(server, qwen):
    server.add(many_chunks(10_000, pace=0.01))
    reply = qwen().chat(QUESTION)
    next(reply)
    reply.close()
    assert server.requests[0].ended.wait(60)
    assert server.requests[0].left_early


# -- errors -----------------------------------------------------------------------------------------------------------


def told(status: int, code: str, message: str = "Said.") -> Reply:
    return refusal(status, message, code=code)


@pytest.mark.parametrize(
    ("reply", "kind", "key"),
    [
        (told(400, "InvalidParameter"), ModelRefusedError, "model_refused"),
        (told(401, "InvalidApiKey", "Invalid API-key provided."), ModelRefusedError, "model_key_wrong"),
        (told(403, "AccessDenied"), ModelRefusedError, "model_key_wrong"),
        (told(403, "AllocationQuota.FreeTierOnly"), ModelRefusedError, "model_quota"),
        (told(403, "AccessDenied.Unpurchased"), ModelRefusedError, "model_quota"),
        (told(400, "Arrearage", "Access denied, please make sure your account is in good standing."),
         ModelRefusedError, "model_quota"),
        (told(404, "ModelNotFound", "Model can not be found."), ModelRefusedError, "model_unknown"),
        (told(400, "InvalidParameter", "Model not exist."), ModelRefusedError, "model_unknown"),
        (told(400, "InvalidParameter", "url error, please check url！"), ModelRefusedError, "model_refused"),
        (told(400, "DataInspectionFailed", "Output data may contain inappropriate content."), ModelRefusedError,
         "model_content_refused"),
        (told(400, "data_inspection_failed"), ModelRefusedError, "model_content_refused"),
        (told(400, "InvalidParameter", "Range of input length should be [1, 129024]"), ContextTooLongError,
         "context_too_long"),
        (refusal(413), ContextTooLongError, "context_too_long"),
        (told(429, "Throttling"), ModelUnavailableError, "model_overloaded"),
        (told(429, "Throttling.RateQuota", "Requests rate limit exceeded."), ModelUnavailableError, "model_overloaded"),
        (told(429, "Throttling.AllocationQuota", "Allocated quota exceeded, please increase your quota limit."),
         ModelUnavailableError, "model_overloaded"),
        (told(429, "Throttling.AllocationQuota", "Free allocated quota exceeded."), ModelRefusedError, "model_quota"),
        (told(429, "PrepaidBillOverdue"), ModelRefusedError, "model_quota"),
        (told(408, "RequestTimeOut"), ModelUnavailableError, "model_unavailable"),
        (told(500, "InternalError.Algo"), ModelUnavailableError, "model_unavailable"),
        (told(500, "InternalError", "Error code: 400 - {'message': 'Odd value'}"), ModelRefusedError, "model_refused"),
        (told(500, "InternalError", "<500> InternalError.Algo: An error occurred."), ModelUnavailableError,
         "model_unavailable"),
        (told(503, "ModelServingError"), ModelUnavailableError, "model_overloaded"),
        (html_page(), ModelMisbehavedError, "model_html"),
        (html_page(404), ModelMisbehavedError, "model_html"),
        (html_page(502), ModelUnavailableError, "model_unavailable"),
        (Reply(status=404, body='{"error": {"message": "Not Found"}}'), ModelRefusedError, "model_unknown"),
        (Reply(status=400, body="plain words", content_type="text/plain"), ModelRefusedError, "model_refused"),
        (Reply(status=500, body=""), ModelUnavailableError, "model_unavailable"),
        (Reply(body="data: oops\n\n", content_type="text/event-stream"), ModelMisbehavedError, "model_misbehaved"),
        (Reply(body='{"choices": []}'), ModelMisbehavedError, "model_misbehaved"),
        (Reply(body='{"code": "Throttling", "message": "x"}'), ModelUnavailableError, "model_overloaded"),
        (Reply(body='{"code": "Odd", "message": "x"}'), ModelUnavailableError, "model_unavailable"),
        (Reply(body="", content_type="text/event-stream"), ModelUnavailableError, "model_cut_off"),
        (Reply(text="this is cut", cut_after=2), ModelMisbehavedError, "model_cut_off"),
        (Reply(text="this is cut", reset_after=2), ModelMisbehavedError, "model_cut_off"),
        (Reply(silent=True), ModelUnavailableError, "model_unreachable"),
    ],
)  # fmt: skip
def test_every_failure_is_one_clear_error(server, qwen, reply, kind, key):
    server.add(reply)
    with pytest.raises(ModelServiceError) as caught:
        qwen().quick_chat("q")
    assert (type(caught.value), caught.value.words_key) == (kind, key)
    assert caught.value.details["model"] == "qwen-max"
    assert caught.value.hint
    server.add(Reply(text="fine"))
    assert qwen().quick_chat("the next question works") == "fine"


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", ""])
def test_a_refusal_that_comes_as_an_event_is_read_as_one(server, qwen, end):
    said = '{"code":"Arrearage","message":"Access denied.","request_id":"r1"}'
    body = f"id:1\nevent:error\n:HTTP_STATUS/400\ndata:{said}{end}"
    server.add(Reply(status=400, body=body, content_type="text/event-stream;charset=UTF-8"))
    with pytest.raises(ModelRefusedError) as caught:
        qwen().quick_chat("q")
    error = caught.value
    assert (error.words_key, error.message, error.code) == ("model_quota", "Access denied.", "400")
    assert (error.extra or {})["request_id"] == "r1"


@pytest.mark.parametrize("spoken", [0, 2])
def test_an_error_in_mid_stream_keeps_what_came(server, qwen, spoken):
    error = {"error": {"message": "Too fast.", "code": "Throttling.RateQuota"}}
    server.add(Reply(text="one two three", error_after=spoken, status=200, error=error))
    seen: list[str] = []
    with pytest.raises(ModelUnavailableError) as caught:
        seen.extend(messages[-1]["content"] for messages in qwen().chat(QUESTION))
    assert (seen or [""])[-1] == "one two three"[: spoken * 4].rstrip()
    assert caught.value.words_key == "model_overloaded"
    assert (caught.value.extra or {})["service_code"] == "Throttling.RateQuota"


def test_what_the_service_says_is_told_without_the_key(server, qwen):
    server.add(refusal(401, f"Incorrect API key provided: {KEY}. And sk-another-key-of-yours.", code="invalid_api_key"))
    with pytest.raises(ModelRefusedError) as caught:
        qwen().quick_chat("q")
    error = caught.value
    whole = f"{error} {error.message} {error.details} {error.extra} {error.__cause__!r} {error.__context__!r}"
    assert KEY not in whole
    assert "another" not in whole
    assert (error.extra or {})["service_code"] == "InvalidApiKey"


def test_a_busy_service_is_asked_again_and_a_refusal_is_not(server, qwen):
    busy = refusal(429, "Slow down.", code="Throttling.RateQuota", retry_after="0")
    server.add(busy, busy, Reply(text="fine"), told(400, "Arrearage"))
    model = qwen(generate_cfg={"max_retries": 2})
    assert model.quick_chat("q") == "fine"
    with pytest.raises(ModelRefusedError):
        model.quick_chat("q")
    assert len(server.requests) == 4


def test_content_that_was_refused_is_known_by_the_services_code(server, qwen):
    server.add(told(400, "DataInspectionFailed", "inappropriate content"))
    with pytest.raises(ModelRefusedError) as caught:
        qwen(generate_cfg={"max_retries": 3}).quick_chat("q")
    assert caught.value.code == "DataInspectionFailed"
    assert len(server.requests) == 1


def test_a_model_of_the_other_service_is_told_apart(server, qwen):
    server.add(told(400, "InvalidParameter", "url error, please check url!"))
    with pytest.raises(ModelRefusedError, match="qwenvl_dashscope"):
        qwen().quick_chat("q")


def test_a_server_that_does_not_speak_http_is_told_apart(qwen):
    async def talk() -> ModelServiceError:
        async def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
            writer.close()
            await writer.wait_closed()

        other = await asyncio.start_server(heard, "127.0.0.1", 0)
        port = other.sockets[0].getsockname()[1]
        model = qwen(base_url=f"http://127.0.0.1:{port}/api/v1")
        with pytest.raises(ModelMisbehavedError) as caught:
            await model.achat(QUESTION)
        other.close()
        await model.aclose()
        return caught.value

    assert "DashScope" in run(talk()).message


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_a_setting_that_cannot_be_sent_is_told_before_anything_leaves(server, qwen, value):
    with pytest.raises(SettingsError, match="generate_cfg"):
        qwen(generate_cfg={"logit_bias": value}).quick_chat("q")
    assert server.requests == []


def test_tools_may_have_any_name_and_must_have_a_schema(server, qwen):
    tool = {**WEATHER, "name": "天气 in a city"}
    server.add(lambda request: Reply(calls=[(request["tools"][0]["function"]["name"], {"x": 1})]), Reply(text="fine"))
    model, question = qwen(), Message(USER, "q")
    (call,) = model.chat([question], functions=[tool], stream=False)
    assert call.function_call.name == "天气 in a city"
    result = Message(FUNCTION, "sunny", name=tool["name"], extra=call.extra)
    model.chat([question, call, result], functions=[tool], stream=False)
    sent = server.requests[1]
    name = sent.body["parameters"]["tools"][0]["function"]["name"]
    assert name.isascii()
    assert [sent.messages[1]["tool_calls"][0]["function"]["name"], sent.messages[2]["name"]] == [name, name]
    with pytest.raises(ModelRefusedError, match="schema"):
        model.chat([question], functions=[{"name": "odd", "parameters": "text"}], stream=False)


@pytest.mark.parametrize("kind", ["text/plain", "text/event-stream"])
def test_a_server_that_answers_with_something_else_is_told_apart(server, qwen, kind):
    server.add(Reply(body="It works!", content_type=kind))
    with pytest.raises(ModelMisbehavedError, match="not as a model service") as caught:
        qwen().quick_chat("q")
    assert caught.value.hint


def test_a_reply_that_ends_before_its_first_word_may_be_asked_for_again(server, qwen):
    begun = 'data:{"output":{"choices":[{"message":{"role":"assistant","content":""},"finish_reason":"null"}]}}\n\n'
    server.add(Reply(body=begun, content_type="text/event-stream"), Reply(text="fine"))
    assert qwen(generate_cfg={"max_retries": 1}).quick_chat("q") == "fine"
