"""Configurations of every kind of agent, and of agents that lead others: inline, as files, and wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.agents.arguments import checked_int
from core.agents.assistant import Assistant
from core.agents.base import Agent
from core.agents.basic import BasicAgent
from core.agents.catalog import AGENTS
from core.agents.compat.parallel_doc_qa import ParallelDocQA
from core.agents.config.build import problems_in
from core.agents.config.problems import ConfigError
from core.agents.config.schema import AgentConfig, kinds
from core.agents.group_chat import GroupChat
from core.agents.hub import UserAgent
from core.agents.react import ReActChat
from core.agents.router import Router
from core.errors import SettingsError, UnknownNameError
from core.mcp.pool import MCPManager
from core.testing.scripted_model import ScriptedModel

ANN = {"name": "Ann", "description": "Counts."}
BOB = {"name": "Bob"}


def files(folder: Path, **texts: str) -> Path:
    """The first of the files."""
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder / f"{next(iter(texts))}.yaml"


def said_of(config: Any) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        AgentConfig.of(config)
    return [str(one) for one in raised.value.problems]


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_every_kind_can_be_named_and_made(name: str) -> None:
    spelt = [one for one, kind in kinds().items() if kind == name]
    assert len(spelt) == 2
    for kind in spelt:
        members = {"agents": [ANN, BOB]} if AGENTS[name].leads_agents else {}
        config = AgentConfig.of({"type": kind, "llm": ScriptedModel("x"), "name": "N", **members})
        assert problems_in(config) == []
        agent = Agent.from_config(config)
        assert type(agent) is AGENTS[name]
        assert agent.name == "N"


def test_what_finds_passages_needs_no_model_and_takes_one_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLOUR_MODEL_TYPE", "nowhere")  # that of the settings could not be made
    (tmp_path / "storm.md").write_text("Roofs are covered.", encoding="utf-8")
    path = files(tmp_path, m="type: memory\nname: Clerk\nfiles: [storm.md]\n")
    assert problems_in(AgentConfig.of(path)) == []
    agent = Agent.from_config(path)
    assert agent.llm is None
    assert (
        "Roofs are covered." in agent.run_nonstream([{"role": "user", "content": "Are roofs covered?"}])[-1]["content"]
    )
    model = ScriptedModel("x")
    assert Agent.from_config({"type": "Memory", "llm": model}).llm is model


def test_what_only_a_kind_takes_reaches_it_and_means_nothing_to_others() -> None:
    reader = {"type": "parallel_doc_qa", "llm": ScriptedModel("x"), "part_tokens": 500, "at_once": 2}
    agent = Agent.from_config(reader)
    assert isinstance(agent, ParallelDocQA)
    assert (agent._part, agent._at_once) == (500, 2)  # pyright: ignore[reportPrivateUsage]
    others: list[dict[str, Any]] = [
        {"part_tokens": 500},
        {"type": "router", "agents": [ANN], "max_iteration": 5},
        {"agents": [ANN]},
        {"type": "group_chat", "agents": [ANN], "tools": ["calculator"]},
        {"type": "router", "agents": [{**ANN, "type": "user_agent", "tools": ["calculator"]}]},
        {"type": "react_chat", "files": ["a.pdf"]},
    ]
    for other in others:
        config = {"llm": ScriptedModel("x"), **other}
        assert "means nothing to" in str(problems_in(AgentConfig.of(config))[0])
        with pytest.raises(ConfigError, match="means nothing to"):
            Agent.from_config(config)


@pytest.mark.parametrize(
    ("config", "attribute"),
    [
        ({"type": "dialogue_retrieval_agent", "dialogue_tokens": 321}, "_room"),
        ({"type": "article_agent", "full_article": True}, "_full"),
        ({"type": "write_from_scratch", "most_chapters": 3}, "_most"),
        ({"type": "group_chat", "agents": [ANN], "seed": 7}, "_seed"),
        ({"type": "group_chat", "agents": [ANN], "agent_selection_method": "manual"}, "agent_selection_method"),
    ],
)
def test_each_such_field_reaches_its_kind(config: dict[str, Any], attribute: str) -> None:
    (field,) = set(config) - {"type", "agents"}
    agent = Agent.from_config({"llm": ScriptedModel("x"), **config})
    assert getattr(agent, attribute) == config[field]


def test_a_configuration_made_in_python_leads_others_too() -> None:
    config = AgentConfig(type="router", agents=[AgentConfig(name="Ann", model="scripted"), AgentConfig(name="Bob")])
    assert [one.name for one in config.agents] == ["Ann", "Bob"]
    with pytest.raises(ConfigError, match="Two agents are named Bob"):
        AgentConfig(type="router", agents=[AgentConfig(name="Bob"), AgentConfig(name="Bob")])


def test_a_group_is_made_with_its_members_which_have_its_model_and_fill_their_blanks() -> None:
    model, own = ScriptedModel("Call: Ann", "Ann helps Eve."), ScriptedModel("x")
    team = {
        "type": "router",
        "llm": model,
        "agents": [
            {**ANN, "tools": ["calculator"], "prompt": "You help {{who}}.", "extra_generate_cfg": {"seed": 1}},
            {**BOB, "llm": own, "strategy": "cot"},
            {"type": "group_chat", "name": "Talk", "agent_selection_method": "round_robin", "agents": [
                {"name": "Cat"}, {"type": "user_agent", "name": "Me"}]},
        ],
    }  # fmt: skip
    router = Agent.from_config(team, variables={"who": "Eve"})
    assert isinstance(router, Router)
    ann, bob, talk = router.agents
    assert [type(one) for one in (ann, bob, talk)] == [Assistant, ReActChat, GroupChat]
    assert (ann.llm, bob.llm, talk.llm) == (model, own, model)
    assert list(ann.function_map) == ["calculator"]
    assert isinstance(talk, GroupChat)
    assert [type(one) for one in talk.agents] == [Assistant, UserAgent]
    reply = router.run_nonstream([{"role": "user", "content": "Help!"}])
    assert (reply[-1]["name"], reply[-1]["content"]) == ("Ann", "Ann helps Eve.")
    assert model.requests[1].messages[0].get_text_content() == "You help Eve."
    assert model.requests[1].generate["seed"] == 1


def test_a_member_that_only_says_how_to_write_has_the_groups_model() -> None:
    model = ScriptedModel("Call: Ann", "Hello.")
    how = {"generate_cfg": {"temperature": 0.5, "seed": 1, "stop": ["X"]}, "use_raw_api": True}
    ann = {**ANN, "llm": how, "extra_generate_cfg": {"seed": 2, "stop": ["Y"]}}
    router = Agent.from_config({"type": "router", "llm": model, "agents": [ann, BOB]})
    assert isinstance(router, Router)
    assert [one.llm for one in router.agents] == [model, model]
    router.run_nonstream([{"role": "user", "content": "Hello!"}])
    wanted = {"temperature": 0.5, "seed": 2, "stop": ["X", "Y"], "use_raw_api": True}
    assert {name: model.requests[1].generate[name] for name in wanted} == wanted
    assert "temperature" not in model.requests[0].generate
    other = Agent.from_config(
        {"type": "router", "llm": model, "agents": [{**ANN, "llm": {**how, "model": "scripted"}}]}
    )
    assert isinstance(other, Router)
    assert other.agents[0].llm is not model


def test_members_may_be_files_and_paths_are_relative_to_the_file_they_stand_in(tmp_path: Path) -> None:
    (tmp_path / "helpers").mkdir()
    files(tmp_path / "helpers", ann="name: Ann\nfiles: [a.md]\nmodel: scripted\n")
    files(tmp_path / "helpers", talk="name: Talk\ntype: group_chat\nagents: [ann.yaml, {name: Bob, files: [b.md]}]\n")
    (tmp_path / "team.toml").write_text(
        'type = "router"\nmodel = "scripted"\nagents = ["helpers/talk.yaml", {name = "Cat", files = ["c.md"]}]\n'
    )
    config = AgentConfig.of(tmp_path / "team.toml")
    talk, cat = config.agents
    ann, bob = talk.agents
    assert [one.name for one in (talk, ann, bob, cat)] == ["Talk", "Ann", "Bob", "Cat"]
    folder = tmp_path / "helpers"
    assert [*ann.files, *bob.files, *cat.files] == [
        str(folder / "a.md"),
        str(folder / "b.md"),
        str(tmp_path / "c.md"),
    ]
    for document in (*ann.files, *bob.files, *cat.files):
        Path(document).write_text("What storms do.", encoding="utf-8")
    assert problems_in(config) == []
    made = Agent.from_config(tmp_path / "team.toml")
    assert isinstance(made, Router)
    assert made.agent_names == ["Talk", "Cat"]


def test_a_group_comes_back_from_its_dict_and_stays_without_secrets() -> None:
    config = AgentConfig.of(
        {"type": "Router", "model": "m", "agents": [{**ANN, "llm": {"model": "n", "api_key": "sk-1"}}, BOB]}
    )
    told = config.to_dict()
    assert "sk-1" not in str(told)
    again = AgentConfig.of(told)
    assert [one.name for one in again.agents] == ["Ann", "Bob"]
    assert again.kind == "Router"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"type": "ruter"}, "The field type names no kind of agent: ruter; did you mean router?"),
        ({"type": "zzz"}, "The field type names no kind of agent: zzz."),
        ({"type": 3}, "The field type must be a text."),
        ({"type": "router"}, "The field agents is missing."),
        ({"type": "router", "agents": []}, "The field agents is missing."),
        ({"type": "router", "strategy": "cot", "agents": [ANN]}, "Only one of type and strategy may be given."),
        ({"type": "router", "agents": "a.yaml"}, "The field agents must be a list."),
        ({"type": "router", "agents": [3]}, "The field agents[0] must be a section of names and values."),
        ({"type": "router", "agents": [{"model": "m"}]}, "The field agents[0].name is missing."),
        ({"type": "router", "agents": [ANN, BOB, ANN]}, "Two agents are named Ann: agents[0] and agents[2]."),
        ({"type": "router", "name": "Ann", "agents": [ANN]}, "Two agents are named Ann: name and agents[0]."),
        ({"type": "router", "agents": [{**ANN, "max_iteration": 0}]}, "agents[0].max_iteration must be from 1 to 99."),
        ({"type": "router", "agents": [{**ANN, "tols": []}]}, "no field agents[0].tols; did you mean tools?"),
        ({"type": "router", "agents": ["none.yaml"]}, "There is no file none.yaml."),
        ({"type": "router", "agents": ["\ud800"]}, "There is no file"),
        ({"type": "router", "agents": [{"name": str(n)} for n in range(101)]}, "There are more than 100 agents."),
        ({"type": "parallel_doc_qa", "part_tokens": 1}, "The field part_tokens must be from 200 to 100000."),
        ({"type": "group_chat", "agents": [ANN], "agent_selection_method": "x"}, "must be 'auto', 'round_robin'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(wrong: dict[str, Any], sentence: str) -> None:
    (said,) = said_of(wrong)
    assert sentence in said


def test_agents_that_lead_themselves_are_one_sentence(tmp_path: Path) -> None:
    own = files(tmp_path, a="type: router\nagents: [a.yaml]\n")
    assert said_of(own) == ["These agents would lead themselves: a.yaml → a.yaml."]
    circle = files(
        tmp_path,
        b="type: router\nagents: [{name: X}, c.yaml]\n",
        c="type: router\nname: C\nagents: [{name: D, type: group_chat, agents: [b.yaml]}]\n",
    )
    assert said_of(circle) == ["These agents would lead themselves: c.yaml → b.yaml → c.yaml."]


def test_groups_within_groups_have_an_end() -> None:
    config: dict[str, Any] = {"name": "0"}
    for depth in range(1, 30):
        config = {"type": "router", "name": str(depth), "agents": [config]}
    assert said_of(config) == ["The agents are nested too deep."]
    config["agents"].append(config)
    assert said_of(config) == ["The agents are nested too deep."]


def test_a_member_of_which_the_file_cannot_be_read_is_named(tmp_path: Path) -> None:
    (said,) = said_of(files(tmp_path, a="type: router\nagents: [b.yaml]\n", b="name: [\n"))
    assert "b.yaml: The file cannot be read in line 2" in said


def test_nothing_is_started_where_one_of_several_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(MCPManager, "init_config", lambda self, config: started.append(config) or [])
    server = {"type": "mcp", "provider": "x", "parameters": {"command": "python"}}
    model = ScriptedModel("x")
    for wrong in (
        {"llm": model, "tools": [server, "calculater"]},
        {"type": "router", "llm": model, "agents": [{**ANN, "tools": [server]}, {**BOB, "tools": ["calculater"]}]},
    ):
        with pytest.raises(UnknownNameError, match="calculator"):
            Agent.from_config(wrong)
    assert started == []


def test_a_class_that_is_asked_to_make_another_kind_says_so() -> None:
    with pytest.raises(ConfigError, match="The field type means nothing to ParallelDocQA"):
        ParallelDocQA.from_config({"type": "router", "llm": ScriptedModel("x"), "agents": [ANN]})
    made = Assistant.from_config({"type": "parallel_doc_qa", "llm": ScriptedModel("x")})
    assert type(made) is ParallelDocQA


class Repeater(BasicAgent):
    """An agent of somebody's own, with an argument that no other has."""

    config_fields = frozenset({"times"})

    def __init__(self, *arguments: Any, times: int = 1, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.times = checked_int("times", times, 1, 9)


@pytest.fixture
def repeater() -> Iterator[None]:
    AGENTS.add("Repeater", Repeater)
    yield
    AGENTS.remove("Repeater")


@pytest.mark.usefixtures("repeater")
def test_a_kind_brings_the_fields_that_its_class_names() -> None:
    config = AgentConfig.of({"type": "repeater", "llm": ScriptedModel("x"), "times": 3})
    agent = Agent.from_config(config)
    assert isinstance(agent, Repeater)
    assert agent.times == 3
    assert config.to_dict()["times"] == 3
    with pytest.raises(SettingsError, match="times must be 1 to 9"):
        Agent.from_config({"type": "Repeater", "llm": ScriptedModel("x"), "times": 10})


@pytest.mark.usefixtures("repeater")
@pytest.mark.parametrize("given", [{"type": "Repeater", "time": 3}, {"type": "BasicAgent", "times": 3}, {"times": 3}])
def test_such_a_field_is_unknown_to_other_kinds(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="There is no field time"):
        AgentConfig.of(given)
