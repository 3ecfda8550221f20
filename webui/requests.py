"""Requests as spans of a trace, by OpenTelemetry's conventions for servers of HTTP: what is done for one lies in it."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.datastructures import Headers

from core.observing import begun, is_traced

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from contextlib import AbstractContextManager

    import gradio as gr
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from core.observing import Span

_JOIN: Final = "/gradio_api/queue/join"
_ASKING: Final = frozenset(
    {
        "starter",
        "edit",
        "rewrite",
        "regenerate",
        "continue",
        "sendqueued",
        "retry",
        "reread",
        "allow",
        "rerun",
        "answer",
    }
)
"""What begins a reply on the bus, or goes on with one; the rest would be spans without anything in them."""


class TracedRequest:
    """Makes a span of each request to a route, from its first byte to the last of its answer.

    Args:
        app: Answers the route.
        route: Its path, with the names of its parameters.
    """

    def __init__(self, app: ASGIApp, route: str) -> None:
        self._app, self._route = app, route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; where nobody is told of spans, that is all."""
        if scope["type"] != "http" or not is_traced():
            await self._app(scope, receive, send)
            return
        place = {"path": scope["path"], "scheme": scope["scheme"]}
        made = _begun(scope["method"], self._route, Headers(scope=scope), place)
        if made is None:
            await self._app(scope, receive, send)
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                _answered(made, message["status"])
            await send(message)

        with _lasting(made):
            await self._app(scope, receive, told)


def asked_on_page(request: gr.Request, message: str | None = None) -> AbstractContextManager[None]:
    """To the end of the block, what the page asked for is a span, and the reply that it begins lies in it.

    Gradio takes a question in one request, which it answers at once, and calls what does it later: the span is that
    request as its owner sees it, until the question is kept. Nobody need ask for it where nobody is told of spans.

    Args:
        message: What stands on the bus, where it is no question: `act` reads it.
    """
    if message is not None and not _asks(message):
        return nullcontext()
    asked: Any = request
    address = getattr(asked, "url", None)
    made = _begun("POST", _JOIN, asked.headers, {"path": _JOIN, "scheme": getattr(address, "scheme", "http")})
    if made is None:
        return nullcontext()
    _answered(made, 200)
    return _lasting(made)


def _asks(message: str) -> bool:
    try:
        asked = json.loads(message)
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(asked, dict) and str(cast("dict[str, Any]", asked).get("do")) in _ASKING


def _begun(method: str, route: str, headers: Mapping[str, str], place: Mapping[str, str]) -> Span | None:
    attributes = {
        "http.request.method": method,
        "http.route": route,
        "url.path": place["path"],
        "url.scheme": place["scheme"],
    }
    return begun(f"{method} {route}", attributes, side="server", within=headers.get("traceparent") or "")


def _answered(made: Span, status: int) -> None:
    made.set({"http.response.status_code": status})
    if status >= 500:  # what is the caller's fault is no error of a server
        made.fail(str(status))


@contextmanager
def _lasting(made: Span) -> Generator[None]:
    try:
        with made.current():
            yield
    except BaseException as error:
        made.fail_with(error)
        raise
    finally:
        made.end()
