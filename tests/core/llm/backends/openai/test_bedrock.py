"""Amazon Bedrock by its OpenAI-compatible form: addresses by region, and a key for Amazon's own addresses alone."""

from __future__ import annotations

import pytest

from core.errors import SettingsError
from core.llm.open_model import get_chat_model


def test_a_region_is_an_address():
    model = get_chat_model({"model_type": "bedrock", "model": "openai.gpt-oss-20b-1:0", "region": "eu-west-1"})
    assert model.label == "openai.gpt-oss-20b-1:0 · bedrock-runtime.eu-west-1.amazonaws.com"
    assert model.native_calls


def test_the_region_may_stand_in_amazons_variable(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert "us-west-2" in get_chat_model({"model_type": "bedrock"}).label


@pytest.mark.parametrize("region", ["", "evil.example.org/", "us-east-1.evil"])
def test_what_is_no_region_is_refused_by_name(monkeypatch, region):
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(SettingsError, match="region"):
        get_chat_model({"model_type": "bedrock", "region": region})


def test_the_usual_key_goes_to_amazons_own_addresses_alone(monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-usual-key")
    there = get_chat_model({"model_type": "bedrock", "region": "us-east-1"})
    elsewhere = get_chat_model({"model_type": "bedrock", "base_url": "http://127.0.0.1:1/v1"})
    assert vars(there)["_api_key"] == "bedrock-usual-key"
    assert vars(elsewhere)["_api_key"] == "EMPTY"
