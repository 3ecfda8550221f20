"""How a family of model services words what a script says: the test server speaks every dialect of `DIALECTS`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping  # noqa: TC003 - a named tuple keeps its types
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from core.testing.script import chunks, completion

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.testing.script import Reply, Request

DIALECTS = (
    "core.testing.anthropic_dialect:AnthropicDialect",
    "core.testing.gemini_dialect:GeminiDialect",
    "core.testing.converse_dialect:ConverseDialect",
    "core.testing.responses_dialect:ResponsesDialect",
    "core.testing.mistral_dialect:MistralDialect",
    "core.testing.dialect:AzureDialect",
    "core.testing.dialect:OpenAIDialect",
    "core.testing.dashscope_dialect:DashScopeDialect",
)
"""Tried from the first to the last; one line more is all that a further dialect needs."""

_AZURE = re.compile(r"/openai/deployments/(?P<deployment>[^/]+)/chat/completions")


class Asked(NamedTuple):
    """One HTTP request; names of headers are in lower case, the path is without its query."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    raw: bytes


class Answered(NamedTuple):
    """A whole HTTP answer."""

    status: int
    raw: bytes
    content_type: str = "application/json"


class Dialect(Protocol):
    """One dialect. It keeps what it needs to remember for one server, and no more.

    One whose replies are no server-sent events says so with `stream_type`, the media type that they have instead.
    """

    def takes(self, asked: Asked) -> bool:
        """Whether this is a question to the model, to be answered from the script."""
        ...

    def key(self, asked: Asked) -> str:
        """The API key that came with it."""
        ...

    def request(self, asked: Asked, body: Request) -> Request:
        """The question as the script's functions read it: `model`, `messages`, `tools` at the top."""
        ...

    def fault(self, asked: Asked, body: Request) -> str:
        """What a service that looks closely would refuse in the question; empty where that is nothing."""
        ...

    def streams(self, asked: Asked, body: Request) -> bool:
        """Whether the reply is wanted as events."""
        ...

    def events(self, reply: Reply, body: Request, reply_id: str) -> list[bytes]:
        """The reply as server-sent events, one `bytes` each, with whatever marks the end as the last."""
        ...

    def whole(self, reply: Reply, body: Request, reply_id: str) -> bytes:
        """The reply as one body."""
        ...

    def error(self, reply: Reply) -> bytes:
        """The body of a refusal: `reply.error` holds `{"error": {"message", "type", "code"}}`."""
        ...

    def error_event(self, reply: Reply) -> bytes:
        """The same in the middle of a stream."""
        ...

    def other(self, asked: Asked, models: Sequence[str]) -> Answered | None:
        """The answer to what is no question (a list of models, an upload); `None` where it is not of this dialect."""
        ...


class OpenAIDialect:
    """`/v1/chat/completions` and `/v1/models`."""

    def takes(self, asked: Asked) -> bool:
        """A question has this path."""
        return asked.method == "POST" and asked.path.endswith("/chat/completions")

    def key(self, asked: Asked) -> str:
        """Where this dialect has its key."""
        return asked.headers.get("authorization", "").removeprefix("Bearer ")

    def request(self, asked: Asked, body: Request) -> Request:
        """The same, as every dialect has it."""
        del asked  # all of it is in the body
        return body

    def fault(self, asked: Asked, body: Request) -> str:
        """Nothing: services of this family take what they do not know."""
        del asked, body
        return ""

    def streams(self, asked: Asked, body: Request) -> bool:
        """`stream` says so."""
        del asked
        return bool(body.get("stream"))

    def events(self, reply: Reply, body: Request, reply_id: str) -> list[bytes]:
        """As chunks."""
        return chunks(reply, body, reply_id)

    def whole(self, reply: Reply, body: Request, reply_id: str) -> bytes:
        """As one object."""
        return json.dumps(completion(reply, body, reply_id)).encode()

    def error(self, reply: Reply) -> bytes:
        """As it stands."""
        return json.dumps(reply.error or {}).encode()

    def error_event(self, reply: Reply) -> bytes:
        """As a chunk."""
        return b"data: " + self.error(reply) + b"\n\n"

    def other(self, asked: Asked, models: Sequence[str]) -> Answered | None:
        """The list of models."""
        if asked.method != "GET" or not asked.path.rstrip("/").endswith("/models"):
            return None
        data = [{"id": name, "object": "model", "owned_by": "script"} for name in models]
        return Answered(200, json.dumps({"object": "list", "data": data}).encode())


class AzureDialect(OpenAIDialect):
    """`/openai/deployments/<name>/chat/completions?api-version=…`: the key in a header of its own."""

    def takes(self, asked: Asked) -> bool:
        """A question has this path."""
        return asked.method == "POST" and bool(_AZURE.search(asked.path)) and "api-version=" in asked.query

    def key(self, asked: Asked) -> str:
        """Where this dialect has its key."""
        return asked.headers.get("api-key") or super().key(asked)

    def request(self, asked: Asked, body: Request) -> Request:
        """The same, as every dialect has it."""
        found = _AZURE.search(asked.path)
        return {**body, "deployment": found["deployment"] if found else ""}

    def events(self, reply: Reply, body: Request, reply_id: str) -> list[bytes]:
        """As chunks."""
        # Azure begins with what its filter found in the question: no choices at all.
        found: dict[str, Any] = {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
        return [b"data: " + json.dumps(found).encode() + b"\n\n", *super().events(reply, body, reply_id)]

    def other(self, asked: Asked, models: Sequence[str]) -> Answered | None:
        """Nothing."""
        del asked, models  # deployments are not listed here
        return None


def dialects() -> Iterator[Dialect]:
    """A fresh one of each."""
    for place in DIALECTS:
        module, _, name = place.partition(":")
        yield cast("Dialect", getattr(import_module(module), name)())
