"""On a Space with ZeroGPU: whose time a GPU takes, as the platform says it with each request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.llm.visitors import TOKEN_HEADER, came

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class VisitorMiddleware:
    """Notes the token of a request for whoever sent it, `scope["owner"]`; what is done for it is done with that."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            tokens = [value for name, value in scope["headers"] if name == TOKEN_HEADER]
            if len(tokens) == 1:
                came(scope.get("owner") or "", tokens[0].decode("latin-1"))
        await self.app(scope, receive, send)
