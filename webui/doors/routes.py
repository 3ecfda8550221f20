"""The routes below `/v1`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.routing import Route, Router

from webui.doors import ag_ui, chat, embeddings, files, responses
from webui.doors.entry import Entry
from webui.doors.refusals import refusal
from webui.requests import TracedRequest

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from webui.context import WebContext

PLACE: Final = "/v1/"


def door_routes(context: WebContext) -> list[BaseRoute]:
    """All of them; each looks at the key by itself, and is a span in the trace that its caller names, if any."""
    engine = context.engine
    may = Entry(engine.doors).guarded
    store = files.FileRoutes(context.settings.max_upload_mb * 1024 * 1024, context.settings.home / "tmp")
    routes = [
        Route("/v1/models", may(chat.models, None), methods=["GET"]),
        Route("/v1/models/{model:path}", may(chat.model, None), methods=["GET"]),
        Route("/v1/chat/completions", may(chat.completions, "chat"), methods=["POST"]),
        Route("/v1/responses", may(responses.make, "chat"), methods=["POST"]),
        Route("/v1/responses", may(responses.upgrade, "chat"), methods=["GET"]),
        Route("/v1/responses/compact", may(responses.compact, "chat"), methods=["POST"]),
        Route("/v1/responses/{response_id}", may(responses.read, "chat"), methods=["GET"]),
        Route("/v1/responses/{response_id}", may(responses.delete, "chat"), methods=["DELETE"]),
        Route("/v1/responses/{response_id}/input_items", may(responses.input_items, "chat"), methods=["GET"]),
        Route("/v1/responses/{response_id}/cancel", may(responses.cancel, "chat"), methods=["POST"]),
        Route("/v1/ag-ui", may(ag_ui.run, "chat"), methods=["POST"]),
        Route("/v1/ag-ui/{model:path}", may(ag_ui.run, "chat"), methods=["POST"]),
        Route("/v1/embeddings", may(embeddings.embeddings, "embeddings"), methods=["POST"]),
        Route("/v1/files", may(store.add, "files"), methods=["POST"]),
        Route("/v1/files", may(store.all, "files"), methods=["GET"]),
        Route("/v1/files/{file_id}", may(store.one, "files"), methods=["GET"]),
        Route("/v1/files/{file_id}", may(store.delete, "files"), methods=["DELETE"]),
        Route("/v1/files/{file_id}/content", may(store.content, "files"), methods=["GET"]),
        Route("/v1/{rest:path}", _nothing, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ]
    for route in routes:
        route.app = TracedRequest(route.app, route.path.replace(":path", ""))
    return [*routes]


class DoorsFirst:
    """Gives what programs ask to their routes, past what a page's framework puts before its own.

    Args:
        app: The application; its routes below `/v1` are those of programs.
    """

    def __init__(self, app: Starlette) -> None:
        self.app: ASGIApp = app
        doors = [one for one in app.routes if isinstance(one, Route) and one.path.startswith(PLACE)]
        self._doors = Router(doors, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        is_asked = scope["type"] == "http" and scope["path"].startswith(PLACE)
        await (self._doors if is_asked else self.app)(scope, receive, send)


async def _nothing(request: Request) -> Response:
    said = f"There is no {request.method} {request.url.path} here."
    return refusal(404, said, "unknown_url")
