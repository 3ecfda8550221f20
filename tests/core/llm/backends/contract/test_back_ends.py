"""What every back end promises, asked of each row of the table: how to add one is in `conftest.py`."""

from __future__ import annotations

import json
import time
from contextlib import aclosing

import pytest

from core.errors import ContextTooLongError, ModelRefusedError, ModelServiceError, ModelUnavailableError
from core.llm.request import ChatRequest
from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
)
from core.messages.message import USER, Message
from core.testing.behaviour import many_chunks
from core.testing.script import Reply, refusal

pytestmark = pytest.mark.anyio

WEATHER = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CITIES = ["Oslo", "北京", 'Quote"s']


def text_of(events) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls_of(events) -> list[tuple[str, str, dict]]:
    """Id, name and arguments of each call, in order."""
    begun = {event.call_id: event.name for event in events if isinstance(event, CallStarted)}
    written = {
        key: "".join(e.arguments for e in events if isinstance(e, CallDelta) and e.call_id == key) for key in begun
    }
    return [(key, name, json.loads(written[key] or "{}")) for key, name in begun.items()]


async def test_text(service):
    service.play(Reply(text="Hello, 世界 😀, all is well."))
    events = await service.events(service.question("Say hello."))
    kinds = [type(event) for event in events]
    assert (kinds[0], kinds[-1]) == (MessageStarted, MessageFinished)
    assert (kinds.count(MessageStarted), kinds.count(MessageFinished)) == (1, 1)
    assert text_of(events) == "Hello, 世界 😀, all is well." if service.row.scripted else text_of(events).strip()


async def test_reasoning(service):
    service.play(Reply(reasoning="先想 a little.", text="42"))
    events = await service.events(service.question("What is six times seven? Think first."))
    thought = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    kinds = [type(event) for event in events]
    assert kinds.index(ReasoningDelta) < kinds.index(TextDelta)
    assert (thought, text_of(events)) == ("先想 a little.", "42") if service.row.scripted else thought.strip()


async def test_one_call(service):
    service.play(Reply(calls=[("weather", {"city": "Oslo"})]))
    question = service.question("What is the weather in Oslo? Use the tool.", WEATHER)
    events = await service.events(question, **service.row.native)
    ((call_id, name, arguments),) = calls_of(events)
    assert call_id
    assert (name, arguments) == ("weather", {"city": "Oslo"})
    assert events[-1].reason == "calls"


async def test_three_calls(service):
    service.play(Reply(calls=[("weather", {"city": city}) for city in CITIES]))
    question = service.question("Ask for the weather in three cities at once.", WEATHER)
    calls = calls_of(await service.events(question, parallel_function_calls=True, **service.row.native))
    assert len({call_id for call_id, _, _ in calls}) == 3
    assert {name for _, name, _ in calls} == {"weather"}
    if service.row.scripted:
        assert [arguments["city"] for _, _, arguments in calls] == CITIES


async def test_usage(service):
    service.play(Reply(text="a b", usage=(50, 70), reasoning_tokens=30, cached_tokens=20))
    usage = (await service.events(service.question("Say hello.")))[-1].usage
    assert usage
    if service.row.scripted:
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (50, 70, 120)
        thought = 30 if service.row.counts_thoughts else 0
        assert (usage.reasoning_tokens, usage.cached_tokens, usage.estimated) == (thought, 20, False)
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > 1


async def test_stop(service):
    service.play(Reply(text="one two", finish="length"))
    events = await service.events(service.question("Count from one to ten, in digits.", stop=["7"], max_tokens=60))
    if service.row.scripted:
        assert '"7"' in service.sent()
        assert events[-1].reason == "length"
    assert "7" not in text_of(events)


