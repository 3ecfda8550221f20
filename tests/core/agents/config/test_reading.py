"""An agent's configuration as a file: what it is read from, what is wrong with it, and the paths in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.agents.base import Agent
from core.agents.config.problems import ConfigError
from core.agents.config.schema import AgentConfig, LLMConfig
from core.llm.fallback import FallbackModel
from core.messages.message import Message
from core.testing.scripted_model import ScriptedModel

FORMS = {
    "agent.yaml": "model: m\nstrategy: cot\nmax_iteration: 5\ntools:\n  - calculator\n",
    "agent.toml": 'model = "m"\nstrategy = "cot"\nmax_iteration = 5\ntools = ["calculator"]\n',
    "agent.json": '{"model": "m", "strategy": "cot", "max_iteration": 5, "tools": ["calculator"]}',
}


def test_yaml_toml_and_json_say_the_same(tmp_path: Path) -> None:
    configs: list[AgentConfig] = []
    for name, text in FORMS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        configs.append(AgentConfig.of(tmp_path / name))
    assert configs[0] == configs[1] == configs[2]
    assert configs[0].max_iteration == 5


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", "", "a.yaml: The file is empty."),
        ("a.json", "  \n", "a.json: The file is empty."),
        ("a.toml", "# nothing\n", "a.toml: The file is empty."),
        ("a.yaml", "- a\n", "must be names and values"),
        ("a.yaml", "model: m\ntools: [a\n", "line 3"),
        ("a.yaml", "model: m\nmodel: n\n", "line 2: 'model' stands there twice"),
        ("a.yaml", "model: !!python/object/apply:os.getcwd []\n", "line 1"),
        ("a.yaml", "a: &a [x]\nb: [" + "*a," * 40 + "]\n", "nested too deep"),
        ("a.yaml", "[" * 100, "nested too deep"),
        ("a.json", '{"model": "m",\n}', "line 2"),
        ("a.json", '{"model": "m", "model": "n"}', "stands there twice"),
        ("a.json", "[" * 100_000, "nested too deep"),
        ("a.toml", "model = = 1", "line 1"),
        ("a.txt", "model: m", "must end in"),
        ("a.yaml", "max_iteration: 100", "a.yaml: The field max_iteration must be from 1 to 99."),
    ],
)
def test_a_file_that_cannot_be_read_is_said_in_one_sentence(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        AgentConfig.of(tmp_path / name)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_or_no_text_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no file"):
        AgentConfig.of(str(tmp_path / "none.yaml"))
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match="not UTF-8"):
        AgentConfig.of(tmp_path / "b.yaml")


def test_paths_in_a_file_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text(
        """
        model: small.gguf
        files: [manual.pdf, "https://example.org/a.pdf", /absolute.pdf]
        llm: {cache_dir: cache}
        rag_cfg: {index_path: index}
        tools:
          - {name: storage, parameters: {work_dir: work}}
          - {type: mcp, provider: local, parameters: {command: python, args: [server.py]}}
          - {openapi: api.json}
          - {openapi: "https://example.org/api.json"}
        """,
        encoding="utf-8",
    )
    config = AgentConfig.of(tmp_path / "agent.yaml")
    here = str(tmp_path)
    assert config.model == f"{here}/small.gguf"
    assert config.files == [f"{here}/manual.pdf", "https://example.org/a.pdf", "/absolute.pdf"]
    assert config.llm is not None
    assert config.llm.cache_dir == f"{here}/cache"
    assert config.rag_cfg is not None
    assert config.rag_cfg.index_path == f"{here}/index"
    options = [tool.tool_parameters for tool in config.tools]
    assert options[0]["work_dir"] == f"{here}/work"
    assert options[1]["cwd"] == here
    assert options[2]["openapi"] == f"{here}/api.json"
    assert options[3]["openapi"] == "https://example.org/api.json"


def test_files_of_a_configuration_are_answered_from(tmp_path: Path) -> None:
    (tmp_path / "facts.txt").write_text("The lighthouse of Otter Point is 31 metres high.", encoding="utf-8")
    (tmp_path / "agent.json").write_text('{"files": ["facts.txt"], "model": "scripted"}', encoding="utf-8")
    config = AgentConfig.of(tmp_path / "agent.json")
    model = ScriptedModel("31 metres [1].")
    agent = Agent.from_config(config.model_copy(update={"llm": LLMConfig.of_model(model)}))
    agent.run_nonstream([Message("user", "How high is the lighthouse of Otter Point?")])
    assert "31 metres" in str(model.requests[0].messages)


def test_a_list_of_models_is_a_chain_with_keys_from_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-from-a-variable")
    file = tmp_path / "agent.yaml"
    claude = "  - model: claude-sonnet-4-5\n    model_type: anthropic\n    api_key: ${MY_KEY}\n"
    file.write_text(f"llm:\n  - model: m\n    model_type: scripted\n    base_url: http://127.0.0.1:1/v1\n{claude}")
    chain = Agent.from_config(file).llm
    assert isinstance(chain, FallbackModel)
    assert [model.model for model in chain.models] == ["m", "claude-sonnet-4-5"]
    assert vars(chain.models[1])["_key"] == "sk-from-a-variable"
    assert "sk-from-a-variable" not in file.read_text()
