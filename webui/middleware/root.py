"""A path below the root of a site, for who has one name for several programs: `https://example.com/chat/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.mcp.app_addresses import ABOUT_RESOURCE, ABOUT_SERVER
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
            known = next((one for one in (ABOUT_RESOURCE, ABOUT_SERVER) if _is_of(scope, one, self._path)), "")
            inside = known + scope["path"][len(known) + len(self._path) :] if known else scope["path"]
            await self.app({**scope, "path": inside}, receive, send)


def _is_of(scope: Scope, known: str, path: str) -> bool:
    """Whether it is a document that stands at the root of the site with our path after it (RFC 8414, 3.1)."""
    return f"{scope['path']}/".startswith(f"{known}{path}/")
