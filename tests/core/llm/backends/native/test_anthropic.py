"""What is Anthropic's own: thinking by the generation of a model, kept prompts, versions of the API, usage."""

from __future__ import annotations

import json

import pytest

from core.errors import ModelRefusedError, ModelUnavailableError, SettingsError
from core.llm.open_model import get_chat_model
from core.llm.wire.anthropic import version_of
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message
from core.testing.script import Reply
from tests.core.llm.backends.native.services import SERVICES, WEATHER

pytestmark = pytest.mark.anyio

LEGACY, MIDDLE, NEWEST = "claude-sonnet-4-5", "claude-opus-4-6", "claude-sonnet-5-5"


@pytest.fixture
def native(serving):
    return serving(next(one for one in SERVICES if one.model_type == "anthropic"))


async def asked(native, model: str, messages=None, functions=(), **generate):
    native.play(Reply(text="Hello!"))
    await native.model(model, generate_cfg=generate).achat(messages or [Message(USER, "q")], list(functions))
    return native.server.requests[-1].body


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-3-5-sonnet-20241022", (3, 5)),
        ("claude-3-opus-20240229", (3, 0)),
        ("claude-sonnet-4-20250514", (4, 0)),
        ("claude-opus-4-1-20250805", (4, 1)),
        ("anthropic.claude-opus-4-6-v1", (4, 6)),
        ("claude-fable-5-2", (5, 2)),
        ("claude-opus-5", (5, 0)),
    ],
)
def test_a_name_tells_the_generation(model, version):
    assert version_of(model) == version


async def test_an_earlier_model_thinks_for_a_number_of_tokens_and_has_room_for_its_answer(native):
    body = await asked(native, LEGACY, reasoning_effort="high")
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 16_384}
    assert body["max_tokens"] > 16_384


async def test_a_small_limit_leaves_half_of_it_for_the_answer(native):
    body = await asked(native, LEGACY, reasoning_effort="high", max_tokens=4000)
    assert (body["max_tokens"], body["thinking"]["budget_tokens"]) == (4000, 2000)
    assert "thinking" not in await asked(native, LEGACY, reasoning_effort="high", max_tokens=500)


async def test_a_later_model_decides_by_itself_and_tells_its_thoughts(native):
    body = await asked(native, MIDDLE, reasoning_effort="low")
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {"effort": "low"}
    assert "thinking" not in await asked(native, MIDDLE)
    assert (await asked(native, NEWEST))["thinking"] == {"type": "adaptive", "display": "summarized"}


async def test_thinking_that_the_program_sets_stands(native):
    body = await asked(native, "claude-opus-5", reasoning_effort="high", thinking={"type": "disabled"})
    assert body["thinking"] == {"type": "disabled"}


async def test_calls_that_were_made_without_a_thought_are_gone_on_with_without_one(native):
    extra = {"function_id": "call_1"}
    call = Message(ASSISTANT, "", function_call={"name": "weather", "arguments": "{}"}, extra=extra)
    said = [Message(USER, "q"), call, Message(FUNCTION, "rain", name="weather", extra=extra)]
    assert "thinking" not in await asked(native, LEGACY, said, [WEATHER], reasoning_effort="high")


async def test_a_forced_call_is_made_without_a_thought(native):
    body = await asked(native, LEGACY, None, [WEATHER], reasoning_effort="high", function_choice="weather")
    assert body["tool_choice"] == {"type": "tool", "name": "weather"}
    assert "thinking" not in body


async def test_the_newest_models_think_always_and_as_little_as_they_can_where_that_is_asked(native):
    assert "thinking" not in await asked(native, "claude-opus-5-5", reasoning_effort="none")
    assert native.body()["output_config"] == {"effort": "low"}
    assert (await asked(native, NEWEST, reasoning_effort="none"))["thinking"] == {"type": "between_tools"}
    assert (await asked(native, "claude-opus-5", reasoning_effort="none"))["thinking"] == {"type": "disabled"}


async def test_a_tool_that_cannot_be_forced_is_offered_alone(native):
    native.play(Reply(text="unused"), Reply(calls=[("weather", {"city": "Oslo"})]), Reply(text="Hello!"))
    model = native.model(NEWEST)
    other = {**WEATHER, "name": "other"}
    for _ in range(2):
        await model.achat([Message(USER, "q")], [other, WEATHER], {"function_choice": "weather"})
        assert [one["name"] for one in native.body()["tools"]] == ["weather"]
        assert native.body()["tool_choice"] == {"type": "auto"}
    assert len(native.server.requests) == 3


async def test_a_thought_goes_back_behind_the_same_conversation(native):
    native.play(Reply(reasoning="Hm.", calls=[("weather", {"city": "Oslo"})]), Reply(text="Rain."))
    model = native.model(NEWEST)
    reply = await model.achat([Message(USER, "q")], [WEATHER])
    result = Message(FUNCTION, "rain", name="weather", extra=dict(reply[-1].extra))
    await model.achat([Message(USER, "q"), *reply, result], [WEATHER])
    assert native.signed()[0] in native.sent()
    assert len(native.server.requests) == 2


