"""What a program asked while the person whom it asked for signs in: the page where they agree comes after that."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers

from core.mcp.app_addresses import AUTHORIZE

if TYPE_CHECKING:
    from starlette.types import Scope

    from webui.auth import Cookies

_KIND: Final = "-then"
_LASTS: Final = 600
_LONGEST: Final = 3_600  # letters of a cookie


def is_asked(scope: Scope) -> bool:
    """Whether a request is for that page."""
    return scope["path"] == AUTHORIZE and scope["method"] == "GET"


def remembering(scope: Scope, cookies: Cookies) -> list[tuple[str, str]]:
    """The header that keeps what was asked, in the browser; none where it is too long for a cookie."""
    value = urlsafe_b64encode(scope["query_string"]).decode("ascii")
    if not is_asked(scope) or not 0 < len(value) <= _LONGEST:
        return []
    return [("set-cookie", cookies.header(value, _KIND, https=scope["scheme"] == "https", seconds=_LASTS))]


def remembered(scope: Scope, cookies: Cookies) -> str:
    """The page, as a relative address below the root; "" where nothing is kept. It never leads anywhere else."""
    for value in cookies.values(Headers(scope=scope).get("cookie", ""), _KIND):
        try:
            query = urlsafe_b64decode(value).decode("ascii")
        except ValueError:
            continue
        if query.isprintable() and not set(query) & set(' "<>\\'):
            return page_of(query)
    return ""


def forgetting(scope: Scope, cookies: Cookies) -> str:
    """The header that takes it away again."""
    return cookies.header("", _KIND, https=scope["scheme"] == "https", seconds=0)


def page_of(query: str) -> str:
    """The page with a query, as a relative address below the root."""
    return f"{AUTHORIZE.removeprefix('/')}?{query}"
