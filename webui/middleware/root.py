"""A path below the root of a site, for who has one name for several programs: `https://example.com/chat/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webui.middleware.answers import answer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class RootMiddleware:
    """Takes the path off again, where the proxy in front has left it; what is inside knows the root alone.

    Args:
        path: Begins with `/` and does not end so; "" for the root itself.
    """

    def __init__(self, app: ASGIApp, path: str) -> None:
        self.app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or not self._path:
            await self.app(scope, receive, send)
        elif scope["path"] == self._path:  # links of the page are relative to the folder
            query = scope["query_string"].decode("latin-1")
            place = f"{self._path}/{'?' if query else ''}{query}"
            await answer(send, 308, "", headers=[("location", place), ("cache-control", "no-store")])
        elif scope["path"].startswith(f"{self._path}/"):
            inside = scope["path"][len(self._path) :]
            raw = scope.get("raw_path") or b""
            prefix = self._path.encode()
            raw = raw[len(prefix) :] if raw.startswith(prefix) else inside.encode()
            await self.app({**scope, "path": inside, "raw_path": raw}, receive, send)
        else:
            await self.app(scope, receive, send)
