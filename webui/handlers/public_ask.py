"""What agents find of a Space by its address: one function, `ask`, in Gradio's protocols and over MCP, without a key.

Hugging Face's own MCP server reads `/gradio_api/mcp/schema` of a Space that was added to somebody's tools, and calls
the tool at `/gradio_api/mcp/`; the answers are Parlour's, Gradio's own server is not started.

It is off until `PARLOUR_PUBLIC_ASK` allows it. Whoever asks has nothing here: no conversation is kept, tools that would
ask first are refused, and each address may ask so often an hour.
"""

from __future__ import annotations

import asyncio
import json
import logging
from importlib.util import find_spec
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Match, Route

from core.bridge.pool import BoundedDict
from core.errors import NotFoundError, ParlourError, TooManyRequestsError
from webui.context import json_body, log_text, text_of
from webui.handlers.public_queue import PublicQueue, told_of_itself
from webui.middleware.proxy import client_address, counted_as

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import Receive, Scope, Send

    from core.limits import RateLimiter
    from core.mcp.agent_serving import AgentServing
    from core.mcp.serving import Heard
    from core.mcp_endpoint import McpAccess
    from core.settings import Settings
    from webui.context import WebContext
    from webui.words import Words

_log = logging.getLogger(__name__)
ASKING_AGENTS: Final = "agents"
"""The owner in whose name they ask; no cookie makes anybody this one."""
_LONGEST: Final = 8_000  # characters of a question
_MOST: Final = 200  # answers that wait to be fetched
_ALIVE: Final = 15.0
_HOUR: Final = 3600.0
_TEXT: Final = {"type": {"type": "string"}, "python_type": {"type": "str", "description": ""}, "component": "Textbox"}
_ABOUT: Final = "Ask the assistant of this Space a question; the answer names what it cites."
INFO: Final[dict[str, Any]] = {
    "named_endpoints": {
        "/ask": {
            "description": _ABOUT,
            "parameters": [
                {
                    "label": "Question",
                    "parameter_name": "question",
                    "parameter_has_default": False,
                    "parameter_default": None,
                    "example_input": "What is 1250 * 12?",
                    **_TEXT,
                }
            ],
            "returns": [{"label": "Answer", **_TEXT}],
            "api_visibility": "public",
        }
    },
    "unnamed_endpoints": {},
}
_QUESTION: Final = {"type": "string", "minLength": 1, "maxLength": _LONGEST, "description": "What is asked."}
_SCHEMA: Final = {"type": "object", "properties": {"question": _QUESTION}, "required": ["question"]}
TOOLS: Final[list[dict[str, Any]]] = [
    {
        "name": "ask",
        "description": _ABOUT,
        "inputSchema": _SCHEMA,
        "meta": {"file_data_present": False, "mcp_type": "tool", "endpoint_name": "ask"},
    }
]
"""The tool, as Gradio's MCP server describes those of a Space."""


def offers_mcp(settings: Settings) -> bool:
    """Whether agents without a key may also ask over MCP; `mcp` is not imported for that."""
    return settings.public_ask > 0 and find_spec("mcp") is not None


class _ForNobody(Route):
    """A route for who has no owner; for everybody else, what is mounted behind it answers."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As any route, for nobody."""
        return super().matches(scope) if scope.get("owner") is None else (Match.NONE, {})


