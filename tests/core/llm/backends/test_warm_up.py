"""The connection stands before the first question."""

from __future__ import annotations

import pytest

from core.bridge.sync import run
from core.errors import ModelUnavailableError
from core.llm.open_model import get_chat_model
from core.testing.model_server import ModelServer
from core.testing.script import Reply


@pytest.mark.parametrize("key", ["sk-right", "sk-wrong"])
def test_the_first_question_uses_the_connection_that_was_opened(key: str):
    with ModelServer(Reply(text="Hello"), api_key=key) as server:
        model = get_chat_model({"model": "scripted", "base_url": server.base_url, "api_key": "sk-right"})
        model.warm_up()
        assert (server.connections, len(server.requests)) == (1, 0)
        if key == "sk-right":
            assert model.quick_chat("Hi") == "Hello"
            assert server.connections == 1
        run(model.aclose())


def test_a_service_that_is_not_there_says_so():
    model = get_chat_model({"model": "scripted", "base_url": "http://127.0.0.1:1/v1", "api_key": "sk-any"})
    with pytest.raises(ModelUnavailableError, match=r"127\.0\.0\.1"):
        model.warm_up()
    run(model.aclose())
