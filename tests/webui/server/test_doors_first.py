"""What programs ask goes to their routes at once, and all else to the application."""

from __future__ import annotations

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from webui.doors.routes import DoorsFirst

pytestmark = pytest.mark.anyio


async def test_what_programs_ask_passes_nothing_that_stands_before_the_routes_of_the_page() -> None:
    async def said(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.url.path)

    passed: list[str] = []

    class Noting:
        def __init__(self, app: ASGIApp) -> None:
            self.app = app

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            passed.append(scope["path"])
            await self.app(scope, receive, send)

    page = Starlette(
        routes=[Route("/v1/models", said), Route("/v1/{rest:path}", said), Route("/v1", said)],
        middleware=[Middleware(Noting)],
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(DoorsFirst(page)), base_url="http://a") as client:
        for path in ("/v1/models", "/v1/other/one", "/v1"):
            assert (await client.get(path)).text == path
        assert (await client.get("/elsewhere")).status_code == 404
        assert (await client.post("/v1/models")).status_code == 405
    assert passed == ["/v1", "/elsewhere"]