class AskOverMcp:
    """The one tool over streamable HTTP, as an ASGI application; the package `mcp` is imported at the first request.

    Args:
        outward: What answers.
        rate: How often each address may ask.
    """

    def __init__(self, outward: McpAccess, rate: RateLimiter) -> None:
        self._outward = outward
        self._rate = rate
        self._serving: AgentServing | None = None

    def table(self) -> list[BaseRoute]:
        """Its routes."""
        methods = ["GET", "POST", "DELETE"]
        served = [Route(f"/gradio_api/mcp{end}", self, methods=methods) for end in ("", "/")]
        return [*served, Route("/gradio_api/mcp/schema", self.schema, methods=["GET"])]

    async def schema(self, _: Request) -> Response:
        """The tool, for who does not want to connect for it."""
        return JSONResponse(TOOLS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self._serving is None:
            from core.mcp.agent_serving import AgentServing

            self._serving = AgentServing("Parlour", _ABOUT, self._answered, _SCHEMA)
            self._outward.end_with_this(self._serving)
        await self._serving(scope, receive, send)

    async def _answered(self, question: str, scope: Scope, heard: Heard) -> str:
        await self._rate.take(counted_as(client_address(scope)))
        return await self._outward.of(ASKING_AGENTS).ask(question, heard)


class PublicAskRoutes:
    """`GET /gradio_api/info`, `POST /gradio_api/call/ask` and `/call/v2/ask`, the stream that each names, and MCP."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words
        self._an_hour = context.settings.public_ask
        self._rate = context.engine.limits.rate(
            "public_ask",
            self._an_hour or None,
            _HOUR,
            error="too_many_questions",
            message="Too many questions in one hour.",
        )
        self._answers = BoundedDict[str, asyncio.Task[str]](_MOST, _stop)
        self._queue = PublicQueue(self._begun, self._failed)
        self._mcp = AskOverMcp(context.engine.outward, self._rate) if offers_mcp(context.settings) else None

    def table(self) -> list[BaseRoute]:
        """All of them; none where nobody may ask."""
        if not self._an_hour:
            return []
        return [
            _ForNobody("/config", self.config, methods=["GET"]),
            _ForNobody("/gradio_api/queue/join", self._queue.join, methods=["POST"]),
            _ForNobody("/gradio_api/queue/data", self._queue.data, methods=["GET"]),
            *(self._mcp.table() if self._mcp is not None else ()),
            Route("/gradio_api/info", self.info, methods=["GET"]),
            Route("/gradio_api/call/ask", self.ask, methods=["POST"]),
            Route("/gradio_api/call/v2/ask", self.ask, methods=["POST"]),
            Route("/gradio_api/call/ask/{event}", self.answer, methods=["GET"]),
            Route("/gradio_api/call/v2/ask/{event}", self.answer, methods=["GET"]),
        ]

    async def info(self, _: Request) -> Response:
        """What can be called."""
        return JSONResponse(INFO)

    async def config(self, _: Request) -> Response:
        """What a Gradio application tells of itself, as far as there is anything for who has no page open."""
        return JSONResponse(told_of_itself(mcp=self._mcp is not None))

    async def ask(self, request: Request) -> Response:
        """Begin an answer: `{"data": [question]}`, or `{"question": …}`; it is fetched by its `event_id`."""
        given = await json_body(request) or {}
        data = given.get("data")
        begun = await self._begun(request, data[0] if isinstance(data, list) and data else given.get("question"))  # pyright: ignore[reportUnknownArgumentType] - anything
        if isinstance(begun, Response):
            return begun
        event = token_urlsafe(16)
        self._answers[event] = begun
        return JSONResponse({"event_id": event})

    async def _begun(self, request: Request, asked: object) -> asyncio.Task[str] | Response:
        """The answer to a question, which is begun; or why it is not."""
        words, question = self._spoken(request), text_of(asked).strip()
        if not 0 < len(question) <= _LONGEST:
            return JSONResponse({"detail": words("ask.no_question", most=_LONGEST)}, 422)
        try:
            await self._rate.take(counted_as(client_address(request)))
        except TooManyRequestsError as error:
            wait = {"retry-after": str(error.retry_after)}
            return JSONResponse({"detail": words.error(error)}, 429, wait)
        return asyncio.create_task(self._engine.outward.of(ASKING_AGENTS).ask(question))

    def _spoken(self, request: Request) -> Words:
        return self._words(request.headers.get("accept-language", ""))

    def _failed(self, request: Request, error: Exception) -> str:
        """Why an answer failed, for who asked."""
        words = self._spoken(request)
        if isinstance(error, ParlourError):
            return words.error(error)
        _log.error("A question from outside failed.\n%s", log_text(error))
        return words.error({"key": "unexpected"})

    async def answer(self, request: Request) -> Response:
        """The stream of an answer: `complete` with a list of one text, or `error`; it can be fetched once."""
        words = self._spoken(request)
        task = self._answers.pop(request.path_params["event"], None)
        if task is None:
            return PlainTextResponse(words.error(NotFoundError("There is no such event.", key="ask_gone")), 404)

        async def told() -> AsyncIterator[str]:
            try:
                while not (await asyncio.wait({task}, timeout=_ALIVE))[0]:
                    yield "event: heartbeat\ndata: null\n\n"
                yield f"event: complete\ndata: {json.dumps([task.result()], ensure_ascii=False)}\n\n"
            except Exception as error:
                yield f"event: error\ndata: {json.dumps(self._failed(request, error), ensure_ascii=False)}\n\n"
            finally:
                task.cancel()

        return StreamingResponse(told(), media_type="text/event-stream")


def _stop(task: asyncio.Task[str]) -> None:
    """End an answer that nobody can fetch any more: it would go on using the model."""
    task.cancel()
