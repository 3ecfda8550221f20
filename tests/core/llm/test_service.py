"""Where a model is."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from core.llm.base import BaseChatModel
from core.llm.open_model import get_chat_model
from core.llm.service import Service, account_mark, key_of, service_of


@pytest.mark.parametrize(
    ("cfg", "model_type", "service"),
    [
        (
            {"base_url": "https://user:secret@api.deepseek.com:8443/v1?key=secret"},
            "openai",
            Service("api.deepseek.com", "deepseek", "https://api.deepseek.com:8443/v1", "api.deepseek.com", port=8443),
        ),
        (
            {"model_server": "http://127.0.0.1:8000/v1/"},
            "oai",
            Service("127.0.0.1", "oai", "http://127.0.0.1:8000/v1", "127.0.0.1", port=8000, here=True),
        ),
        (
            {"model_server": "http://[::1]:8000"},
            "oai",
            Service("::1", "oai", "http://[::1]:8000", "::1", port=8000, here=True),
        ),
        (
            {"azure_endpoint": "https://mine.openai.azure.com"},
            "azure",
            Service(
                "mine.openai.azure.com",
                "azure.ai.openai",
                "https://mine.openai.azure.com",
                "mine.openai.azure.com",
            ),
        ),
        ({}, "mine", Service("mine", "mine")),
        ({"base_url": "http://host:port"}, "openai", Service("openai", "openai")),
    ],
)
def test_the_settings_tell_where_a_model_is_and_never_a_secret(cfg, model_type, service):
    assert service_of(cfg, model_type) == service


@pytest.mark.parametrize("model_type", ["openai", "oai", "qwenvl_oai"])
def test_without_an_address_models_of_the_openai_protocol_are_at_openai(model_type):
    cfg = {"model_type": model_type, "api_key": "sk-1234567890"}
    official = ("https://api.openai.com/v1", "api.openai.com")
    assert get_chat_model(cfg).service == Service("api.openai.com", "openai", *official)


@pytest.mark.parametrize("model_type", ["azure", "openai_public"])
def test_without_an_address_no_vendor_is_guessed_where_there_is_none(model_type):
    cfg = {"model_type": model_type, "api_key": "sk-1234567890"}
    assert get_chat_model(cfg).service == Service(model_type, model_type)


def test_a_model_in_this_process_says_so_itself():
    class Mine(BaseChatModel):
        model_type = "mine"
        in_process = True

    assert Mine().service == Service("mine", "mine", here=True)
    assert get_chat_model({"model_type": "llama_cpp"}).in_process
    assert not get_chat_model({"model": "m", "base_url": "http://127.0.0.1:1/v1"}).in_process


def test_dashscope_is_known_by_name_and_by_type():
    assert service_of({"model_server": "dashscope"}, "oai").provider == "dashscope"
    for model_type in ("qwen_dashscope", "qwenvl_dashscope", "qwenaudio_dashscope", "qwenomni_oai"):
        cfg = {"model_type": model_type, "api_key": "sk-1234567890"}
        assert get_chat_model(cfg).service.host == "dashscope.aliyuncs.com"


def test_accounts_are_told_apart_without_a_key_being_kept():
    one = account_mark("https://a.example", key_of({"api_key": "sk-1234567890"}))
    assert one == account_mark("https://a.example", key_of({"api_key": SecretStr("sk-1234567890")}))
    assert one != account_mark("https://a.example", key_of({"api_key": "sk-1234567891"}))
    assert one != account_mark("https://b.example", key_of({"api_key": "sk-1234567890"}))
    assert "sk-" not in one
    assert key_of({}) == ""
