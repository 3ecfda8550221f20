"""Personas as agents' files: written and read back, and what such a file may not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.agents.base import Agent
from core.agents.config.problems import ConfigError
from core.agents.config.schema import AgentConfig
from core.errors import SettingsError
from core.testing.scripted_model import ScriptedModel
from core.workspace.levels import Level
from core.workspace.persona_files import persona_file, persona_from
from core.workspace.personas import Persona

LIBRARIAN = Persona(
    "p1",
    "图书管理员",
    "图",
    Level("Quote: “figures”.\n\n- as printed", {"temperature": 0.2, "effort": "long"}, {"calculator": True}, ("l1",)),
    ("What is new?",),
)


def test_a_persona_is_an_agents_file_and_comes_back_as_far_as_that_has_a_place_for_it(tmp_path: Path) -> None:
    text = persona_file(LIBRARIAN)
    found = persona_from(text, "any.yaml")
    assert (found.name, found.sign) == (LIBRARIAN.name, "图")
    assert found.level == Level(LIBRARIAN.level.instructions, {"temperature": 0.2}, {"calculator": True})
    file = tmp_path / "agent.yaml"
    file.write_text(text, "utf-8")
    agent = Agent.from_config(AgentConfig.of({**AgentConfig.of(file).to_dict(), "llm": ScriptedModel("x")}))
    assert [*agent.function_map] == ["calculator"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.json",
            '{"name": "A", "instruction": "Be brief.", "llm": {"generate_cfg": {"seed": 3}, "api_key": "sk-1"}}',
        ),
        ("a.toml", 'name = "A"\nprompt = "Be brief."\n[extra_generate_cfg]\nseed = 3\n'),
        ("A.yml", "prompt:\n  messages:\n  - {role: system, text: Be brief.}\nllm: {generate_cfg: {seed: 3}}\n"),
    ],
)
def test_each_form_of_an_agents_file_is_read(name: str, text: str) -> None:
    found = persona_from(text, name)
    assert (found.name, found.level) == ("A", Level("Be brief.", {"seed": 3}))


def test_a_file_is_never_led_to_another_one(tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("name: Secret\nsystem_message: The key is 7.\n")
    with pytest.raises(SettingsError) as caught:
        persona_from(f"name: A\ntype: group_chat\nagents: ['{secret}']\n", "a.yaml")
    assert caught.value.words_key == "persona_group"
    found = persona_from(
        f"name: A\nfiles: ['{secret}']\ntools: [{{name: x, openapi: '{secret}'}}, no_such]\n", "a.yaml"
    )
    assert found.level == Level()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "name: A"),
        ("a.yaml", ""),
        ("a.yaml", "- a"),
        ("a.yaml", "name: [A"),
        ("a.json", "{" * 50_000),
        ("a.yaml", "name: A\nextra_generate_cfg: {temperature: hot}"),
        ("a.yaml", "name: " + "a" * 2_000_000),
    ],
)
def test_what_is_no_agents_file_is_refused_in_a_sentence(name: str, text: str) -> None:
    with pytest.raises(ConfigError):
        persona_from(text, name)