async def test_close(service):
    """Leaving a reply ends it at the service within 100 ms; on a busy machine, in one of three attempts."""
    passed: list[float] = []
    model = service.model()
    for _ in range(3):
        service.play(many_chunks(10_000, pace=0.01))
        async with aclosing(model.stream(service.question("Tell me a long story.", max_tokens=400))) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
            left = time.monotonic()
        if service.row.scripted:
            exchange = service.server.requests[-1]
            assert exchange.ended.wait(60)
            assert exchange.left_early
            passed.append(exchange.ended_at - left)
        else:
            passed.append(time.monotonic() - left)
        if passed[-1] <= 0.1:
            break
    if service.row.closes:
        await model.aclose()
    assert min(passed) <= 0.1


@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (refusal(400, "That field is wrong."), ModelRefusedError, "400"),
        (refusal(401, "Incorrect API key provided: sk-test-0123.", code="invalid_api_key"), ModelRefusedError, "401"),
        (refusal(404, "There is no such model."), ModelRefusedError, "404"),
        (refusal(429, "Slow down.", retry_after="7"), ModelUnavailableError, "429"),
        (refusal(500, "Something broke."), ModelUnavailableError, "500"),
        (refusal(503, "Too busy."), ModelUnavailableError, "503"),
        (refusal(400, "This model's maximum context length is 8192 tokens."), ContextTooLongError, "400"),
    ],
    ids=["400", "401", "404", "429", "500", "503", "context"],
)
async def test_errors(service, reply, kind, code):
    service.play(reply)
    with pytest.raises(ModelServiceError) as caught:
        await service.events(service.question("q"))
    assert (type(caught.value), caught.value.code) == (kind, code)
    assert caught.value.hint
    assert "sk-test-0123" not in f"{caught.value} {caught.value.details} {caught.value.extra} {caught.value.message}"
    assert caught.value.retry_after == (7.0 if code == "429" else None)
    assert len(service.server.requests) == 1


async def test_unreachable(service):
    service.server.stop()
    with pytest.raises(ModelUnavailableError) as caught:
        await service.events(service.question("q"))
    assert caught.value.hint


async def test_picture(service, picture):
    """What sees gets the picture itself; what does not gets its name."""
    service.play(Reply(text="A dot."))
    asked = [ContentItem(text="What is in the picture?"), ContentItem(image=picture())]
    model = service.model()
    reply = await model.achat([Message(USER, asked)])
    if service.row.closes:
        await model.aclose()
    assert reply[-1].get_text_content()
    if service.row.scripted:
        sees = model.support_multimodal_input
        assert (service.row.picture in service.sent(), "dot.png" in service.sent()) == (sees, not sees)


async def test_no_picture(service, picture):
    """A file that is no picture is refused by name, or named; what is in it is never sent."""
    model = service.model()
    asked = [Message(USER, [ContentItem(text="What is this?"), ContentItem(image=picture(b"root:x:0:0"))])]
    if model.support_multimodal_input:
        with pytest.raises(ModelRefusedError, match=r"dot\.png") as caught:
            await model.achat(asked)
        assert caught.value.hint
        assert service.server.requests == []
    else:
        service.play(Reply(text="I cannot see it."))
        assert (await model.achat(asked))[-1].get_text_content()
    if service.row.closes:
        await model.aclose()


async def test_refusal(service):
    service.play(refusal(400, "Input data may contain inappropriate content.", code="DataInspectionFailed"))
    with pytest.raises(ModelRefusedError) as caught:
        await service.events(service.question("q"))
    assert caught.value.words_key == "model_content_refused"
    assert caught.value.hint


async def test_next_question(service):
    """A failed or abandoned reply leaves the next one unharmed, and questions share what they can."""
    service.play(refusal(500, "Something broke."), Reply(text="fine"))
    model = service.model()
    if service.row.scripted:
        with pytest.raises(ModelUnavailableError):
            await model.achat([Message(USER, "q")])
    assert (await model.achat(ChatRequest((Message(USER, "Say hello."),)).messages))[-1].get_text_content()
    if service.row.closes:
        await model.aclose()


def test_a_row_leaves_out_only_what_there_is_and_says_why(rows):
    promises = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    for row in rows:
        assert set(row.leaves_out) <= promises
        assert all(row.leaves_out.values())
    assert len({row.name for row in rows}) == len(rows)
