"""Azure: the deployment in the path, the version in the query, the key in a header of its own."""

from __future__ import annotations

import pytest

from core.bridge.sync import run
from core.errors import ModelRefusedError, SettingsError
from core.llm.open_model import get_chat_model
from core.messages.message import USER, Message
from core.testing.model_server import ModelServer
from core.testing.script import Reply

KEY = "azure-key-0123456789"
WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}


@pytest.fixture
def opened(server: ModelServer):
    models = []

    def open_one(path="", **cfg):
        endpoint = f"http://127.0.0.1:{server.port}{path}"
        models.append(
            get_chat_model({"model": "mine", "model_type": "azure", "azure_endpoint": endpoint, "api_key": KEY, **cfg})
        )
        return models[-1]

    yield open_one
    for model in models:
        run(model.aclose())


@pytest.mark.parametrize("path", ["", "/", "/openai", "/openai/deployments/mine", "/openai/"])
def test_the_request_goes_to_the_deployment(server, opened, path):
    server.add(Reply(text="a"))
    assert opened(path, api_version="2025-01-01-preview").quick_chat("q") == "a"
    (request,) = server.requests
    assert request.path == "/openai/deployments/mine/chat/completions"
    assert request.query == "api-version=2025-01-01-preview"
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers


def test_the_newer_form_has_neither_deployment_nor_version(server, opened):
    server.add(Reply(text="a"))
    assert opened("/openai/v1").quick_chat("q") == "a"
    assert (server.requests[0].path, server.requests[0].query) == ("/openai/v1/chat/completions", "")


def test_a_deployment_may_have_another_name_than_the_model_and_two_never_mix(server, opened):
    server.add(Reply(text="a"), Reply(text="b"), Reply(text="c"))
    for cfg in ({"azure_deployment": "one"}, {"deployment": "two"}, {"model": "three"}):
        opened(**cfg).quick_chat("q")
    assert [request.question["deployment"] for request in server.requests] == ["one", "two", "three"]


def test_a_token_stands_in_for_the_key(server, opened):
    server.add(Reply(text="a"))
    opened(api_key=None, azure_ad_token="token-0123456789").quick_chat("q")
    assert server.requests[0].headers["authorization"] == "Bearer token-0123456789"


def test_tools_go_by_the_services_own_calls(server, opened):
    server.add(Reply(calls=[("weather", {})]))
    (call,) = opened().chat([Message(USER, "q")], functions=[WEATHER], stream=False)
    assert call.function_call.name == "weather"
    assert server.requests[0].body["tools"][0]["function"] == WEATHER


def test_the_usual_variables_count(server, monkeypatch):
    server.add(Reply(text="a"))
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    model = get_chat_model({"model": "mine", "model_type": "azure"})
    assert model.quick_chat("q") == "a"
    run(model.aclose())
    assert server.requests[0].headers["api-key"] == KEY


def test_without_an_endpoint_or_a_key_it_says_what_is_missing():
    with pytest.raises(SettingsError, match="azure_endpoint"):
        get_chat_model({"model": "mine", "model_type": "azure", "api_key": KEY}).quick_chat("q")
    keyless = get_chat_model({"model": "mine", "model_type": "azure", "azure_endpoint": "http://127.0.0.1:9"})
    with pytest.raises(ModelRefusedError) as caught:
        keyless.quick_chat("q")
    assert caught.value.words_key == "model_key_missing"
