"""What is known of a call when it is over: four stages, time, tokens, price."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import aclosing
from typing import Any

import pytest

from core.errors import ModelMisbehavedError, ModelServiceError, ModelUnavailableError, ParlourError
from core.llm.base import BaseChatModel
from core.llm.request import ChatRequest
from core.llm.telemetry import ModelCall
from core.messages.events import Event, MessageFinished, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import ASSISTANT, USER, Message, Usage
from core.messages.transcript import Transcript
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

QUESTION = ChatRequest((Message(USER, "How is the weather in Paris?"),))
WEATHER = {
    "name": "weather",
    "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


class Listener(list[ModelCall]):
    """Keeps what it is told."""

    def __call__(self, call: ModelCall) -> None:
        self.append(call)


async def reply(model: BaseChatModel, request: ChatRequest = QUESTION) -> list[Event]:
    async with aclosing(model.stream(request)) as events:
        return [event async for event in events]


def listening(*turns: Any, native: bool = True) -> tuple[ScriptedModel, Listener]:
    model, listener = ScriptedModel(*turns, native=native), Listener()
    model.on_call(listener)
    return model, listener


async def test_the_four_stages_of_a_call_are_one_record():
    tagged = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    written = f"<think>Paris.</think>Let me see.\n{tagged}"
    model, calls = listening(written, native=False)
    given = ChatRequest(QUESTION.messages, (WEATHER,))
    await reply(model, given)
    (call,) = calls
    assert call.given.messages == given.messages
    assert call.given.functions == (WEATHER,)
    assert "<tools>" in call.sent.messages[0].get_text_content()
    assert call.sent.functions == ()
    assert [message.get_text_content() for message in call.raw] == [written]
    assert call.parsed[0].reasoning_content == "Paris."
    assert call.parsed[1].content == "Let me see."
    assert call.parsed[2].function_call is not None
    assert call.parsed[2].function_call.name == "weather"
    assert (call.outcome, call.reason, call.retries, call.cache_hit) == ("finished", "calls", 0, False)
    assert call.first_token_seconds is not None
    assert 0 <= call.first_token_seconds <= call.seconds
    assert call.service.name == call.model == "scripted"
    assert len(call.request_id) == 16


async def test_a_listener_that_left_hears_nothing_and_nothing_is_kept_for_it():
    model, calls = ScriptedModel("a"), Listener()
    leave = model.on_call(calls)
    await reply(model)
    leave()
    await reply(model)
    assert len(calls) == 1
    assert model.requests[0].notes is not None
    assert model.requests[0].notes.raw is not None
    assert model.requests[1].notes is not None
    assert model.requests[1].notes.raw is None


async def test_a_failed_call_is_told_with_what_had_come():
    class Broken(ScriptedModel):
        async def _stream(self, request):
            yield MessageStarted()
            yield TextDelta("The weather in")
            raise ModelMisbehavedError(None, "cut", "gone")

    model, calls = Broken(), Listener()
    model.on_call(calls)
    with pytest.raises(ModelMisbehavedError):
        await reply(model)
    (call,) = calls
    assert (call.outcome, call.reason, call.usage) == ("failed", None, None)
    assert isinstance(call.error, ModelMisbehavedError)
    assert call.parsed == [Message(ASSISTANT, "The weather in")]


async def test_a_call_that_was_left_says_so():
    model, calls = listening("one two three")
    async with aclosing(model.stream(QUESTION)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert [(call.outcome, call.error) for call in calls] == [("stopped", None)]
    assert calls[0].parsed == [Message(ASSISTANT, "one")]


async def test_leaving_after_the_end_is_no_stop():
    model, calls = listening("one")
    async with aclosing(model.stream(QUESTION)) as events:
        async for event in events:
            if isinstance(event, MessageFinished):
                break
    assert [call.outcome for call in calls] == ["finished"]


async def test_a_stream_that_is_dropped_without_a_word_is_closed_at_once():
    model = ScriptedModel("one two three")
    gc.disable()  # nobody comes by to tidy up
    try:
        async for event in model.stream(QUESTION):
            if isinstance(event, TextDelta):
                break
        for _ in range(20):
            await asyncio.sleep(0)
        assert model.closed == 1
    finally:
        gc.enable()


# -- usage ------------------------------------------------------------------------------------------------------------


async def test_usage_of_a_service_that_says_nothing_is_estimated_and_marked():
    finished = (await reply(ScriptedModel(Reply(reasoning="Paris is sunny.", text="It is sunny in Paris."))))[-1]
    assert isinstance(finished, MessageFinished)
    assert finished.usage is not None
    assert finished.usage.estimated
    assert 8 <= finished.usage.prompt_tokens <= 20
    assert 6 <= finished.usage.completion_tokens <= 16
    assert finished.usage.total_tokens == finished.usage.prompt_tokens + finished.usage.completion_tokens


async def test_what_the_service_says_is_taken_as_it_is():
    finished = (await reply(ScriptedModel(Reply(text="a", usage=(1, 2)))))[-1]
    assert finished == MessageFinished("stop", Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3))


class Remote(ScriptedModel):
    """As if it were somewhere else."""

    def __init__(self, model: str, address: str, *turns: Any) -> None:
        super().__init__(*turns)
        self.model = model
        self.cfg = {"base_url": address}


@pytest.mark.parametrize(
    ("model", "address", "priced"),
    [
        ("gpt-4o", "https://api.openai.com/v1", True),
        ("gpt-4o", "https://mine.openai.azure.com", True),
        ("a-model-nobody-sells", "https://api.openai.com/v1", False),
        ("gpt-4o", "http://192.168.1.7:8000/v1", False),
        ("gpt-4o", "http://127.0.0.1:8000/v1", False),
        ("gpt-4o", "http://my-server:8000/v1", False),
    ],
)
async def test_a_price_is_known_where_somebody_is_paid(model, address, priced):
    finished = (await reply(Remote(model, address, Reply(text="a", usage=(1000, 500)))))[-1]
    assert isinstance(finished, MessageFinished)
    assert finished.usage is not None
    assert (finished.usage.cost is not None) == priced
    assert not priced or 0 < (finished.usage.cost or 0) < 1


async def test_cached_tokens_are_cheaper_and_costs_add_up():
    whole, part = (
        (MessageStarted(), MessageFinished("stop", Usage(prompt_tokens=1000, total_tokens=1000, cached_tokens=cached)))
        for cached in (0, 800)
    )
    model = Remote("gpt-4o", "https://api.openai.com/v1", whole, part)
    dear, cheap = [(await reply(model))[-1] for _ in range(2)]
    assert isinstance(dear, MessageFinished)
    assert isinstance(cheap, MessageFinished)
    assert dear.usage is not None
    assert cheap.usage is not None
    assert dear.usage.cost is not None
    assert cheap.usage.cost is not None
    assert cheap.usage.cost < dear.usage.cost
    assert (dear.usage + cheap.usage).cost == pytest.approx(dear.usage.cost + cheap.usage.cost)


# -- the end of a turn's time -----------------------------------------------------------------------------------------


class Silent(ScriptedModel):
    """Says some words, then nothing more."""

    def __init__(self, *first: Event) -> None:
        super().__init__()
        self.first, self.closed_early = first, False

    async def _stream(self, request):
        try:
            yield MessageStarted()
            for event in self.first:
                yield event
            await asyncio.Event().wait()
        finally:
            self.closed_early = True


def hurried(seconds: float) -> ChatRequest:
    return ChatRequest(QUESTION.messages, generate={"turn_timeout": seconds})


async def test_a_turn_that_takes_too_long_before_the_first_word_is_a_service_too_slow():
    model = Silent()
    with pytest.raises(ModelUnavailableError, match=r"not done after 0\.02 s") as raised:
        await reply(model, hurried(0.02))
    assert (raised.value.words_key, raised.value.details["host"]) == ("model_slow", "scripted")
    assert model.closed_early
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_had_come_is_kept_when_the_time_is_over():
    seen = Transcript()
    with pytest.raises(ModelMisbehavedError, match="is kept") as raised:
        async with aclosing(Silent(TextDelta("It is")).stream(hurried(0.02))) as events:
            async for event in events:
                seen.apply(event)
    assert seen.messages() == [Message(ASSISTANT, "It is")]
    assert raised.value.words_key == "model_cut_off"
    model, calls = Silent(ReasoningDelta("Paris"), TextDelta("It is")), Listener()
    model.on_call(calls)
    with pytest.raises(ModelMisbehavedError):
        await reply(model, hurried(0.02))
    assert [message.content for message in calls[0].parsed] == ["", "It is"]


async def test_a_reader_slower_than_the_limit_is_told_at_the_next_event():
    async with aclosing(ScriptedModel("a b").stream(hurried(0.01))) as events:
        assert isinstance(await anext(events), MessageStarted)
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(0.02, over.set)
        await over.wait()
        with pytest.raises(ModelServiceError, match="not done"):
            await anext(events)


async def test_a_cancellation_from_outside_stays_one():
    task = asyncio.create_task(reply(Silent(), hurried(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_turn_in_time_hears_nothing_of_the_limit():
    assert isinstance((await reply(ScriptedModel("a"), hurried(60)))[-1], MessageFinished)
    assert isinstance((await reply(ScriptedModel("a"), hurried(0)))[-1], MessageFinished)


# -- the line in the log ----------------------------------------------------------------------------------------------


def line_of(caplog: pytest.LogCaptureFixture) -> str:
    (line,) = [record.getMessage() for record in caplog.records if record.name == "core.llm.calls"]
    return line


async def test_each_call_is_one_line_without_a_word_of_what_was_said(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "core.llm.calls")
    model = ScriptedModel(Reply(text="It is sunny.", usage=(7, 3)))
    model.cfg = {"base_url": "https://user:sk-hidden@one.example/v1", "api_key": "sk-hidden"}
    await reply(model)
    line = line_of(caplog)
    assert line.startswith("model_call request_id=")
    for part in ("service=one.example", "model=scripted", "outcome=finished", "reason=stop", "prompt_tokens=7"):
        assert f" {part} " in line
    assert "retries=0 cache_hit=false" in line
    assert "first_token_ms=" in line
    assert not any(word in line for word in ("sunny", "weather", "hidden", "user"))
    values = caplog.records[-1].__dict__["model_call"]
    assert values["completion_tokens"] == 3


async def test_what_was_said_is_logged_where_it_is_asked_for(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "core.llm.calls")
    await reply(ScriptedModel("It is\nsunny."), ChatRequest(QUESTION.messages, generate={"log_messages": True}))
    line = line_of(caplog)
    assert "How is the weather" in line
    assert "It is\\nsunny." in line
    assert "\n" not in line


async def test_a_failure_is_one_line_too_and_names_no_text(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "core.llm.calls")
    with pytest.raises(ModelUnavailableError):
        await reply(ScriptedModel(ModelUnavailableError(None, "503", "busy with: How is the weather")))
    line = line_of(caplog)
    assert "outcome=failed error=503 " in line
    assert "weather" not in line


@pytest.mark.parametrize("generate", [{"max_input_tokens": 1}, {"function_choice": "whether"}])
async def test_a_call_that_was_refused_before_it_was_sent_is_told_too(
    caplog: pytest.LogCaptureFixture, generate: dict[str, Any]
):
    caplog.set_level(logging.INFO, "core.llm.calls")
    with pytest.raises(ParlourError):
        await reply(ScriptedModel("never"), ChatRequest(QUESTION.messages, (WEATHER,), generate))
    assert "outcome=failed" in line_of(caplog)
