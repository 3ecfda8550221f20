"""Misspelt arguments of a reply are refused with the right name; what is meant for tools reaches them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.agents.assistant import Assistant
from core.agents.base import Agent
from core.agents.basic import FnCallAgent
from core.agents.group_chat import GroupChat
from core.agents.tools import AgentTool
from core.errors import SettingsError
from core.messages.message import Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Guard, Policy
from core.tools.base import BaseTool
from tests.core.runs.note_tools import Note, writes

ASKED: list[Any] = [{"role": "user", "content": "Go"}]

WAYS: dict[str, Callable[..., Any]] = {
    "run": lambda agent, **kwargs: agent.run(ASKED, **kwargs),
    "run_nonstream": lambda agent, **kwargs: agent.run_nonstream(ASKED, **kwargs),
    "stream": lambda agent, **kwargs: agent.stream(ASKED, **kwargs),
    "map": lambda agent, **kwargs: agent.map(["Go"], **kwargs),
    "amap": lambda agent, **kwargs: asyncio.run(agent.amap(["Go"], **kwargs)),
}
MISSPELT = [
    *((name, "approval") for name in ("aproval", "approve", "approvals", "approver", "Approval", "approved", "aprove")),
    *((name, "lang") for name in ("langs", "Lang", "lan")),
    *((name, "progress") for name in ("progres", "on_progress", "progess")),
    *((name, "knowledge") for name in ("knowlege", "knowledges", "knowledg")),
]


class Takes(BaseTool):
    """Notes what it is handed."""

    name = "takes"
    description = "Takes."

    def __init__(self) -> None:
        super().__init__()
        self.handed: dict[str, Any] = {}

    def call(self, params: str | dict[str, Any], approve: object = None, **kwargs: Any) -> str:
        self.handed = {"approve": approve, **kwargs}
        return "taken"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "meant"), MISSPELT)
def test_a_misspelt_argument_is_refused_with_the_right_name_and_nothing_runs(way: str, name: str, meant: str) -> None:
    note = Note()
    agent = FnCallAgent([note], ScriptedModel(writes("x"), "after"))
    with pytest.raises(SettingsError, match=f"has no argument '{name}'. Did you mean '{meant}'?"):
        WAYS[way](agent, **{name: lambda *_: False})
    assert note.written == []


@pytest.mark.parametrize("name", ["policy", "guard", "rules", "permissions"])
@pytest.mark.parametrize("rules", [Policy(deny=("*",)), Guard(Policy())], ids=["policy", "guard"])
def test_rules_under_any_other_name_are_refused(name: str, rules: Any) -> None:
    with pytest.raises(SettingsError, match="Did you mean 'approval'"):
        FnCallAgent([Note()], ScriptedModel(writes("x"), "after")).run_nonstream(ASKED, **{name: rules})


@pytest.mark.parametrize(("name", "meant"), [("concurency", "concurrency"), ("keep_error", "keep_errors")])
def test_misspelt_arguments_of_map_are_refused(name: str, meant: str) -> None:
    agent = FnCallAgent(None, ScriptedModel("1"))
    wrong: dict[str, Any] = {name: 1}
    with pytest.raises(SettingsError, match=meant):
        agent.map(["Go"], **wrong)


def test_arguments_that_an_agent_takes_itself_are_known_with_their_near_misses() -> None:
    group = GroupChat(agents=[FnCallAgent(None, ScriptedModel("1"), name="one")], agent_selection_method="manual")
    with pytest.raises(SettingsError, match="Did you mean 'max_round'"):
        group.run_nonstream(ASKED, max_rounds=2)

    class Own(Agent):
        def _run(self, messages: list[Message], tempo: int = 0, **kwargs: Any) -> Iterator[list[Message]]:
            yield [Message("assistant", str(tempo))]

    assert Own().run_nonstream(ASKED, tempo=3)[-1]["content"] == "3"
    with pytest.raises(SettingsError, match="Did you mean 'tempo'"):
        Own().run_nonstream(ASKED, temppo=3)


def test_other_arguments_are_handed_to_the_tools() -> None:
    takes = Takes()
    agent = FnCallAgent([takes], ScriptedModel(Reply(calls=[("takes", {})]), "after"))
    assert agent.run_nonstream(ASKED, user_id=42, process="x", language="de", file="y")[-1]["content"] == "after"
    assert {name: takes.handed.get(name) for name in ("user_id", "process", "language", "file")} == {
        "user_id": 42,
        "process": "x",
        "language": "de",
        "file": "y",
    }


def test_a_name_that_a_tool_takes_itself_is_its_own_also_within_other_agents() -> None:
    takes = Takes()
    inner = FnCallAgent([takes], ScriptedModel(Reply(calls=[("takes", {})]), "done"), name="inner")
    model = ScriptedModel(Reply(calls=[("takes", {}), ("inner", {"question": "Go"})]), "after")
    outer = Assistant([takes, AgentTool(inner)], model)
    assert outer.run_nonstream(ASKED, approve="yes")[-1]["content"] == "after"
    assert takes.handed["approve"] == "yes"
