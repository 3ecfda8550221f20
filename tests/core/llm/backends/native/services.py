"""The table of services with protocols of their own, and a model of each beside a server that speaks its protocol.

One more service is one more line of `SERVICES`; each promise of `test_promises.py` then runs on it.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from core.llm.base import BaseChatModel
from core.llm.open_model import get_chat_model
from core.llm.request import ChatRequest
from core.messages.events import Event
from core.messages.message import USER, Message
from core.testing.model_server import ModelServer
from core.testing.script import Reply

KEY = "sk-test-0123456789"
WEATHER = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PDF = b"%PDF-1.4\n1 0 obj\n<< >>\nendobj\ntrailer << >>\n%%EOF\n"


@dataclass(frozen=True)
class Kind:
    """One service.

    Args:
        sampling: How its request has `temperature`, `top_p`, `seed` and `max_tokens`; what it has not is left out.
        leaves_out: Promises that its protocol has no room for, with the reason.
        counts_thoughts: Whether the service tells how many tokens went into thinking.
    """

    model_type: str
    model: str
    path: str = ""
    sampling: dict[str, str] = field(default_factory=dict)
    leaves_out: dict[str, str] = field(default_factory=dict)
    counts_thoughts: bool = True


SERVICES = [
    Kind(
        "anthropic",
        "claude-sonnet-4-5",
        sampling={"temperature": "temperature", "top_p": "top_p", "max_tokens": "max_tokens"},
    ),
    Kind(
        "gemini",
        "gemini-3-pro-preview",
        sampling={
            "temperature": "generationConfig.temperature",
            "top_p": "generationConfig.topP",
            "max_tokens": "generationConfig.maxOutputTokens",
            "seed": "generationConfig.seed",
        },
    ),
    Kind(
        "openai_responses",
        "gpt-5-mini",
        "/v1",
        sampling={"temperature": "temperature", "top_p": "top_p", "max_tokens": "max_output_tokens"},
    ),
    Kind(
        "mistral",
        "magistral-medium-latest",
        "/mistral/v1",
        sampling={
            "temperature": "temperature",
            "top_p": "top_p",
            "max_tokens": "max_tokens",
            "seed": "random_seed",
        },
    ),
    Kind(
        "bedrock_converse",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        sampling={
            "temperature": "inferenceConfig.temperature",
            "top_p": "inferenceConfig.topP",
            "max_tokens": "inferenceConfig.maxTokens",
        },
        leaves_out={"lines_may_end_as_windows_ends_them": "its streams are frames, and have no lines"},
        counts_thoughts=False,
    ),
]


@dataclass
class Native:
    """A service of one test: its model, its server, and what reached it."""

    kind: Kind
    server: ModelServer
    opened: list[BaseChatModel] = field(default_factory=list)

    def model(self, name: str = "", **cfg: Any) -> BaseChatModel:
        """A model of the service."""
        address = f"http://{self.server.host}:{self.server.port}{self.kind.path}"
        about = {"model": name or self.kind.model, "model_type": self.kind.model_type, "base_url": address}
        self.opened.append(get_chat_model({**about, "api_key": KEY, **cfg}))
        return self.opened[-1]

    def play(self, *replies: Reply) -> None:
        """What the service says next."""
        self.server.add(*replies)

    def sent(self) -> str:
        """The last request's body as text; JSON within it reads as JSON."""
        return json.dumps(self.server.requests[-1].body, ensure_ascii=False).replace('\\"', '"')

    def body(self) -> dict[str, Any]:
        """The last request's body."""
        return self.server.requests[-1].body

    async def events(self, messages: Any = "q", *functions: dict[str, Any], **generate: Any) -> list[Event]:
        """All events of one reply."""
        asked = (Message(USER, messages),) if isinstance(messages, str) else tuple(messages)
        model = self.model()
        async with aclosing(model.stream(ChatRequest(asked, functions, generate))) as stream:
            return [event async for event in stream]

    def signed(self) -> list[str]:
        """The signatures that the server has handed out."""
        return [one for dialect in self.server.dialects for one in getattr(dialect, "signed", ())]
