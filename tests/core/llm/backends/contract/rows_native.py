"""Services with protocols of their own, against the test server."""

from __future__ import annotations

from typing import Any

from core.testing.back_end import BackEnd
from core.testing.model_server import ModelServer


def _settings(name: str, model: str, path: str = "", **more: Any):
    def made(server: ModelServer) -> dict[str, Any]:
        address = f"http://{server.host}:{server.port}{path}"
        return {"model": model, "model_type": name, "base_url": address, "api_key": "sk-test-0123", **more}

    return made


ROWS = [
    BackEnd("anthropic", _settings("anthropic", "claude-sonnet-4-5")),
    BackEnd("anthropic, newest", _settings("anthropic", "claude-opus-5-5")),
    BackEnd(
        "anthropic, not streaming",
        _settings("anthropic", "claude-sonnet-4-5", generate_cfg={"stream": False}),
        leaves_out={"close": "a reply that comes at once cannot be left"},
    ),
    BackEnd("gemini", _settings("gemini", "gemini-2.5-flash")),
    BackEnd("gemini, newest", _settings("gemini", "gemini-3-pro-preview")),
    BackEnd(
        "openai_responses",
        _settings("openai_responses", "gpt-5-mini", "/v1"),
        leaves_out={"stop": "the protocol has no stop words: Parlour cuts the text itself"},
    ),
    BackEnd(
        "bedrock_converse",
        _settings("bedrock_converse", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
        counts_thoughts=False,
    ),
    BackEnd(
        "bedrock_converse, another's model",
        _settings("bedrock_converse", "amazon.nova-lite-v1:0"),
        counts_thoughts=False,
    ),
    BackEnd("mistral", _settings("mistral", "mistral-medium-latest", "/mistral/v1")),
]
