"""An answer without an end is ended, and what had come of it is kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core.errors import ModelMisbehavedError
from core.llm.layers.reply import LONGEST_ANSWER, MOST_CALLS, MOST_ITEMS, longest
from core.llm.request import ChatRequest, Stream
from core.messages.content import ContentItem
from core.messages.events import Event, ItemAdded, TextDelta
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

ASK: Any = [{"role": "user", "content": "q"}]
LOOK: Any = [{"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}}]


def until_the_end(model: ScriptedModel, **kwargs: Any) -> list[Any]:
    """The last that was seen of an answer that must fail."""
    seen: list[Any] = [[]]
    with pytest.raises(ModelMisbehavedError) as caught:
        seen.extend(model.chat(ASK, **kwargs))
    assert caught.value.words_key == "model_endless"
    assert caught.value.hint
    return seen[-1]


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_text_beyond_the_limit_is_cut_there_and_the_model_is_stopped(pieces: int) -> None:
    model = ScriptedModel(Reply(text=["x" * (LONGEST_ANSWER // pieces + 10)] * (pieces + 3)))
    (message,) = until_the_end(model)
    assert len(message["content"]) == LONGEST_ANSWER
    assert model.closed == 1


def test_thought_and_text_count_together() -> None:
    half = "x" * (LONGEST_ANSWER // 2)
    (thought, text) = until_the_end(ScriptedModel(Reply(reasoning=[half], text=[half, "y"])))
    assert (thought["reasoning_content"], text["content"]) == (half, half)


def test_an_answer_just_as_long_as_it_may_be_is_whole() -> None:
    (message,) = ScriptedModel(Reply(text=["x" * LONGEST_ANSWER])).chat(ASK, stream=False)
    assert len(message["content"]) == LONGEST_ANSWER


@pytest.mark.parametrize(
    "calls", [[("look", {})] * (MOST_CALLS + 1), [("look", '{"a": "' + "x" * LONGEST_ANSWER + '"}')]]
)
def test_calls_without_end_are_no_calls(calls: list[tuple[str, Any]]) -> None:
    model = ScriptedModel(Reply(calls=calls, argument_size=100_000))
    until_the_end(model, functions=LOOK, extra_generate_cfg={"use_raw_api": True})


def test_pictures_without_end_are_cut_off_and_those_before_stay() -> None:
    picture = ItemAdded(ContentItem(image="data:image/png;base64,iVBORw0KGgo="))
    seen: list[Event] = []

    async def drawn(_: ChatRequest) -> Stream:
        for one in [picture] * count:
            yield one
        yield TextDelta("Here they are.")

    async def listen() -> None:
        async for event in longest(ScriptedModel())(ChatRequest(()), drawn):
            seen.append(event)

    count = MOST_ITEMS
    asyncio.run(listen())
    assert seen == [*[picture] * MOST_ITEMS, TextDelta("Here they are.")]
    count, seen = MOST_ITEMS + 1, []
    with pytest.raises(ModelMisbehavedError) as caught:
        asyncio.run(listen())
    assert caught.value.words_key == "model_endless"
    assert seen == [picture] * MOST_ITEMS
