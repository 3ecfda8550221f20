"""All layers at once, over a real connection: what fails, what is kept, what is closed."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelServiceError, ModelUnavailableError
from core.llm.base import BaseChatModel
from core.llm.layers.retry import Breakers, Pauses, retry
from core.llm.open_model import get_chat_model
from core.llm.request import ChatRequest, Stream
from core.llm.telemetry import ModelCall
from core.messages.events import MessageFinished, TextDelta
from core.messages.message import USER, Message
from core.messages.transcript import Transcript
from core.testing.script import Reply, refusal

pytestmark = pytest.mark.anyio

QUESTION = (Message(USER, "How is the weather?"),)


class Waits(list[float]):
    """Takes the place of sleeping."""

    async def sleep(self, seconds: float) -> None:
        self.append(seconds)


class Retried:
    """A model on the server whose pauses take no time."""

    def __init__(self, model: BaseChatModel) -> None:
        self.model: Any = model  # its own hook is what is retried
        self.waits, self.known = Waits(), Breakers()

    def stream(self, **generate: Any) -> Stream:
        layer = retry(self.model, Pauses(self.waits.sleep, lambda: 1.0), self.known)
        return layer(ChatRequest(QUESTION, generate={"max_retries": 3, **generate}), self.model._stream)

    async def text(self, **generate: Any) -> str:
        async with aclosing(self.stream(**generate)) as events:
            said = Transcript([event async for event in events]).messages()
        return "".join(message.get_text_content() for message in said)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_a_service_that_stumbles_is_asked_again(server, opened, status: int):
    server.add(refusal(status), refusal(status), Reply(text="It is sunny."))
    retried = Retried(opened())
    assert await retried.text() == "It is sunny."
    assert (len(server.requests), retried.waits) == (3, [0.5, 1.0])


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
async def test_a_service_that_refuses_is_asked_once(server, opened, status: int):
    server.add(refusal(status), Reply(text="never said"))
    with pytest.raises(ModelServiceError):
        await Retried(opened()).text()
    assert len(server.requests) == 1


@pytest.mark.parametrize("words", ["DataInspectionFailed", "Output data may contain inappropriate content."])
async def test_what_inspection_refused_is_not_asked_again(server, opened, words: str):
    server.add(refusal(500, words), Reply(text="never said"))
    with pytest.raises(ModelRefusedError):
        await Retried(opened()).text()
    assert len(server.requests) == 1


async def test_the_pause_that_the_service_asks_for_is_kept_in_seconds_or_as_a_date(server, opened):
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    server.add(refusal(429, retry_after="7"), refusal(503, retry_after=when), refusal(429, retry_after="soon"))
    server.add(Reply(text="It is sunny."))
    retried = Retried(opened())
    assert await retried.text() == "It is sunny."
    seconds, date, nonsense = retried.waits
    assert (seconds, nonsense) == (7.0, 2.0)
    assert 35 < date <= 40


async def test_a_service_that_wants_an_hour_is_not_waited_for_and_says_so(server, opened):
    server.add(refusal(429, retry_after="3600"))
    with pytest.raises(ModelUnavailableError) as raised:
        await Retried(opened()).text()
    assert (len(server.requests), raised.value.retry_after) == (1, 3600.0)


async def test_a_connection_that_is_refused_is_tried_again():
    model = get_chat_model({"model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": "sk-any"})
    retried = Retried(model)
    with pytest.raises(ModelUnavailableError):
        await retried.text()
    assert retried.waits == [0.5, 1.0, 2.0]
    await model.aclose()


async def test_silence_before_the_first_word_is_tried_again(server, opened):
    server.add(Reply(hang=True), Reply(text="It is sunny."))
    assert await Retried(opened()).text(request_timeout=2.0) == "It is sunny."


async def test_silence_in_the_middle_keeps_what_had_come_and_is_not_tried_again(server, opened):
    server.add(Reply(text="It is sunny in Paris", hang_after=4), Reply(text="never said"))
    seen = Transcript()
    with pytest.raises(ModelServiceError):
        async with aclosing(Retried(opened()).stream(request_timeout=2.0)) as events:
            async for event in events:
                seen.apply(event)
    assert seen.messages()[0].get_text_content().startswith("It is")
    assert len(server.requests) == 1


async def test_what_had_come_of_a_reply_that_broke_off_is_in_the_error(server, opened):
    server.add(Reply(text="It is sunny in Paris", cut_after=4))
    with pytest.raises(ModelMisbehavedError) as raised:
        await opened(generate_cfg={"max_retries": 3}).achat(QUESTION)
    assert raised.value.extra is not None
    assert raised.value.extra["partial"][0]["content"].startswith("It is")
    assert len(server.requests) == 1


async def test_closing_a_stream_closes_the_response_early_whatever_is_around_it(server, opened, tmp_path):
    def look(text: str, side: str) -> None:
        """Lets all pass."""

    server.add(Reply(text=["word "] * 4000, pace=0.01))
    calls: list[ModelCall] = []
    model = opened(moderation=look, generate_cfg={"max_retries": 3, "cache_dir": str(tmp_path), "turn_timeout": 60})
    model.on_call(calls.append)
    async with aclosing(model.stream(ChatRequest(QUESTION))) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    (exchange,) = server.requests
    assert await asyncio.to_thread(exchange.ended.wait, 5)
    assert exchange.left_early
    assert [call.outcome for call in calls] == ["stopped"]


async def test_a_call_that_was_retried_says_so_in_its_record(server, opened):
    server.add(
        refusal(429, retry_after="0"), Reply(text="It is sunny.", usage=(7, 3), headers={"x-request-id": "req-7"})
    )
    calls: list[ModelCall] = []
    model = opened(generate_cfg={"max_retries": "1"})
    model.on_call(calls.append)
    async with aclosing(model.stream(ChatRequest(QUESTION))) as events:
        finished = [event async for event in events][-1]
    assert isinstance(finished, MessageFinished)
    (call,) = calls
    assert (call.retries, call.outcome, call.service.host) == (1, "finished", "127.0.0.1")
    assert call.response_id == "req-7"
    assert call.usage == finished.usage
    assert call.usage is not None
    assert (call.usage.prompt_tokens, call.usage.completion_tokens) == (7, 3)
