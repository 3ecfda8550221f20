"""Where one comes after signing in: to the page that a program waits for, or back to one's conversation."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers

from core.mcp.app_addresses import AUTHORIZE

if TYPE_CHECKING:
    from starlette.types import Scope

    from webui.auth import Cookies

_KIND: Final = "-then"
_LASTS: Final = 600
_LONGEST: Final = 3_600  # letters of a cookie
_TALK: Final = re.compile(r"\?c=[\w-]{1,64}\Z", re.ASCII)


def is_asked(scope: Scope) -> bool:
    """Whether a request is for that page."""
    return scope["path"] == AUTHORIZE and scope["method"] == "GET"


def remembering(scope: Scope, cookies: Cookies) -> list[tuple[str, str]]:
    """The header that keeps it in the browser: what was asked, or which conversation was.

    There is none where nothing was, or where it is too long for a cookie.
    """
    kept: bytes = scope["query_string"] if is_asked(scope) else _talk(scope)
    value = urlsafe_b64encode(kept).decode("ascii")
    if not 0 < len(value) <= _LONGEST:
        return []
    return [("set-cookie", cookies.header(value, _KIND, https=scope["scheme"] == "https", seconds=_LASTS))]


def _talk(scope: Scope) -> bytes:
    """The conversation that an address of the page names, as a query with its question mark."""
    if scope["path"] != "/":
        return b""
    named = parse_qs(scope["query_string"].decode("latin-1")).get("c", [""])[0]
    return f"?c={named}".encode("ascii") if _TALK.match(f"?c={named}") else b""


def remembered(scope: Scope, cookies: Cookies) -> str:
    """The page, as a relative address below the root; "" where nothing is kept. It never leads anywhere else."""
    for value in cookies.values(Headers(scope=scope).get("cookie", ""), _KIND):
        try:
            query = urlsafe_b64decode(value).decode("ascii")
        except ValueError:
            continue
        if _TALK.match(query):
            return query
        if query.isprintable() and not set(query) & set(' "<>\\'):
            return page_of(query)
    return ""


def forgetting(scope: Scope, cookies: Cookies) -> str:
    """The header that takes it away again."""
    return cookies.header("", _KIND, https=scope["scheme"] == "https", seconds=0)


def page_of(query: str) -> str:
    """The page with a query, as a relative address below the root."""
    return f"{AUTHORIZE.removeprefix('/')}?{query}"
