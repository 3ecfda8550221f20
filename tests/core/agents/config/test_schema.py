"""An agent's configuration: what it may say, what each mistake is told as, and what comes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.agents.assistant import Assistant
from core.agents.base import Agent
from core.agents.basic import FnCallAgent
from core.agents.config.build import problems_in
from core.agents.config.problems import ConfigError
from core.agents.config.schema import AgentConfig, GenerateConfig, LLMConfig, PromptConfig
from core.agents.react import ReActChat
from core.errors import SettingsError, UnknownNameError
from core.messages.message import Message
from core.rag.config import RAGConfig
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.builtin.calculator import Calculator


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"max_iteration": 0}, "The field max_iteration must be from 1 to 99."),
        ({"max_iteration": 100}, "The field max_iteration must be from 1 to 99."),
        ({"max_iteration": "5"}, "The field max_iteration must be a whole number."),
        ({"max_iteration": True}, "The field max_iteration must be a whole number."),
        ({"strategy": "magic"}, "The field strategy must be 'function_call' or 'cot'."),
        ({"stratgy": "cot"}, "There is no field stratgy; did you mean strategy?"),
        ({"qqq": 1}, "There is no field qqq."),
        ({"provider": ""}, "The field provider must not be empty."),
        ({"model": 3}, "The field model must be a text."),
        ({"files": "a.pdf"}, "The field files must be a list."),
        ({"tools": "calculator"}, "The field tools must be a list."),
        ({"tools": [{}]}, "The field tools[0].tool_name is missing."),
        (
            {"tools": ["a", {"name": "b", "type": "bulitin"}]},
            "The field tools[1].type must be 'builtin', 'api', 'plugin' or 'mcp'.",
        ),
        ({"tools": [{"tool_nam": "a"}]}, "There is no field tools[0].tool_nam; did you mean tool_name?"),
        ({"tools": [{"name": "a", "tool_name": "b"}]}, "Only one of tools[0].name and tool_name may be given."),
        (
            {"tools": [{"type": "mcp", "provider": "a"}]},
            "The field tools[0] needs the command or the url of the MCP server.",
        ),
        (
            {"tools": [{"type": "api", "provider": "a"}]},
            "The field tools[0] needs its OpenAPI document, as openapi among the parameters.",
        ),
        ({"function_list": [3]}, "The field function_list[0] is no tool: give a name, a dict, a tool or a function."),
        ({"llm": 3}, "The field llm must be a section of names and values."),
        ({"llm": {"modle": "a"}}, "The field llm is wrong: A model has no setting 'modle'. Did you mean 'model'?"),
        ({"llm": {"temperature": 1}}, "The field llm.temperature belongs into generate_cfg."),
        (
            {"llm": {"generate_cfg": {"temperature": 3}}},
            "The field llm.generate_cfg.temperature must be from 0 to 2.",
        ),
        ({"llm": {"generate_cfg": {"seed": "x"}}}, "The field llm.generate_cfg.seed must be a whole number."),
        ({"llm": {"model": "a"}, "model": "b"}, "Only one of model and llm.model may be given."),
        (
            {"llm": {"model": "${HOME}"}},
            "The field llm.model cannot be taken from the variable ${HOME}: only an api_key can.",
        ),
        ({"prompt": {"tempalte": "x"}}, "There is no field prompt.tempalte; did you mean template?"),
        ({"prompt": "a", "system_message": "b"}, "Only one of system_message and prompt may be given."),
        (
            {"prompt": {"messages": [{"role": "tool", "content": "x"}]}},
            "The field prompt.messages[0].role must be 'system', 'user' or 'assistant'.",
        ),
        ({"rag_cfg": 3}, "The field rag_cfg must be a section of names and values."),
        ({"strategy": "cot", "files": ["a.pdf"]}, "The field files needs the strategy function_call."),
    ],
)
def test_what_is_wrong_is_said_of_its_field_in_one_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        AgentConfig(**wrong)
    assert str(raised.value) == sentence
    with pytest.raises(ConfigError) as again:
        AgentConfig.of(wrong)
    assert str(again.value) == sentence


def test_all_that_is_wrong_is_kept() -> None:
    with pytest.raises(ConfigError) as raised:
        AgentConfig.of({"max_iteration": 0, "strategy": "x", "name": 5})
    assert len(raised.value.problems) == 3
    assert str(raised.value).endswith("There are 2 more.")


def test_a_mistake_never_shows_a_key() -> None:
    with pytest.raises(ConfigError) as raised:
        AgentConfig.of({"llm": {"model": "a", "api_key": ["sk-secret"]}})
    assert "sk-secret" not in str(raised.value)
    assert "llm.api_key" in str(raised.value)


def test_near_names_are_offered_for_generate_cfg_and_rag_cfg() -> None:
    with pytest.raises(ConfigError, match="max_retries"):
        AgentConfig.of({"llm": {"model": "a", "generate_cfg": {"max_retry": 1}}})
    with pytest.raises(ConfigError, match="chunk_size"):
        AgentConfig.of({"rag_cfg": {"chunk_sizes": 1}})


def test_a_name_of_the_services_own_goes_to_the_service() -> None:
    config = AgentConfig.of({"llm": {"model": "a", "generate_cfg": {"repetition_penalty": 1.1, "top_p": 0.5}}})
    assert config.llm is not None
    assert config.llm.as_cfg() == {"model": "a", "generate_cfg": {"top_p": 0.5, "repetition_penalty": 1.1}}


def test_both_forms_of_the_seeds_are_one_class() -> None:
    dify = AgentConfig(
        provider="openai",
        model="gpt-5-mini",
        strategy="function_call",
        max_iteration=5,
        tools=[{"tool_name": "calculator", "provider_id": "p", "provider_type": "builtin", "tool_parameters": {}}],  # pyright: ignore[reportArgumentType]
        prompt={"simple_prompt_template": "Be brief."},  # pyright: ignore[reportArgumentType]
    )
    assert [tool.tool_name for tool in dify.tools] == ["calculator"]
    qwen = AgentConfig.of(
        {
            "llm_config": {"model": "qwen-max", "base_url": "http://127.0.0.1:1/v1", "generate_cfg": {"stop": "END"}},
            "function_list": ["calculator", {"name": "web_search", "max_results": 3}],
            "system_message": "Be kind.",
            "name": "A",
            "description": "B",
            "files": ["https://example.org/a.pdf"],
            "rag_cfg": {"retrieval_type": "hybrid", "parser_page_size": 500},
            "extra_generate_cfg": {"temperature": 0.5},
        }
    )
    assert qwen.llm is not None
    assert qwen.llm.as_cfg() == {
        "model": "qwen-max",
        "model_server": "http://127.0.0.1:1/v1",
        "generate_cfg": {"stop": ["END"]},
    }
    assert isinstance(qwen.rag_cfg, RAGConfig)
    assert qwen.rag_cfg.chunk_size == 500


def test_the_callers_dict_stays_as_it_is() -> None:
    given = {"llm": {"base_url": "http://127.0.0.1:1/v1", "model": "a"}, "tools": [{"mcpServers": {"t": {"url": "x"}}}]}
    before = json.dumps(given)
    AgentConfig.of(given)
    assert json.dumps(given) == before


def test_to_dict_has_no_secrets_and_reads_back() -> None:
    config = AgentConfig.of(
        {
            "llm": {"model": "m", "api_key": "sk-1", "generate_cfg": {"max_tokens": 5}},
            "rag_cfg": {"embedding_model": {"model": "e", "api_key": "sk-2"}},
            "tools": [
                {"mcpServers": {"t": {"command": "x", "env": {"TOKEN": "sk-3"}}}},
                {"openapi": "https://example.org/api.json", "name": "api", "credentials": {"bearer": "sk-4"}},
                {"name": "amap_weather", "parameters": {"token": "sk-5"}},
            ],
            "function_list": [{"name": "web_search", "api_key": "sk-6"}, Calculator()],
            "max_iteration": 7,
        }
    )
    told = config.to_dict()
    assert "sk-" not in json.dumps(told)
    assert "sk-" not in repr(config)
    assert told["llm"]["generate_cfg"] == {"max_tokens": 5}
    assert told["function_list"] == [{"name": "web_search"}, "calculator"]
    assert AgentConfig.of(told).to_dict() == told


def test_a_key_named_by_a_variable_stays_named() -> None:
    told = AgentConfig.of({"llm": {"model": "m", "api_key": "${MY_KEY}"}}).to_dict()
    assert told["llm"]["api_key"] == "${MY_KEY}"


# -- prompts ----------------------------------------------------------------------------------------------------------


def test_blanks_of_a_prompt_are_filled_once() -> None:
    prompt = PromptConfig.model_validate({"pre_prompt": "Help {{who}} with {{ 事情 }}.", "inputs": {"事情": "{{who}}"}})
    assert prompt.render({"who": "Ann"}) == ("Help Ann with {{who}}.", [])


def test_a_blank_without_a_value_is_named() -> None:
    with pytest.raises(ConfigError, match="The prompt needs a value for topic"):
        Agent.from_config({"model": "scripted", "prompt": "About {{topic}}."})


def test_messages_of_a_prompt_come_before_the_conversation() -> None:
    model = ScriptedModel("4")
    config = {
        "llm": model,
        "prompt": {
            "messages": [
                {"role": "system", "text": "You add for {{who}}."},
                {"role": "user", "content": "1+1"},
                {"role": "assistant", "content": "2"},
            ]
        },
    }
    agent = Agent.from_config(config, variables={"who": "Ann"})
    agent.run_nonstream([Message("user", "2+2")])
    asked = [(message.role, message.get_text_content()) for message in model.requests[0].messages]
    assert asked == [("system", "You add for Ann."), ("user", "1+1"), ("assistant", "2"), ("user", "2+2")]


# -- agents -----------------------------------------------------------------------------------------------------------


def test_the_strategy_names_the_class() -> None:
    config = {"llm": ScriptedModel("x"), "tools": ["calculator"], "max_iteration": 7, "name": "N", "description": "D"}
    calls = Agent.from_config(config)
    steps = Agent.from_config({**config, "strategy": "cot"})
    assert type(calls) is Assistant
    assert type(steps) is ReActChat
    for agent in (calls, steps):
        assert agent.max_iteration == 7
        assert list(agent.function_map) == ["calculator"]
        assert (agent.name, agent.description) == ("N", "D")


def test_a_subclass_makes_itself() -> None:
    class Mine(FnCallAgent):
        pass

    assert type(Mine.from_config({"llm": ScriptedModel("x")})) is Mine
    with pytest.raises(ConfigError, match="The field files means nothing to Mine"):
        Mine.from_config({"llm": ScriptedModel("x"), "files": ["a.pdf"]})


def test_a_class_of_ones_own_is_given_what_it_takes() -> None:
    class Mine(Agent):
        def __init__(self, tone: str = "calm", **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.tone = tone

    agent = Mine.from_config({"llm": ScriptedModel("x"), "name": "N", "tools": ["calculator"]})
    assert isinstance(agent, Mine)
    assert (agent.name, list(agent.function_map)) == ("N", ["calculator"])


def test_the_loop_stops_where_the_configuration_says() -> None:
    model = ScriptedModel(*[Reply(calls=[("calculator", {"expression": f"{n}+1"})]) for n in range(9)])
    agent = Agent.from_config({"llm": model, "tools": ["calculator"], "max_iteration": 2})
    agent.run_nonstream([Message("user", "count")])
    assert len(model.requests) == 2


def test_extra_generate_cfg_reaches_the_model() -> None:
    model = ScriptedModel("x")
    Agent.from_config({"llm": model, "extra_generate_cfg": {"temperature": 0.25}}).run_nonstream([Message("user", "?")])
    assert model.requests[0].generate["temperature"] == 0.25


def test_an_unknown_tool_or_provider_is_named_with_the_near_names() -> None:
    with pytest.raises(UnknownNameError, match=r"'calculater'. Did you mean 'calculator'"):
        Agent.from_config({"llm": ScriptedModel("x"), "tools": ["calculater"]})
    with pytest.raises(UnknownNameError, match=r"'opnai'. Did you mean 'openai'"):
        Agent.from_config({"provider": "opnai", "model": "m"})


@pytest.mark.parametrize(
    ("provider", "kind"),
    [
        ("openai", "openai"),
        ("langgenius/openai/openai", "openai"),
        ("azure_openai", "azure"),
        ("tongyi", "qwen_dashscope"),
    ],
)
def test_providers_lead_to_model_types(provider: str, kind: str) -> None:
    llm = {"api_key": "any", "azure_endpoint": "https://a.example"} if kind == "azure" else {"api_key": "any"}
    agent = Agent.from_config({"provider": provider, "model": "m", "llm": llm})
    assert agent.llm is not None
    assert agent.llm.model_type == kind
    assert agent.llm.model == "m"


def test_a_key_is_taken_from_the_variable_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"provider": "openai", "model": "m", "llm": {"api_key": "${PARLOUR_TEST_KEY}"}}
    with pytest.raises(ConfigError, match=r"llm.api_key needs the variable PARLOUR_TEST_KEY"):
        Agent.from_config(config)
    monkeypatch.setenv("PARLOUR_TEST_KEY", "sk-7")
    agent = Agent.from_config(config)
    assert agent.llm is not None
    assert agent.llm.cfg["api_key"] == "sk-7"


def test_without_a_model_the_one_of_the_settings_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARLOUR_MODEL", "mine")
    monkeypatch.setenv("PARLOUR_BASE_URL", "http://127.0.0.1:1/v1")
    agent = Agent.from_config({"llm": {"generate_cfg": {"temperature": 0}}})
    assert agent.llm is not None
    assert agent.llm.model == "mine"
    assert agent.llm.generate_cfg["temperature"] == 0


def test_all_problems_show_without_starting_anything() -> None:
    config = AgentConfig.of(
        {
            "provider": "opnai",
            "model": "m",
            "prompt": "{{a}} {{b}}",
            "tools": [
                "calculater",
                {"type": "mcp", "provider": "x", "parameters": {"command": "x", "env": {"A": "${B}"}}},
            ],
        }
    )
    said = [str(one) for one in problems_in(config)]
    assert len(said) == 5
    assert "opnai" in said[0]
    assert "calculater" in said[3]
    assert "${B}" in said[4]


def test_a_configuration_is_not_changed_afterwards() -> None:
    config = AgentConfig(model="m")
    with pytest.raises(ValueError, match="frozen"):
        config.model = "n"  # pyright: ignore[reportAttributeAccessIssue]


def test_parts_say_what_is_wrong_with_them_too() -> None:
    with pytest.raises(SettingsError, match="The field max_tokens must be 1 or more"):
        GenerateConfig(max_tokens=0)
    with pytest.raises(SettingsError, match="The field model must not be empty"):
        LLMConfig(model="")
