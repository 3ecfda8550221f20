"""Addresses of places within the page, and the language that a reader chose in this browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from starlette.datastructures import Headers

from webui.words import LANGUAGES

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from webui.auth import Cookies

SECTIONS: Final = (
    *("general", "you", "models", "tools", "libraries", "programs", "data", "notes", "keyboard", "about"),
)
"""The parts of the settings: each has an address, `/settings/<part>`."""
_PLACE = re.compile(r"/settings(?:/[^/]{0,200})?")  # of a part that there is none of, the page says so itself
_NAME = re.compile(r"[a-z0-9-]{1,40}")
_KIND = "-lang"


class PlacesMiddleware:
    """Serves the page itself at the addresses of its places, in the language that its reader chose.

    What is inside finds in the scope: `base`, the way from the address to the page's root; `place`, the last part of
    the address of a place; `language`, the code that was chosen, "" for the browser's own; and `remember_language`,
    which makes the header that keeps another choice.

    Args:
        cookies: How cookies of this server are named and written.
    """

    def __init__(self, app: ASGIApp, cookies: Cookies) -> None:
        self.app = app
        self._cookies = cookies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        chosen = self._chosen(Headers(scope=scope).get("cookie", ""))
        https = scope["scheme"] == "https"

        def remember(language: str) -> str:
            return self._cookies.header(language, _KIND, https=https)

        told: dict[str, Any] = {"base": "./", "language": chosen, "remember_language": remember}
        if chosen:
            others = [(name, value) for name, value in scope["headers"] if name != b"accept-language"]
            told["headers"] = [*others, (b"accept-language", chosen.encode())]
        if _PLACE.fullmatch(scope["path"]) and scope["method"] in {"GET", "HEAD"}:
            above, _, place = scope["path"].rpartition("/")
            told |= {
                "base": "../" if above else "./",
                "place": place if _NAME.fullmatch(place) else "",
                "path": "/",
                "raw_path": b"/",
            }
        await self.app({**scope, **told}, receive, send)

    def _chosen(self, cookies: str) -> str:
        return next((one for one in self._cookies.values(cookies, _KIND) if one in LANGUAGES), "")
