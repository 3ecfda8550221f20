"""From a name or a dict to a model."""

from __future__ import annotations

import pytest

from core.errors import SettingsError, UnknownNameError
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
    ],
)
def test_the_type_follows_from_the_rest(cfg, model_type):
    assert deduced_type(cfg) == model_type


def test_an_unknown_type_offers_the_near_names():
    with pytest.raises(UnknownNameError, match="Did you mean 'openai'"):
        get_chat_model({"model": "m", "model_type": "opanai"})


def test_nothing_is_an_error_that_says_what_is_missing():
    with pytest.raises(SettingsError, match="name no model"):
        get_chat_model({})


def test_a_setting_of_the_wrong_type_is_named():
    with pytest.raises(SettingsError, match="vision"):
        get_chat_model({"model": "m", "model_type": "openai", "vision": "perhaps"})


def test_the_dict_stays_as_it_is():
    cfg = {"model": "m", "model_server": "http://127.0.0.1:1/v1", "generate_cfg": {"seed": 1}}
    model = get_chat_model(cfg)
    model.generate_cfg["seed"] = 2
    assert cfg == {"model": "m", "model_server": "http://127.0.0.1:1/v1", "generate_cfg": {"seed": 1}}
    assert model.model_type == "openai"
