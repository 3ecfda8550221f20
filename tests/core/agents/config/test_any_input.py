"""Whatever stands in a configuration, it is one or a sentence: never another error, never a value that was given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.agents.config.problems import ConfigError
from core.agents.config.schema import SPELLINGS, AgentConfig, AgentTool, GenerateConfig, LLMConfig, PromptConfig
from core.rag.config import RAGConfig

KINDS = (AgentConfig, AgentTool, GenerateConfig, LLMConfig, PromptConfig, RAGConfig)
FIELDS = {name for kind in KINDS for name in kind.model_fields}
NAMES = sorted(FIELDS | set(SPELLINGS) | {"mcpServers", "openapi", "env"})
SECRET = "sk-4711-secret"

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 200),
    st.floats(allow_nan=True),
    st.sampled_from(["", "x", "cot", "mcp", "api", "user", "{{a}}", "${KEY}", "http://127.0.0.1/", SECRET, "\ud800"]),
)
names = st.one_of(st.sampled_from(NAMES), st.text(max_size=5))
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=4)),
    max_leaves=12,
)


def said_of(config: dict[str, Any]) -> list[str]:
    """What is wrong with it."""
    try:
        AgentConfig.of(config)
    except ConfigError as error:
        return [str(error), *map(str, error.problems)]
    return []


@example({"prompt": {"\n": None}})
@given(st.dictionaries(st.sampled_from(sorted([*AgentConfig.model_fields, "llm_config"])), values, max_size=5))
def test_any_dict_is_a_configuration_or_a_sentence(config: dict[str, Any]) -> None:
    said = said_of(config)
    assert not any("\n" in sentence for sentence in said)
    if not said:
        assert AgentConfig.of(config).to_dict()["strategy"] in {"function_call", "cot"}


@pytest.mark.parametrize("field", ["api_key", "model", "provider", "generate_cfg", "tools"])
def test_a_value_of_the_wrong_kind_is_not_shown(field: str) -> None:
    for config in ({field: {"x": [SECRET]}}, {"llm": {field: {"x": [SECRET]}}}, {"tools": [{field: [SECRET]}]}):
        assert not any(SECRET in sentence for sentence in said_of(config))


@pytest.mark.parametrize("given", [3, None, ["a.yaml"]])
def test_what_is_no_configuration_at_all_is_said(given: Any) -> None:
    with pytest.raises(ConfigError):
        AgentConfig.of(given)


def test_names_that_are_no_texts_are_said() -> None:
    configs: list[Any] = [{1: "x"}, {"llm": {1: "x"}}, {"tools": [{1: "x"}]}, {"prompt": {None: "x"}}]
    for config in configs:
        with pytest.raises(ConfigError):
            AgentConfig.of(config)
