"""Of a program's agents, which one a question goes to, and which model its reply says that it is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core import Agent, FnCallAgent, GroupChat, Router, UserAgent
from core.engine import Engine
from core.runs.reply import Reply
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from core.workspace.program import Program
from tests.core.talks import talk_of

pytestmark = pytest.mark.anyio

BIG, OTHER = "big-1", "big-2"


def agent(name: str, model: str = "big-1") -> FnCallAgent:
    return FnCallAgent(llm=ScriptedModel({"model": model, "script": [f"I am {name}."]}), name=name)


def dinner(*others: Agent) -> GroupChat:
    members = [*others, UserAgent(name="Host")]
    return GroupChat(members, "round_robin", llm=ScriptedModel({"model": "big-1"}), name="Dinner")


class House:
    """Agents that are served, and what one reader asks them in one conversation."""

    def __init__(self, tmp_path: Path, *agents: Agent) -> None:
        self.program = Program(agents, mention=True)
        settings = Settings.load(home=tmp_path / "home", retrieval="keyword", code="off")
        self.engine = Engine(settings, program=self.program)
        self.talk = ""

    async def __aenter__(self) -> House:
        await self.engine.__aenter__()
        self.talk = (await self.engine.stores.of("alice").conversations.create()).id
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.engine.__aexit__(None, None, None)

    async def asked(self, text: str) -> Reply:
        run = await talk_of(self.engine, "alice", self.talk).ask(text)
        assert await run.wait() == "complete", run.error
        return run.reply()

    async def speakers(self, text: str) -> list[str]:
        return [*(await self.asked(text)).speakers]

    async def choose(self, place: int) -> None:
        await self.program.choose(talk_of(self.engine, "alice", self.talk), place)

    async def next(self) -> str:
        thread = await self.engine.stores.of("alice").conversations.thread(self.talk)
        return self.program.names[await self.program.answering(talk_of(self.engine, "alice", self.talk), thread)]


async def test_a_reply_is_said_to_be_of_the_model_of_the_agent_that_was_chosen_or_mentioned(tmp_path: Path) -> None:
    async with House(tmp_path, agent("Ann"), agent("Poet", "big-2")) as house:
        usual, mentioned = await house.asked("Count"), await house.asked("@Poet Rhyme")
        await house.choose(1)
        chosen = await house.asked("Rhyme")
        again = await talk_of(house.engine, "alice", house.talk).regenerate((await thread_of(house))[-1].id)
        await again.wait()
    assert [usual.model, mentioned.model, chosen.model, again.reply().model] == [BIG, OTHER, OTHER, OTHER]


async def thread_of(house: House) -> list[Any]:
    return await house.engine.stores.of("alice").conversations.thread(house.talk)


async def test_of_a_group_each_that_spoke_has_its_model_and_it_is_kept(tmp_path: Path) -> None:
    async with House(tmp_path, dinner(agent("Cook"), agent("Poet", "big-2"))) as house:
        live = await house.asked("What shall we eat?")
        message = (await thread_of(house))[-1]
        async with house.engine.workspaces.open("alice") as workspace:
            kept = await workspace.runs.reply(message)
        record = await house.engine.stores.of("alice").runs.get(message.run_id)
    assert live.writers == kept.writers == {"Cook": BIG, "Poet": OTHER}
    assert record.model == f"{BIG} + {OTHER}", "what an export says, and the page once the log is pruned"


async def test_a_reply_that_a_router_hands_on_is_of_the_model_that_wrote_it(tmp_path: Path) -> None:
    picks = ScriptedModel({"model": "big-1", "script": ["Call: Poet", "I know it."]})
    async with House(tmp_path, Router(picks, [agent("Poet", "big-2")], name="Desk")) as house:
        assert (await house.asked("Rhyme")).writers == {"Poet": OTHER}
        assert [*(await house.asked("And you?")).writers.values()] == [BIG]


async def test_what_a_person_says_goes_to_the_group_that_waits_for_it(tmp_path: Path) -> None:
    async with House(tmp_path, agent("Ann"), agent("Poet"), dinner(agent("Cook"), agent("Poet"))) as house:
        assert await house.speakers("Hello") == ["Ann"]
        assert (await house.speakers("@Dinner What shall we eat?"))[-1] == "Host"
        assert await house.next() == "Dinner"
        assert await house.speakers("Soup. @Cook go on") == ["Cook"]
        assert await house.next() == "Ann", "the group has ended, and nobody chose it"


async def test_a_member_is_meant_before_an_agent_of_its_name_and_anybody_else_can_be_asked_meanwhile(
    tmp_path: Path,
) -> None:
    group = dinner(agent("Cook"), agent("Poet", "big-2"))
    async with House(tmp_path, agent("Ann"), agent("Poet"), group) as house:
        await house.asked("Hello")
        await house.asked("@Dinner What shall we eat?")
        assert await house.speakers("@Ann count the guests") == ["Ann"]
        await house.asked("@Dinner And now?")
        assert (await house.asked("@Poet rhyme")).writers == {"Poet": OTHER}


async def test_who_is_chosen_while_a_group_waits_answers(tmp_path: Path) -> None:
    async with House(tmp_path, agent("Ann"), dinner(agent("Cook"))) as house:
        await house.asked("@Dinner What shall we eat?")
        await house.choose(0)
        assert await house.next() == "Ann"
        assert await house.speakers("Count") == ["Ann"]
        assert (await house.speakers("@Dinner again"))[-1] == "Host"
        assert (await house.speakers("Soup"))[0] == "Cook"


async def test_who_is_mentioned_in_a_first_question_answers_from_then_on_unless_another_was_chosen(
    tmp_path: Path,
) -> None:
    async with House(tmp_path, agent("Ann"), agent("Ben"), agent("Cid")) as house:
        assert await house.speakers("@Ben hello") == ["Ben"]
        assert await house.next() == "Ben"
        assert await house.speakers("@Cid and you?") == ["Cid"]
        assert await house.speakers("Go on") == ["Ben"]
        await house.choose(0)
        assert await house.speakers("Go on") == ["Ann"]
