"""A reply ends before its stop word, wherever the chunks were cut."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.errors import ModelMisbehavedError
from core.llm.layers.reply import StopScanner, stop_words
from core.llm.request import ChatRequest, Stream
from core.messages.events import Event, MessageFinished, TextDelta
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

ASK: Any = [{"role": "user", "content": "q"}]


def said(model: ScriptedModel, **generate: Any) -> str:
    (message,) = model.chat(ASK, stream=False, extra_generate_cfg=generate)
    return message["content"]


def test_the_reply_ends_before_the_word_and_the_model_is_stopped() -> None:
    model = ScriptedModel(Reply(text=["abc Obs", "ervation: x", " more"], pace=0.01))
    assert said(model, stop=["Observation:"]) == "abc "
    assert model.closed == 1


def test_the_beginning_of_a_word_at_the_end_of_a_reply_is_text() -> None:
    assert said(ScriptedModel("I made an Observation"), stop="Observation:") == "I made an Observation"


def test_it_can_be_turned_off() -> None:
    assert said(ScriptedModel("a STOP b"), stop=["STOP"], skip_stopword_postproc=True) == "a STOP b"


@given(st.text(alphabet="abX:", max_size=40), st.lists(st.integers(0, 40), max_size=6))
@example("a XX b ab: c", [])
def test_any_split_gives_the_same_text(text: str, cuts: list[int]) -> None:
    words = ["ab:", "XX"]
    places = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    scanner = StopScanner(words)
    pieces = [scanner.feed(text[start:end]) for start, end in pairwise(places)]
    ours = "".join(pieces) + ("" if scanner.stopped else scanner.close())
    found = [text.find(word) for word in words if word in text]
    assert ours == (text[: min(found)] if found else text)


def test_a_reply_that_breaks_off_keeps_what_might_have_become_a_stop_word() -> None:
    async def below(_: ChatRequest) -> Stream:
        yield TextDelta("abc Obs")
        raise ModelMisbehavedError(message="cut off")

    async def listen(said: list[Event]) -> None:
        async for event in stop_words(ChatRequest((), generate={"stop": "Observation:"}), below):
            said += [event]

    heard: list[Event] = []
    with pytest.raises(ModelMisbehavedError):
        asyncio.run(listen(heard))
    assert heard == [TextDelta("abc "), TextDelta("Obs")]


def test_a_reply_that_a_stop_word_ended_says_that_it_ended() -> None:
    async def below(_: ChatRequest) -> Stream:
        yield TextDelta("abc Observation: x")
        yield TextDelta("never read")

    async def heard() -> list[Event]:
        return [event async for event in stop_words(ChatRequest((), generate={"stop": "Observation:"}), below)]

    assert asyncio.run(heard()) == [TextDelta("abc "), MessageFinished("stop")]