async def test_behind_another_conversation_it_goes_on_without_its_thoughts(native):
    native.play(
        Reply(reasoning="Hm.", calls=[("weather", {"city": "Oslo"})]), Reply(text="unused"), Reply(text="Rain.")
    )
    model = native.model(NEWEST)
    reply = await model.achat([Message(USER, "q")], [WEATHER])
    result = Message(FUNCTION, "rain", name="weather", extra={"function_id": reply[-1].extra["function_id"]})
    changed = [Message(SYSTEM, "It is Monday."), Message(USER, "q"), *reply, result]
    assert (await model.achat(changed, [WEATHER]))[-1].get_text_content() == "Rain."
    assert native.signed()[0] not in native.sent()
    assert len(native.server.requests) == 3


async def test_a_thought_that_the_service_hides_goes_back(native):
    hidden = {"type": "redacted_thinking", "data": "hidden=="}
    called = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
    body = {"type": "message", "id": "msg_1", "content": [hidden, called], "stop_reason": "tool_use", "usage": {}}
    native.play(Reply(body=json.dumps(body)), Reply(text="Rain."))
    model = native.model()
    reply = await model.achat([Message(USER, "q")], [WEATHER])
    result = Message(FUNCTION, "rain", name="weather", extra=dict(reply[-1].extra))
    await model.achat([Message(USER, "q"), *reply, result], [WEATHER])
    assert native.body()["messages"][1]["content"][0] == hidden


async def test_the_beginnings_of_prompts_are_kept(native):
    said = [Message(SYSTEM, "Be short."), Message(USER, "one"), Message(ASSISTANT, "two"), Message(USER, "three")]
    body = await asked(native, LEGACY, said, [WEATHER])
    mark = {"type": "ephemeral"}
    assert body["system"][-1]["cache_control"] == body["tools"][-1]["cache_control"] == mark
    assert body["messages"][-1]["content"][-1]["cache_control"] == mark
    assert "cache_control" not in body["messages"][0]["content"][0]


async def test_prompts_are_kept_for_as_long_as_is_set_or_not_at_all(native):
    native.play(Reply(text="a"), Reply(text="b"))
    await native.model(prompt_caching="1h").achat([Message(USER, "q")])
    assert native.body()["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    await native.model(prompt_caching=False).achat([Message(USER, "q")])
    assert "cache_control" not in native.sent()
    with pytest.raises(SettingsError, match="prompt_caching"):
        get_chat_model({"model_type": "anthropic", "prompt_caching": "2h"})


async def test_sampling_is_asked_of_the_version_of_the_api_that_has_it(native):
    await asked(native, NEWEST)
    assert native.server.requests[-1].headers["anthropic-version"] == "2026-10-21"
    body = await asked(native, NEWEST, temperature=0.2)
    assert body["temperature"] == 0.2
    assert native.server.requests[-1].headers["anthropic-version"] == "2023-06-01"


async def test_what_the_service_does_not_know_is_refused_by_name(native):
    native.play(Reply(text="Hello!"))
    with pytest.raises(ModelRefusedError, match="frequency_penalty"):
        await native.model(generate_cfg={"frequency_penalty": 1}).achat([Message(USER, "q")])


async def test_what_was_read_from_its_cache_and_written_to_it_counts_as_asked(native):
    counts = {"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 10, "output_tokens": 7}
    body = {"type": "message", "content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn", "usage": counts}
    native.play(Reply(body=json.dumps(body)))
    usage = (await native.events())[-1].usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.total_tokens) == (35, 20, 7, 42)


async def test_a_failed_call_is_told_as_one(native):
    extra = {"function_id": "call_1"}
    call = Message(ASSISTANT, "", function_call={"name": "weather", "arguments": "{}"}, extra=extra)
    failed = Message(FUNCTION, "no such city", name="weather", extra={**extra, "failed": "tool"})
    body = await asked(native, LEGACY, [Message(USER, "q"), call, failed], [WEATHER])
    assert body["messages"][-1]["content"][0]["is_error"] is True


async def test_overloaded_within_a_reply_may_be_asked_again(native):
    native.play(
        Reply(text="one two", error={"error": {"type": "overloaded_error", "message": "Overloaded"}}, error_after=1)
    )
    with pytest.raises(ModelUnavailableError) as caught:
        await native.events()
    assert (caught.value.code, caught.value.words_key) == ("529", "model_overloaded")


def test_an_address_may_be_copied_from_a_manual():
    for given in ("https://api.anthropic.com/v1/messages", "api.anthropic.com/v1/", "https://api.anthropic.com"):
        model = get_chat_model({"model_type": "anthropic", "base_url": given, "api_key": "k"})
        assert model.service.host == "api.anthropic.com"
        assert model.service.provider == "anthropic"


def test_the_usual_key_goes_to_the_vendors_own_address_alone(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-usual")
    here = get_chat_model({"model_type": "anthropic", "base_url": "http://127.0.0.1:1"})
    there = get_chat_model({"model_type": "anthropic"})
    assert "sk-ant-usual" not in str(vars(here)["_http"].headers)
    assert vars(there)["_http"].headers["x-api-key"] == "sk-ant-usual"


def test_it_says_how_long_it_can_think():
    assert set(get_chat_model({"model_type": "anthropic", "model": LEGACY}).efforts) == {"off", "short", "long"}
    assert set(get_chat_model({"model_type": "anthropic", "model": NEWEST}).efforts) == {"short", "long"}
    assert "off" in get_chat_model({"model_type": "anthropic", "model": "claude-sonnet-5"}).efforts
    assert get_chat_model({"model_type": "anthropic", "model": "claude-3-5-haiku-20241022"}).efforts == {}
