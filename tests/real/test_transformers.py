"""Transformers for real: the smallest model, from its GGUF file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from core.errors import ContextTooLongError, ModelRefusedError
from core.llm.backends.transformers.model import TransformersModel
from core.llm.request import ChatRequest
from core.llm.weights import WeightStore
from core.llm.weights_catalog import SMALLEST, named
from core.messages.events import Event, MessageFinished, MessageStarted, TextDelta
from core.messages.message import ASSISTANT, SYSTEM, USER, Message
from core.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.weights, pytest.mark.slow]

STORY = Message(USER, "Write a very long story about a fox.")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def model(anyio_backend: str) -> AsyncIterator[TransformersModel]:
    file = WeightStore(Settings.load().weights_dir).fetch(named(SMALLEST))
    loaded = TransformersModel({"model": str(file), "threads": 1, "generate_cfg": {"temperature": 0}})
    await loaded.prepare()
    yield loaded
    await loaded.aclose()


async def events_of(model: TransformersModel, *messages: Message, **generate: object) -> list[Event]:
    async with aclosing(model.stream(ChatRequest(messages, generate=generate))) as stream:
        return [event async for event in stream]


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def last(events: list[Event]) -> MessageFinished:
    assert isinstance(events[-1], MessageFinished)
    return events[-1]


async def test_it_answers_piece_by_piece(model: TransformersModel) -> None:
    events = await events_of(model, Message(USER, "Say hello."), max_tokens=12)
    assert events[0] == MessageStarted()
    assert "hello" in text_of(events).lower()
    assert sum(isinstance(event, TextDelta) for event in events) > 3


async def test_tokens_are_counted_exactly(model: TransformersModel) -> None:
    finished = last(await events_of(model, STORY, max_tokens=7))
    prompt = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    asked = last(await events_of(model, Message(SYSTEM, "Be brief."), Message(USER, "Hi"), max_tokens=1))
    assert (finished.reason, finished.usage and finished.usage.completion_tokens) == ("length", 7)
    assert asked.usage
    assert (asked.usage.prompt_tokens, asked.usage.estimated) == (model.count_tokens(prompt), False)


async def test_it_ends_by_itself_and_before_a_word_to_stop_at(model: TransformersModel) -> None:
    whole = await events_of(model, Message(USER, "Say hello."), max_tokens=100)
    word = text_of(whole).split()[3]
    cut = await events_of(model, Message(USER, "Say hello."), max_tokens=100, stop=[word])
    assert last(whole).reason == last(cut).reason == "stop"
    assert text_of(cut) == text_of(whole)[: text_of(whole).index(word)]
    assert "<|im_end|>" not in text_of(whole)


async def test_an_answer_that_was_begun_is_gone_on_with(model: TransformersModel) -> None:
    begun = [Message(USER, "What is the capital of France?"), Message(ASSISTANT, "The capital of France is")]
    assert text_of(await events_of(model, *begun, max_tokens=4)).strip().startswith("Paris")


async def test_the_same_seed_gives_the_same_answer(model: TransformersModel) -> None:
    drawn = [
        text_of(await events_of(model, STORY, max_tokens=12, temperature=1.0, top_p=0.95, seed=seed))
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


async def test_leaving_takes_no_time_even_while_a_long_question_is_read(model: TransformersModel) -> None:
    long = Message(USER, "The fox runs. " * 1000)
    stream = model.stream(ChatRequest((long,), generate={"max_tokens": 500}))
    assert await anext(stream) == MessageStarted()
    reading = asyncio.ensure_future(anext(stream))
    await asyncio.wait([reading], timeout=0.5)
    assert not reading.done()
    started = time.monotonic()
    reading.cancel()
    await asyncio.wait([reading])
    await stream.aclose()
    assert time.monotonic() - started < 0.1
    await events_of(model, Message(USER, "Say ok."), max_tokens=1)
    assert time.monotonic() - started < 5  # reading it to the end would take far longer


async def test_a_question_beyond_the_context_is_refused_by_name(model: TransformersModel) -> None:
    with pytest.raises(ContextTooLongError):
        await events_of(model, Message(USER, "fox " * 9000), max_input_tokens=0)


async def test_a_setting_that_nobody_knows_is_refused_by_name(model: TransformersModel) -> None:
    with pytest.raises(ModelRefusedError, match="wizardry"):
        await events_of(model, STORY, wizardry=1)
