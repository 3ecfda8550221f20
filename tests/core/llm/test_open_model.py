"""From a name or a dict to a model."""

from __future__ import annotations

import pytest

from core.agents.basic import BasicAgent
from core.errors import ParlourError, SettingsError, UnknownNameError
from core.llm.catalog import LLM_REGISTRY
from core.llm.open_model import deduced_type, get_chat_model
from core.testing.scripted_model import ScriptedModel


def test_a_model_is_itself():
    model = ScriptedModel("a")
    assert get_chat_model(model) is model


@pytest.mark.parametrize(
    ("cfg", "model_type"),
    [
        ({"model": "gpt-5-mini"}, "openai"),
        ({"model": "anything", "model_server": "http://127.0.0.1:8000/v1"}, "openai"),
        ({"api_base": "http://127.0.0.1:8000/v1"}, "openai"),
        ({"model": "qwen.gguf"}, "llama_cpp"),
        ({"model": "scripted"}, "scripted"),
        ({"model": "gpt-4o", "azure_endpoint": "https://x.openai.azure.com"}, "azure"),
        ({"model": "qwen-plus", "model_server": "http://127.0.0.1:8000/v1"}, "openai"),
        ({"model": "qwen-plus", "model_server": "127.0.0.1:8000/v1"}, "openai"),
        ({"model": "qwen-plus"}, "qwen_dashscope"),
        ({"model": "Qwen3-235B-A22B"}, "qwen_dashscope"),
        ({"model": "qwen-max", "model_server": "dashscope"}, "qwen_dashscope"),
        ({"model": "deepseek-v3", "model_server": "dashscope"}, "qwen_dashscope"),
        ({"model": "qwen-vl-max"}, "qwenvl_dashscope"),
        ({"model": "Qwen2.5-VL-72B-Instruct"}, "qwenvl_dashscope"),
        ({"model": "qvq-max"}, "qwenvl_dashscope"),
        ({"model": "qwen-audio-turbo"}, "qwenaudio_dashscope"),
        ({"model": "qwen-omni-turbo"}, "qwenomni_oai"),
        ({"model": "qwq-plus"}, "qwen_dashscope"),
    ],
)
def test_the_type_follows_from_the_rest(cfg, model_type):
    assert deduced_type(cfg) == model_type


@pytest.fixture
def no_variables(monkeypatch):
    for name in ("OPENAI_BASE_URL", "ANTHROPIC", "GEMINI", "GOOGLE", "MISTRAL", "DEEPSEEK", "MOONSHOT", "XAI"):
        monkeypatch.delenv(name if "_" in name else f"{name}_API_KEY", raising=False)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini-2.5-flash", "GEMINI_API_KEY"),
        ("mistral-small-latest", "MISTRAL_API_KEY"),
        ("codestral-latest", "MISTRAL_API_KEY"),
        ("deepseek-chat", "DEEPSEEK_API_KEY"),
        ("kimi-k2.6", "MOONSHOT_API_KEY"),
        ("grok-4", "XAI_API_KEY"),
    ],
)
def test_without_a_key_the_variable_of_the_vendor_is_named(no_variables, name, variable):
    with pytest.raises(ParlourError, match=rf"no .*key.*{variable}"):
        BasicAgent(llm=name).ask("Hello?")


def test_a_vendor_of_openais_protocol_is_asked_with_its_own_key(no_variables, monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", "ds-123456")
    model = get_chat_model("deepseek-chat")
    assert model.model_type == "openai"
    assert model.service.address == "https://api.deepseek.com/v1"


def test_a_server_in_the_environment_is_asked_whatever_the_name(no_variables, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert [get_chat_model(name).model_type for name in ("claude-opus-4-5", "deepseek-chat")] == ["openai", "openai"]


def test_an_unknown_type_offers_the_near_names():
    with pytest.raises(UnknownNameError, match=r"^There is no model type named 'opanai'\. Did you mean 'openai'"):
        get_chat_model({"model": "m", "model_type": "opanai"})


@pytest.mark.parametrize(("name", "near"), [("qwen_dashscop", "qwen_dashscope"), ("azur", "azure")])
def test_a_bare_name_that_is_almost_a_type_is_no_model(name, near):
    with pytest.raises(UnknownNameError, match=f"Did you mean '{near}'"):
        get_chat_model(name)


def test_a_folder_of_weights_is_a_local_model(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert deduced_type({"model": str(tmp_path)}) == "transformers"


@pytest.mark.parametrize("cfg", [None, 7, {"qwen-max"}])
def test_what_is_no_description_of_a_model_is_refused(cfg):
    with pytest.raises(SettingsError, match="cannot be made of"):
        get_chat_model(cfg)


def test_the_table_holds_every_name_of_the_seed():
    names = "qwen_dashscope qwenvl_dashscope qwenaudio_dashscope qwenomni_oai openai oai qwenvl_oai azure transformers"
    assert {*names.split(), "llama_cpp"} <= set(LLM_REGISTRY)


def test_nothing_is_an_error_that_says_what_is_missing():
    with pytest.raises(SettingsError, match="name no model"):
        get_chat_model({})


def test_a_setting_of_the_wrong_type_is_named():
    with pytest.raises(SettingsError, match="vision"):
        get_chat_model({"model": "m", "model_type": "openai", "vision": "perhaps"})


@pytest.mark.parametrize("cfg", [{"model": "qwen-vl-max", "generate_cfg": {"stop": ["x"]}}, {"model": "scripted"}])
def test_guessing_writes_nothing_into_the_dict(cfg):
    before = str(cfg)
    deduced_type(cfg)
    get_chat_model({**cfg, "model_type": "scripted"}).generate_cfg["stop"] = ["y"]
    assert str(cfg) == before


def test_the_dict_stays_as_it_is():
    cfg = {"model": "m", "model_server": "http://127.0.0.1:1/v1", "generate_cfg": {"seed": 1}}
    model = get_chat_model(cfg)
    model.generate_cfg["seed"] = 2
    assert cfg == {"model": "m", "model_server": "http://127.0.0.1:1/v1", "generate_cfg": {"seed": 1}}
    assert model.model_type == "openai"


@pytest.mark.parametrize("given", ["stop", ["stop"], 5])
def test_settings_of_the_reply_that_are_no_dict_are_refused(given):
    with pytest.raises(SettingsError, match="generate_cfg"):
        get_chat_model({"model": "scripted", "generate_cfg": given})


def test_a_name_that_begins_like_the_home_of_a_user_is_a_name():
    assert deduced_type({"model": "~nobody-has-this-name/model"}) == "openai"


@pytest.mark.parametrize("kind", ["scripted", "llama_cpp", "openai"])
def test_limits_of_the_reply_that_make_no_sense_are_said_when_the_model_is_made(kind):
    with pytest.raises(SettingsError, match="max_tokens"):
        get_chat_model({"model_type": kind, "model": "", "generate_cfg": {"max_tokens": "many"}})


def test_what_is_set_to_nothing_is_not_set():
    model = get_chat_model({"model_type": "llama_cpp", "generate_cfg": {"max_tokens": None, "max_input_tokens": None}})
    assert model.generate_cfg["max_tokens"] > 0
    assert model.generate_cfg["max_input_tokens"] > 0
