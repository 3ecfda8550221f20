"""`GroupChatCreator`: a model proposes a group; what it writes wrong is mended or told."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.compat.group_chat_creator import GroupChatCreator, WrongProposalError, proposal
from core.agents.hub import UserAgent
from core.errors import SettingsError
from core.messages.message import Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.builtin.calculator import Calculator

ASKED = [Message("user", "Two cooks quarrel about soup.")]
COOKS = {
    "background": "A kitchen at noon.",
    "agents": [
        {"name": "Ann", "description": "Likes salt.", "instructions": "Be short.", "selected_tools": []},
        {"name": "Ben", "description": "Likes none.", "instructions": "Be loud.", "selected_tools": []},
    ],
}


def proposed(reply: list[Message]) -> dict[str, Any]:
    text = reply[-1].get_text_content()
    assert text.startswith("```json\n")
    return json.loads(text.removeprefix("```json\n").removesuffix("\n```"))


def test_a_proposal_becomes_a_group_that_talks():
    model = ScriptedModel(json.dumps(COOKS), "Ann", "Salt!", "[STOP]")
    creator = GroupChatCreator(llm=model, name="Creator")
    reply = creator.run_nonstream(ASKED)
    assert [message.name for message in reply] == ["Creator"]
    assert proposed(reply) == COOKS
    group = creator.group(reply, name="Kitchen")
    assert [(m.name, m.content) for m in group.run_nonstream(ASKED)] == [("Ann", "Salt!")]
    assert "A kitchen at noon." in model.requests[2].messages[0].get_text_content()


def test_the_model_is_told_in_the_language_of_the_question_and_of_the_tools_there_are():
    model = ScriptedModel(json.dumps(COOKS))
    GroupChatCreator([Calculator()], model).run_nonstream([Message("user", "两位厨师为汤争吵。")])
    told = model.requests[0].messages[0].get_text_content()
    assert "只回答一个 JSON 对象" in told
    assert '"selected_tools": ["可选：calculator"]' in told


def test_an_answer_that_cannot_be_used_is_told_the_model_and_the_reader_sees_none_of_it():
    model = ScriptedModel("Sure!", '{"agents": []}', json.dumps(COOKS))
    reply = GroupChatCreator(llm=model).run_nonstream(ASKED)
    assert proposed(reply) == COOKS
    assert len(reply) == 1
    assert "It is no JSON object." in model.requests[1].messages[-1].get_text_content()
    assert "There is no list of agents." in model.requests[2].messages[-1].get_text_content()


def test_after_two_reports_the_reader_is_told_what_is_wrong():
    model = ScriptedModel("I would rather not.")
    reply = GroupChatCreator(llm=model).run_nonstream(ASKED)
    assert "also after it was told twice: It is no JSON object." in reply[-1].get_text_content()
    assert len(model.requests) == 3
    with pytest.raises(SettingsError, match="Nothing in this reply proposes a group"):
        GroupChatCreator(llm=model).group(reply)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Here you are:\n```json\n{'agents': [{'name': 'Ann'}, {'name': 'Ben'},]}\n```\nEnjoy!", ["Ann", "Ben"]),
        ('{"members": ["Ann", "@Ben"]}', ["Ann", "Ben"]),
        ('{"agents": {"Ann": "Likes salt.", "Ben": {"description": "Likes none."}}}', ["Ann", "Ben"]),
        ('{"agents": [{"name": "Ann"}, {"name": "Ann"}, {"name": "Ann"}]}', ["Ann", "Ann 2", "Ann 3"]),
        ('{"角色": [{"name": "小塘", "description": 3}]}', ["小塘"]),
        ('{"agents": [' + ",".join(f'"A{n}"' for n in range(20)) + "]}", [f"A{n}" for n in range(10)]),
    ],
)
def test_what_is_nearly_right_is_mended(text: str, names: list[str]):
    assert [member["name"] for member in proposal(text)["agents"]] == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no_object"),
        ("[1, 2]", "no_object"),
        ('{"agents": "Ann"}', "no_members"),
        ('{"agents": [{"description": "?"}]}', "no_name"),
        ('{"agents": [{"name": "Ann", "is_human": true}]}', "persons"),
    ],
)
def test_what_is_no_group_is_told(text: str, why: str):
    with pytest.raises(WrongProposalError) as caught:
        proposal(text)
    assert caught.value.why == why


def test_a_model_gives_nobody_files_or_tools_that_were_not_offered():
    row = {"name": "Ann", "selected_tools": ["calculator", "code_interpreter"], "knowledge_files": ["secret.txt"]}
    text = json.dumps({"agents": [row, {"name": "Kim", "is_human": True}]})
    assert proposal(text, ["calculator"])["agents"][0]["selected_tools"] == ["calculator"]
    assert "knowledge_files" not in proposal(text)["agents"][0]
    own = Calculator()
    group = GroupChatCreator([own], ScriptedModel("x")).group([Message("assistant", text)])
    assert group.agents[0].function_map == {"calculator": own}
    assert isinstance(group.agents[1], UserAgent)


@pytest.mark.anyio
async def test_leaving_early_stops_its_model():
    asked = asyncio.Event()
    model = ScriptedModel(lambda _: (asked.set(), Reply(text=json.dumps(COOKS), hang=True))[1])

    async def read() -> None:
        async with aclosing(GroupChatCreator(llm=model).stream(ASKED)) as events:
            async for _ in events:
                pass

    task = asyncio.create_task(read())
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.closed == 1


@given(st.text(alphabet='{}[]":, abAgents\n', max_size=80))
def test_any_text_is_a_group_or_is_none(text: str):
    with suppress(WrongProposalError):
        assert proposal(text)["agents"]
