"""A misspelt setting is asked about, and never lost; what a service knows goes to it whatever it looks like."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages
from typing import Any, get_type_hints

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from pydantic import AliasChoices, BaseModel

from core.errors import SettingsError
from core.llm import backends
from core.llm.open_model import get_chat_model
from core.llm.validation import BACK_END_KEYS, MODEL_KEYS, check_generate_names
from core.testing.scripted_model import ScriptedModel

ASK: Any = [{"role": "user", "content": "q"}]
AT = {"model": "m", "model_server": "http://127.0.0.1:1/v1"}


@pytest.mark.parametrize(
    ("cfg", "meant"),
    [
        ({"modle": "gpt-5-mini"}, "model"),
        ({"Model": "gpt-5-mini"}, "model"),
        ({**AT, "api_kye": "sk"}, "api_key"),
        ({**AT, "apikey": "sk"}, "api_key"),
        ({**AT, "genrate_cfg": {}}, "generate_cfg"),
        ({**AT, "model_typ": "openai"}, "model_type"),
        ({"model": "m", "base_uri": "http://127.0.0.1:1/v1"}, "base_url"),
        ({"model": "m", "azure_endpont": "https://a.openai.azure.com"}, "azure_endpoint"),
        ({"model_type": "azure", "azure_endpoint": "https://a.openai.azure.com", "api_verson": "1"}, "api_version"),
        ({"model_type": "qwen_dashscope", "api_key": "sk", "workspce": "w"}, "workspace"),
        ({"model_type": "llama_cpp", "contxt": 2048}, "context"),
        ({"model_type": "llama_cpp", "weight_dir": "w"}, "weights_dir"),
    ],
)
def test_a_misspelt_name_in_the_dict_of_a_model_is_asked_about(cfg: dict[str, Any], meant: str) -> None:
    with pytest.raises(SettingsError, match="has no setting") as caught:
        get_chat_model(cfg)
    assert caught.value.hint == f"Did you mean {meant!r}?"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_retrys", "max_retries"),
        ("maxretries", "max_retries"),
        ("max-retries", "max_retries"),
        ("max_input_token", "max_input_tokens"),
        ("request_time_out", "request_timeout"),
        ("fncall_promt_type", "fncall_prompt_type"),
        ("paralel_function_calls", "parallel_function_calls"),
        ("function_choise", "function_choice"),
        ("stops", "stop"),
        ("cachedir", "cache_dir"),
        ("temprature", "temperature"),
        ("max_token", "max_tokens"),
        ("top_pp", "top_p"),
        ("frequency_penality", "frequency_penalty"),
        ("maxTokens", "max_tokens"),
    ],
)
def test_a_misspelt_name_in_generate_cfg_is_asked_about(name: str, meant: str) -> None:
    for ask in (
        lambda: get_chat_model({**AT, "generate_cfg": {name: 1}}),
        lambda: ScriptedModel("never").chat(ASK, extra_generate_cfg={name: 1}),
    ):
        with pytest.raises(SettingsError, match=name) as caught:
            ask()
        assert caught.value.hint == f"Did you mean {meant!r}?"


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("temperature", "hot", "cannot be 'hot'. Give a number of 0 or more; leave it out for the service's own."),
        ("temperature", -1, "cannot be -1. Give a number of 0 or more; leave it out for the service's own."),
        ("temperature", float("nan"), "cannot be nan. Give a number of 0 or more; leave it out for the service's own."),
        ("temperature", float("inf"), "cannot be inf. Give a number of 0 or more; leave it out for the service's own."),
        ("temperature", True, "cannot be True. Give a number of 0 or more; leave it out for the service's own."),
        ("top_p", 7, "cannot be 7. Give a number from 0 to 1; leave it out for the service's own."),
        ("presence_penalty", 3, "cannot be 3. Give a number from -2 to 2; leave it out for the service's own."),
        ("max_tokens", 0, "cannot be 0. Give a whole number, at least 1; leave it out for the service's own."),
        ("max_tokens", [9], "cannot be a list. Give a whole number, at least 1; leave it out for the service's own."),
        ("max_retries", -1, "cannot be -1. Give a whole number, at least 0; 0 means none."),
    ],
)
def test_a_value_that_no_service_takes_is_refused_before_it_is_asked(name: str, given: Any, said: str) -> None:
    for ask in (
        lambda: get_chat_model({**AT, "generate_cfg": {name: given}}),
        lambda: ScriptedModel("never").chat(ASK, extra_generate_cfg={name: given}),
    ):
        with pytest.raises(SettingsError) as caught:
            ask()
        assert str(caught.value) == f"generate_cfg[{name!r}] {said}"


def test_a_temperature_that_only_models_on_this_machine_take_goes_to_them() -> None:
    asked = ScriptedModel("fine")
    asked.chat(ASK, stream=False, extra_generate_cfg={"temperature": 3})
    assert asked.requests[0].generate["temperature"] == 3


def test_a_number_that_a_file_gives_as_text_is_one() -> None:
    asked = ScriptedModel("fine")
    asked.chat(ASK, stream=False, extra_generate_cfg={"temperature": "0.5", "top_p": 1})
    assert (asked.requests[0].generate["temperature"], asked.requests[0].generate["top_p"]) == (0.5, 1)


def test_every_parameter_of_a_vendor_goes_to_it() -> None:
    check_generate_names(get_type_hints(CompletionCreateParamsBase).keys() - {"messages"})
    names = """
        max_tokens seed stop top_p top_k n stream_options extra_body extra_headers timeout enable_thinking
        thinking_budget enable_search search_options result_format vl_high_resolution_images max_output_tokens
        max_input_length repetition_penalty min_p typical_p repeat_penalty num_ctx num_predict keep_alive cache_prompt
        max_new_tokens do_sample stop_token_ids guided_json chat_template_kwargs use_beam_search skip_special_tokens
        stop_words stop_sequences stop_strings speed format text thinking max_tool_calls max_prompt_tokens min_tokens
        cache_control truncate_prompt_tokens result_format tool_stream preserve_thinking translation_options
        enable_code_interpreter length_penalty ignore_eos include_stop_str_in_output mirostat num_beams options
        top_a top_h top_n_sigma temperature_last dynamic_temperature min_new_tokens min_completion_tokens
        auto_max_new_tokens typ_p nothing_like_ours
    """
    check_generate_names(names.split())
    sent = ScriptedModel("fine")
    sent.chat(ASK, stream=False, extra_generate_cfg={"nothing_like_ours": 1})
    assert sent.requests[0].generate["nothing_like_ours"] == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("organization", "It has api_base, api_key, audio, "),
        ("device_map", "It has api_base, "),
        ("base_adress_url", "Did you mean 'base_url'"),
    ],
)
def test_a_name_that_no_back_end_knows_is_refused_with_those_that_there_are(name: str, hint: str) -> None:
    with pytest.raises(SettingsError, match=f"A model has no setting '{name}'") as caught:
        get_chat_model({**AT, name: "sk-secret"})
    assert caught.value.hint.startswith(hint)
    assert caught.value.hint.endswith("What the service is to get belongs into generate_cfg.")
    assert "sk-secret" not in str(caught.value)


def test_what_the_service_is_to_get_passes_in_generate_cfg() -> None:
    generate = {"extra_body": {"organization": "mine"}, "organization": "mine"}
    assert get_chat_model({**AT, "generate_cfg": generate}).generate_cfg == generate


@pytest.mark.parametrize("also", [{}, {"model_type": "openai"}, {"model_type": "qwen_dashscope", "api_key": "sk"}])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *((name, name) for name in ("temperature", "max_tokens", "max_retries", "seed", "stop", "top_p", "top_k")),
        *((name, name) for name in ("enable_thinking", "request_timeout", "response_format", "extra_body")),
        ("timeout", "request_timeout"),
    ],
)
def test_how_a_model_writes_belongs_into_generate_cfg(name: str, meant: str, also: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"A model has no setting '{name}' of its own") as caught:
        get_chat_model({**AT, **also, name: 1})
    assert caught.value.hint == f'It belongs into generate_cfg: write "generate_cfg": {{"{meant}": …}}.'


def test_the_log_tells_of_a_setting_that_only_another_back_end_knows(caplog: pytest.LogCaptureFixture) -> None:
    get_chat_model({**AT, "azure_ad_token": "sk-secret", "model_type": "openai"})
    assert "Settings of the model that only other back ends know have no effect: 'azure_ad_token'." in caplog.text
    assert "sk-secret" not in caplog.text


def test_the_settings_of_all_back_ends_are_known() -> None:
    found: set[str] = set()
    for module in walk_packages(backends.__path__, f"{backends.__name__}."):
        for one in vars(import_module(module.name)).values():
            if isinstance(one, type) and issubclass(one, BaseModel) and one.__name__.endswith("Config"):
                fields = one.model_fields.items()
                found |= {name for name, _ in fields}
                others = [field.validation_alias for _, field in fields]
                found |= {str(name) for also in others if isinstance(also, AliasChoices) for name in also.choices}
    assert found - MODEL_KEYS == BACK_END_KEYS


@pytest.mark.parametrize("given", [True, False])
def test_how_tools_reach_a_model_may_be_said_beside_generate_cfg_or_in_it(*, given: bool) -> None:
    assert get_chat_model({**AT, "use_raw_api": given}).use_raw_api is given
    assert get_chat_model({**AT, "generate_cfg": {"use_raw_api": given}}).use_raw_api is given
    nearer = {**AT, "use_raw_api": not given, "generate_cfg": {"use_raw_api": given}}
    assert get_chat_model(nearer).use_raw_api is given
