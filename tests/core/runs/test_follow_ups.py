"""Questions to ask next: proposed where their owner wants them, in the ledger of the reply, and never in its way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.follow_ups import MOST_FOLLOW_UPS, tidy_follow_ups
from core.engine import Engine
from core.llm.request import ChatRequest
from core.runs.beside import proposed
from core.runs.log import ModelCalled
from core.runs.rows import logged_of
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.conversation import Conversation

pytestmark = pytest.mark.anyio
SAID = "1. What does it cost?\n- **Who** pays?\nSome words between.\nWho pays?\nIs it open on Sunday?\nAnd in winter?"
THREE = ("What does it cost?", "Who pays?", "Is it open on Sunday?")


class House:
    """An engine whose model of this process answers, and is asked for questions."""

    def __init__(self, engine: Engine, asked: list[ChatRequest]) -> None:
        self.engine = engine
        self.requests = asked
        self.services = engine.services.of("local")

    async def wanted(self, *, on: bool) -> None:
        await self.services.stores.preferences.change("follow_ups", on)

    async def talk(self, text: str) -> Conversation:
        talk = Conversation(self.services, (await self.services.stores.conversations.create("Talk")).id)
        await talk.ask(text)
        await self.settled()
        return talk

    async def settled(self) -> None:
        async with asyncio.timeout(180):
            while self.services.is_adding:
                await asyncio.sleep(0.01)

    async def proposed(self, talk: Conversation) -> tuple[str, ...]:
        return proposed(await talk.chosen(), (await talk.messages())[-1].id)

    @property
    def calls(self) -> int:
        return sum(request.purpose == "follow-up" for request in self.requests)


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    asked: list[ChatRequest] = []

    def answer(request: ChatRequest) -> Reply:
        asked.append(request)
        return Reply(SAID if request.purpose == "follow-up" else "It is a bridge.")

    async with Engine(Settings.load(home=tmp_path / "home", titles=False), model=ScriptedModel(answer)) as engine:
        engine.services.beside._idle = 0.01  # pyright: ignore[reportPrivateUsage]
        yield House(engine, asked)


async def test_nobody_is_asked_unless_the_owner_wants_it(house: House) -> None:
    talk = await house.talk("What is it?")
    assert (await house.proposed(talk), house.calls) == ((), 0)


async def test_three_are_kept_with_the_reply_and_stand_in_its_ledger(house: House) -> None:
    await house.wanted(on=True)
    talk = await house.talk("What is it?")
    assert await house.proposed(talk) == THREE
    reply = (await talk.messages())[-1]
    lines = [one.event for one in logged_of(await house.services.stores.runs.events(reply.run_id or ""))]
    assert [one.purpose for one in lines if isinstance(one, ModelCalled)] == ["answer", "follow-up"]


async def test_those_of_an_older_reply_are_not_shown_after_a_newer_one(house: House) -> None:
    await house.wanted(on=True)
    talk = await house.talk("What is it?")
    await house.wanted(on=False)
    await talk.ask("And then?")
    await house.settled()
    assert await house.proposed(talk) == ()


async def test_a_stopped_reply_and_a_deleted_conversation_get_none(house: House) -> None:
    await house.wanted(on=True)
    talk = Conversation(house.services, (await house.services.stores.conversations.create("Talk")).id)
    await talk.ask("What is it?")
    await talk.delete()
    await house.settled()
    assert house.calls == 0


@given(st.text(), st.text())
def test_whatever_a_model_says_there_are_at_most_three_short_questions(said: str, question: str) -> None:
    found = tidy_follow_ups(said, question)
    assert len(found) <= MOST_FOLLOW_UPS
    assert len({one.casefold() for one in found}) == len(found)
    assert all(len(one) <= 160 and one.endswith(("?", "？")) and "\n" not in one for one in found)


def test_what_was_just_asked_is_not_proposed() -> None:
    assert tidy_follow_ups("Who pays?\n谁来付钱？", "who pays?") == ("谁来付钱？",)
