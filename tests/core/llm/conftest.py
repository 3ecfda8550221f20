"""A model server to talk to, and no connection left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from core.bridge.sync import run
from core.llm.base import BaseChatModel
from core.llm.open_model import get_chat_model
from core.testing.model_server import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server whose queue the test fills with `server.add`."""
    with ModelServer([]) as running:
        yield running


@pytest.fixture
def opened(server: ModelServer) -> Iterator[Callable[..., BaseChatModel]]:
    """Opens models on the server: `opened(model="gpt-4o", generate_cfg={...})`."""
    models: list[BaseChatModel] = []

    def open_one(**cfg: object) -> BaseChatModel:
        models.append(
            get_chat_model({"model": "scripted", "base_url": server.base_url, "api_key": "sk-test-0123", **cfg})
        )
        return models[-1]

    yield open_one
    for model in models:
        run(model.aclose())
