"""The OpenAI family, against the test server."""

from __future__ import annotations

from typing import Any

from core.testing.back_end import BackEnd
from core.testing.model_server import ModelServer


def _settings(name: str, model: str = "scripted", **more: Any):
    def made(server: ModelServer) -> dict[str, Any]:
        return {"model": model, "model_type": name, "base_url": server.base_url, "api_key": "sk-test-0123", **more}

    return made


def _azure(server: ModelServer) -> dict[str, Any]:
    address = f"http://{server.host}:{server.port}"
    return {"model": "mine", "model_type": "azure", "azure_endpoint": address, "api_key": "sk-test-0123"}


ROWS = [
    BackEnd("openai", _settings("openai")),
    BackEnd("openai, seeing", _settings("oai", "gpt-4o")),
    BackEnd("qwenvl_oai", _settings("qwenvl_oai")),
    BackEnd("qwenomni_oai", _settings("qwenomni_oai")),
    BackEnd("azure", _azure),
    BackEnd("azure, seeing", lambda server: {**_azure(server), "model": "gpt-4o"}),
    BackEnd("bedrock", _settings("bedrock")),
    BackEnd("bedrock, seeing", _settings("bedrock", "qwen.qwen3-vl-235b-a22b")),
]
