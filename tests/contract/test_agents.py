"""What every agent in the catalog promises."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from core.agents.catalog import AGENTS
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import Message
from core.messages.transcript import Transcript
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("name", sorted(AGENTS))]

QUESTION = [Message("user", "How are you?")]


def agent(kind: str, *turns: Any, **options: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(*turns)
    return AGENTS[kind](llm=model, **options), model


async def test_its_reply_begins_and_ends_as_events_do(name: str):
    events = [event async for event in agent(name, "I am well.")[0].stream(QUESTION)]
    assert isinstance(events[0], MessageStarted)
    assert isinstance(events[-1], MessageFinished)
    assert Transcript(events).messages()[-1].get_text_content() == "I am well."


def test_dicts_and_messages_come_back_as_they_went_in(name: str):
    one, _ = agent(name, "I am well.")
    asked = [{"role": "user", "content": "How are you?"}]
    assert one.run_nonstream(asked) == [{"role": "assistant", "content": "I am well."}]
    assert one.run_nonstream(QUESTION) == [Message("assistant", "I am well.")]
    assert list(one.run(asked))[-1] == [{"role": "assistant", "content": "I am well."}]
    assert asked == [{"role": "user", "content": "How are you?"}]


async def test_leaving_early_stops_its_model(name: str):
    one, model = agent(name, Reply(text="a b c d e", pace=0.001))
    async with aclosing(one.stream(QUESTION)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert model.closed == 1


def test_its_system_message_is_the_first_thing_the_model_reads(name: str):
    one, model = agent(name, "ok", system_message="Speak in rhymes.")
    one.run_nonstream(QUESTION)
    assert model.requests[0].messages[0].get_text_content() == "Speak in rhymes."


def test_it_has_the_name_and_description_it_was_given(name: str):
    one, _ = agent(name, "ok", name="Ada", description="Counts.")
    assert (one.name, one.description) == ("Ada", "Counts.")
    assert one.run_nonstream(QUESTION)[-1].name == "Ada"
