"""DashScope in its own protocol, against the test server."""

from __future__ import annotations

from typing import Any

from core.testing.back_end import BackEnd
from core.testing.model_server import ModelServer


def _settings(name: str, model: str):
    def made(server: ModelServer) -> dict[str, Any]:
        return {
            "model": model,
            "model_type": name,
            "base_http_api_url": server.dashscope_url,
            "api_key": "sk-test-0123",
        }

    return made


ROWS = [
    BackEnd("qwen_dashscope", _settings("qwen_dashscope", "qwen-max")),
    BackEnd("qwenvl_dashscope", _settings("qwenvl_dashscope", "qwen-vl-max")),
    BackEnd("qwenaudio_dashscope", _settings("qwenaudio_dashscope", "qwen-audio-turbo")),
]
