"""The layer that puts tools into the prompt: what it hands down, and what is kept when a reply breaks off."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from core.errors import ModelUnavailableError
from core.llm.layers.call_prompting import call_prompting
from core.llm.layers.reply import thoughts
from core.llm.request import ChatRequest, Stream
from core.messages.events import Event, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import Message
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

TOOL = {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}}}
MODEL = ScriptedModel("", native=False)


def breaking(*texts: str):
    async def below(request: ChatRequest) -> Stream:
        del request
        yield MessageStarted()
        for text in texts:
            yield TextDelta(text)
        raise ModelUnavailableError(message="gone")

    return below


async def until_it_breaks(stream: Stream) -> list[Event]:
    events: list[Event] = []
    with pytest.raises(ModelUnavailableError):
        async with aclosing(stream):
            async for event in stream:
                events.append(event)  # noqa: PERF401 - what came before the error is kept
    return events[1:]


@pytest.mark.parametrize("said", [("so <t",), ('{"na', "me"), ("so ", "\n\n<")])
async def test_what_was_held_back_is_shown_when_the_service_breaks_off(said: tuple[str, ...]) -> None:
    layer = call_prompting(MODEL)  # type: ignore[arg-type]
    request = ChatRequest((Message("user", "q"),), (TOOL,), answers_calls=True)
    events = await until_it_breaks(layer(request, breaking(*said)))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "".join(said)


async def test_half_a_call_is_no_call_when_the_service_breaks_off() -> None:
    layer = call_prompting(MODEL)  # type: ignore[arg-type]
    request = ChatRequest((Message("user", "q"),), (TOOL,), answers_calls=True)
    below = breaking("Let me see.\n<tool_call>", '{"name": "f", "arguments": {"x"')
    assert await until_it_breaks(layer(request, below)) == [TextDelta("Let me see.")]


async def test_a_thought_that_breaks_off_is_kept() -> None:
    request = ChatRequest((Message("user", "q"),))
    events = await until_it_breaks(thoughts(request, breaking("<think>one </t")))
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "one </t"
