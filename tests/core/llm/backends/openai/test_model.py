"""The OpenAI back end against a real socket: replies, connections, time limits and errors."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from core.bridge import watchdog as awake
from core.bridge.sync import run
from core.bridge.watchdog import awake_timeout
from core.errors import (
    ContextTooLongError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelServiceError,
    ModelUnavailableError,
)
from core.llm.backends.http_clients import Limits
from core.llm.backends.openai import model as openai_module
from core.llm.backends.openai.service import Translator
from core.llm.open_model import get_chat_model
from core.llm.request import ChatRequest
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import USER, FunctionCall, Message
from core.testing.behaviour import many_chunks
from core.testing.script import Reply, html_page, refusal

KEY = "sk-test-0123"
WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}


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
    assert server.requests[0].ended.wait(60)
    assert server.requests[0].left_early


@pytest.mark.anyio
async def test_giving_up_before_the_first_word_closes_the_connection(server, opened):
    server.add(Reply(hang=True))
    model = opened()
    waiting = asyncio.create_task(model.achat([{"role": "user", "content": "q"}]))
    while not server.requests:
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert await asyncio.to_thread(server.requests[0].ended.wait, 5)
    assert server.requests[0].left_early
    await model.aclose()


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
        (refusal(400, "The prompt triggered a policy.", code="content_filter"), ModelRefusedError,
         "model_content_refused"),
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
    assert server.requests[0].ended.wait(60)


def test_the_first_of_a_reply_has_one_limit_whatever_it_waits_for(server, opened, monkeypatch):
    entered = []

    def noted(seconds):
        entered.append(seconds)
        return awake_timeout(seconds)

    monkeypatch.setattr(openai_module, "awake_timeout", noted)
    server.add(Reply(text="a b", hang_after=0))
    with pytest.raises(ModelUnavailableError, match="too long"):
        opened(generate_cfg={"request_timeout": 0.3}).quick_chat("q")
    assert entered == [0.3]


def test_a_service_elsewhere_has_a_minute_and_one_on_this_machine_time_to_load_its_model():
    request = ChatRequest((Message(USER, "q"),))
    assert Limits.of(request, here=False) == Limits(first=60.0, idle=30.0)
    assert Limits.of(request, here=True) == Limits(first=600.0, idle=30.0)


def test_a_process_that_slept_reads_what_has_come_meanwhile(server, opened, monkeypatch):
    monkeypatch.setattr(awake, "_LATE", 0.05)
    server.add(Reply(text="one two three four", pace=0.02))
    model = opened(generate_cfg={"request_timeout": 2.0})

    async def ask():
        said = ""
        async with aclosing(model.stream(ChatRequest((Message(USER, "q"),)))) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    said += event.text
                    if said == event.text:
                        asyncio.get_running_loop().call_soon(time.sleep, 3.0)  # longer than it waits for more
        return said

    assert asyncio.run(ask()) == "one two three four"


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
