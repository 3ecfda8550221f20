"""Personas as agents' files: written and read back, and what such a file may not do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.agents.base import Agent
from core.agents.config.problems import ConfigError
from core.agents.config.schema import AgentConfig
from core.errors import SettingsError
from core.models.model_name import INSTALLED, ModelName
from core.testing.scripted_model import ScriptedModel
from core.workspace.levels import Level
from core.workspace.persona_files import AtHome, Lacks, at_home, passed_over, persona_file, persona_from
from core.workspace.personas import Persona
from tests.tries import tries

LIBRARIAN = Persona(
    "",
    "图书管理员",
    "§",
    Level(
        "Quote: “figures”.\n\n- as printed",
        {"temperature": 0.2, "effort": "long"},
        {"calculator": True, "web_search": False, "documents": True, "mcp:files": True, "skill:pdf": False},
        ("l1", "l2"),
    ),
    ("What is new?", "And: 'why' #so"),
    ModelName("anthropic", "claude-x"),
)
LIBRARIES = {"l1": "Household papers", "l2": "Verträge: \u2028<i>mehr</i>"}
HOME = AtHome({name: one for one, name in LIBRARIES.items()}, {"anthropic": "claude-x"}, {"files"})

TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cf", "Zl", "Zp")), max_size=30).map(str.strip)
PERSONAS = st.builds(
    Persona,
    id=st.just(""),
    name=TEXTS.filter(bool),
    sign=TEXTS.map(lambda text: text[:2].strip()),
    level=st.builds(
        Level,
        instructions=TEXTS.map(lambda text: text or None),
        parameters=st.fixed_dictionaries(
            {},
            optional={
                "temperature": st.floats(0, 2).map(lambda value: round(value, 3)),
                "max_tokens": st.integers(16, 9_000),
                "seed": st.integers(0, 2**31 - 1),
                "effort": st.sampled_from(("off", "short", "long")),
            },
        ),
        tools=st.dictionaries(
            st.sampled_from(("calculator", "documents", "mcp:files", "mcp:files:read")), st.booleans()
        ),
        libraries=st.sampled_from(((), ("l1",), ("l2", "l1"))),
    ),
    starters=st.lists(TEXTS.filter(bool), max_size=8).map(tuple),
    model=st.sampled_from((None, INSTALLED, ModelName("anthropic", "claude-x"))),
).map(lambda made: Persona.of(made.as_dict()) or LIBRARIAN)  # as it would be kept


def come_back(persona: Persona) -> tuple[Persona, Lacks]:
    return at_home(persona_from(persona_file(persona, LIBRARIES), "any.yaml"), HOME)


def test_a_persona_is_an_agents_file_that_programs_use_and_comes_back_whole(tmp_path: Path) -> None:
    assert come_back(LIBRARIAN) == (LIBRARIAN, Lacks())
    file = tmp_path / "agent.yaml"
    file.write_text(persona_file(LIBRARIAN, LIBRARIES), "utf-8")
    config = AgentConfig.of(file)
    agent = Agent.from_config(AgentConfig.of({**config.to_dict(), "llm": ScriptedModel("x")}))
    assert [*agent.function_map] == ["calculator"]
    assert agent.system_message == LIBRARIAN.level.instructions


@settings(max_examples=tries(30), deadline=None)
@given(PERSONAS)
def test_whatever_a_persona_says_comes_back_as_it_was(persona: Persona) -> None:
    assert come_back(persona) == (persona, Lacks())


def test_what_is_not_here_is_named_and_left_out() -> None:
    found, lacks = at_home(persona_from(persona_file(LIBRARIAN, LIBRARIES), "any.yaml"), AtHome())
    assert lacks == Lacks(tuple(LIBRARIES.values()), ("claude-x · anthropic",), ("files",))
    assert (found.level.libraries, found.model) == ((), None)
    assert found.level.tools == LIBRARIAN.level.tools  # a server is known by its name when it is set up


@pytest.mark.parametrize("named", ["model: m", "llm: m", "llm: {model: m, api_key: sk-1, model_server: 'http://a'}"])
def test_the_model_that_a_programs_file_names_is_looked_for_by_its_name(named: str) -> None:
    read = persona_from(f"name: A\n{named}\n", "a.yaml")
    found, lacks = at_home(read, AtHome(models={"openai": "n", "compatible": "m"}))
    assert (found.model, lacks) == (ModelName("compatible", "m"), Lacks())
    found, lacks = at_home(read, AtHome())
    assert (found.model, lacks) == (None, Lacks(models=("m",)))
    assert "sk-1" not in persona_file(read)


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


def test_the_tools_and_fields_of_a_file_that_no_persona_has_are_named() -> None:
    text = """
name: A
temprature: 0.3
files: [a.pdf]
tools: [calculator, no_such, {mcpServers: {}}, {name: x, openapi: a.yaml}]
persona: {sign: A}
"""
    left = passed_over(text, "a.yaml")
    assert (left.tools, left.fields) == (("no_such", "mcpServers", "x"), ("temprature", "files"))
    whole = Persona("", "Poet", "¶", Level("Rhyme.", {"temperature": 0.3}, {"calculator": True}), ("A haiku?",))
    assert passed_over(persona_file(whole), "a.yaml") == Lacks()


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
        ("a.yaml", "name: A\npersona: {sing: x}"),
        ("a.yaml", "name: A\npersona: {effort: much}"),
        ("a.yaml", "name: A\npersona: {tools: {calculator: 'yes'}}"),
        ("a.yaml", "name: A\npersona: {model: {service: 7}}"),
    ],
)
def test_what_is_no_agents_file_is_refused_in_a_sentence(name: str, text: str) -> None:
    with pytest.raises(ConfigError):
        persona_from(text, name)
