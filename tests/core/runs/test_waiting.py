"""While a reply waits it is known how much its model reads, and while it is written how fast."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any, cast

import pytest

from core.bridge.watchdog import untimed
from core.llm.request import ChatRequest, ReadSoFar, Stream
from core.messages.events import Event, MessageFinished, MessageStarted, TextDelta
from core.messages.message import Message
from core.runs.ledger import READS_AFTER
from core.runs.log import LoggedEvent, ModelAsked, ModelCalled
from core.runs.reply import Reply
from core.runs.run import RunOptions
from core.testing.model_server import ModelServer
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from tests.core.runs.test_ledger import Session, model_at

pytestmark = pytest.mark.anyio


async def test_a_wait_tells_how_many_tokens_are_read_and_a_short_one_does_not(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert READS_AFTER >= 0.3
    monkeypatch.setattr("core.runs.ledger.READS_AFTER", 0.01)
    with ModelServer([Say("It is eight.", delay=0.5), Say("It is ten.")]) as server:
        run = await talk.ask(Session(model_at(server)), "What is twice 4? " * 200)
        async for one in run.log.follow():
            if isinstance(one.event, ModelAsked) and one.event.tokens:
                break
        ((began, asked),) = run.reply().under_way.values()
        assert asked.tokens > 800
        assert 0 <= began < 5
        await run.wait()
        assert not run.reply().under_way
        monkeypatch.setattr("core.runs.ledger.READS_AFTER", 30.0)
        run = await talk.ask(Session(model_at(server)), "What is twice 5?")
        await run.wait()
        assert [one.event.tokens for one in run.log.since() if isinstance(one.event, ModelAsked)] == [0]
        await asyncio.sleep(0)


def test_the_speed_of_a_text_is_told_once_a_second() -> None:
    reply, speeds = Reply(), []
    reply.apply(LoggedEvent(1, 0.0, MessageStarted()))
    for number in range(40):  # four letters each tenth of a second: ten tokens a second
        reply.apply(LoggedEvent(number + 2, number / 10, TextDelta("word")))
        speeds.append(reply.speed)
    assert speeds[:9] == [0] * 9
    assert set(speeds[10:]) <= {10, 11}
    assert sum(a != b for a, b in pairwise(speeds)) <= 4
    reply.apply(LoggedEvent(50, 9.0, MessageStarted()))
    assert reply.speed == 0


def test_a_call_that_is_over_waits_no_more() -> None:
    asked = [ModelAsked("c", "answer", "m", tokens) for tokens in (0, 7)]
    reply = Reply(LoggedEvent(seq, seq / 2, one) for seq, one in enumerate(asked, start=1))
    assert reply.under_way["c"] == (0.5, ModelAsked("c", "answer", "m", 7))
    reply.apply(LoggedEvent(3, 2.0, ModelCalled("answer", "m", None, 1.5, "c")))
    assert not reply.under_way


async def test_how_far_a_model_has_read_is_told_once_a_second(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.runs.ledger.READS_AFTER", 0.0)
    monkeypatch.setattr("core.runs.ledger.TOLD_AFTER", 60.0)

    class Reading(ScriptedModel):
        """Tells how far it has read, several times within a moment."""

        async def _stream(self, request: ChatRequest) -> Stream:
            yield MessageStarted()
            await asyncio.wait_for(counted.wait(), 10)
            assert request.notes is not None
            assert request.notes.on_read is not None
            for done in (300, 400, 500):
                request.notes.on_read(ReadSoFar(done, 1200, 35))
            yield TextDelta("Yes.")
            yield MessageFinished("stop")

    counted = asyncio.Event()
    run = await talk.ask(Session(cast("Any", Reading())), "Who?")
    async for one in run.log.follow():
        if isinstance(one.event, ModelAsked) and one.event.tokens:
            counted.set()
    told = [one.event for one in run.log.since() if isinstance(one.event, ModelAsked)]
    assert [(one.done, one.tokens, one.speed) for one in told][2:] == [(300, 1200, 35)]


class Fetched:
    """An answerer whose model is being fetched for longer than its reply may take."""

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        fetched = asyncio.Event()
        with untimed():
            asyncio.get_running_loop().call_later(0.4, fetched.set)
            await fetched.wait()
        for event in (MessageStarted(), TextDelta("It is eight."), MessageFinished("stop")):
            yield event


async def test_a_model_that_is_being_fetched_takes_none_of_the_time_of_a_reply(talk: Any) -> None:
    run = await talk.ask(Fetched(), "What is twice 4?", terms=RunOptions(seconds=0.2))
    assert await run.wait() == "complete"
    assert run.reply().text == "It is eight."
