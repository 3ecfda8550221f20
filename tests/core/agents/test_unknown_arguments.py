"""An argument that nothing takes is refused in one sentence, which says where it belongs; `run` hands it to tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core import Assistant, BasicAgent, FnCallAgent, GroupChat, ReActChat, Router
from core.agents.base import Agent
from core.agents.tools import AgentTool
from core.errors import SettingsError
from core.messages.message import Message
from core.testing.scripted_model import ScriptedModel
from core.tools.base import BaseTool

ASKED: list[Any] = [{"role": "user", "content": "Go"}]
WAYS: dict[str, Callable[..., Any]] = {
    "ask": lambda agent, **given: agent.ask("Go", **given),
    "events": lambda agent, **given: agent.events("Go", **given),
    "session": lambda agent, **given: agent.session().ask("Go", **given),
    "run_nonstream": lambda agent, **given: agent.run_nonstream(ASKED, **given),
    "map": lambda agent, **given: agent.map(["Go"], **given),
}
PLACES = {
    "temperature": "generate_cfg",
    "max_tokens": "generate_cfg",
    "seed": "generate_cfg",
    "top_p": "generate_cfg",
    "stop": "generate_cfg",
    "request_timeout": "generate_cfg",
    "extra_body": "generate_cfg",
    "generate_cfg": r'llm=\{"model": …, "generate_cfg": \{…\}\}',
    "model": "llm=",
    "llm": "llm=",
    "api_key": "llm=",
    "tools": "function_list=",
    "function_list": "function_list=",
    "functions": "function_list=",
    "system_message": "system_message=",
    "system_prompt": "system_message=",
    "instructions": "system_message=",
    "stream": r"events\(",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PLACES)
def test_what_belongs_elsewhere_is_refused_with_its_place_and_no_model_is_asked(way: str, name: str):
    model = ScriptedModel("fine")
    with pytest.raises(SettingsError, match=f"has no argument '{name}'.*{PLACES[name]}"):
        WAYS[way](Assistant(llm=model), **{name: 1})
    assert not model.requests


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [Assistant, BasicAgent, FnCallAgent, ReActChat])
def test_what_nothing_takes_is_refused_with_what_there_is(way: str, kind: Any):
    model = ScriptedModel("fine")
    with pytest.raises(SettingsError, match=r"has no argument 'foo'\. It takes approval, .*lang, .*progress"):
        WAYS[way](kind(llm=model), foo=1)
    assert not model.requests


def test_what_nothing_takes_is_refused_with_the_tools_of_parlour_and_by_agents_that_lead_others():
    one, two = (FnCallAgent(llm=ScriptedModel("fine"), name=name) for name in ("one", "two"))
    for agent in (
        FnCallAgent(["calculator"], ScriptedModel("fine")),
        FnCallAgent([AgentTool(one)], ScriptedModel("fine")),
        GroupChat(agents=[one, two], llm=ScriptedModel("one")),
        Router(agents=[one, two], llm=ScriptedModel("one")),
    ):
        with pytest.raises(SettingsError, match="has no argument 'foo'"):
            agent.ask("Go", foo=1)


@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_a_step_of_the_programs_own_takes_is_its_own(way: str):
    class Own(Agent):
        def _run(self, messages: list[Message], temperature: int = 0, **kwargs: Any) -> Iterator[list[Message]]:
            yield [Message("assistant", str(temperature))]

    WAYS[way](Own(), temperature=3)
    inner = Own(name="inner", description="Warm.")
    WAYS[way](FnCallAgent([AgentTool(inner)], ScriptedModel("fine")), temperature=3)


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_or_a_step_that_takes_any_name_is_handed_what_the_program_gives(way: str):
    class Own(Agent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            yield [Message("assistant", "so")]

    class Takes(BaseTool):
        name = "takes"
        description = "Takes."

        def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
            return "taken"

    WAYS[way](Own(), foo=3)
    WAYS[way](FnCallAgent([Takes()], ScriptedModel("fine")), user_id=3)


@pytest.mark.parametrize("name", ["temperature", "top_k", "name", "model", "stream"])
def test_a_step_of_the_programs_own_that_takes_any_name_may_mean_whatever_it_is_called(name: str):
    class Own(Agent):
        def _run(self, messages: list[Message], lang: str = "en", **kwargs: Any) -> Iterator[list[Message]]:
            yield [Message("assistant", str(kwargs[name]))]

    given: dict[str, Any] = {name: 3}
    assert Own().run_nonstream(ASKED, **given)[-1]["content"] == "3"
    assert Own().ask("Go", **given).text == "3"


def test_a_tool_that_takes_any_name_is_not_handed_what_belongs_elsewhere():
    class Takes(BaseTool):
        name = "takes"
        description = "Takes."

        def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
            return "taken"

    with pytest.raises(SettingsError, match="has no argument 'temperature'"):
        FnCallAgent([Takes()], ScriptedModel("fine")).ask("Go", temperature=1)


def test_run_hands_on_what_it_is_given_as_in_qwen_agent():
    assert list(Assistant(llm=ScriptedModel("fine")).run(ASKED, temperature=0.1, foo=1))[-1][-1]["content"] == "fine"
