"""How the cookies of this server are named, read and written."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = 400 * 24 * 3600  # the longest that browsers keep one; each visit begins it anew
_HOST = "__Host-"


class Cookies:
    """Names and attributes.

    Args:
        secret: Part of the names, so that two servers on one host keep apart.
        framed: The page lives in a frame of another site, as on a Space; its cookies must say so.
    """

    def __init__(self, secret: str, *, framed: bool = False) -> None:
        self.name = f"parlour-{sha256(secret.encode()).hexdigest()[:8]}"
        self._framed = framed

    def values(self, cookies: str, kind: str = "") -> Iterator[str]:
        """What a `Cookie` header holds of a kind, the safest first.

        A cookie may be there more than once, for a program at another port of this host can set one of the same name;
        it cannot set one whose name begins with `__Host-`, which browsers take over HTTPS from this very host alone.
        """
        # Not `SimpleCookie`: it gives up at the first cookie that it finds strange, and other programs of this host
        # set such ones; their readers would be new owners each time.
        pairs = [(name.strip(), value.strip()) for name, _, value in (one.partition("=") for one in cookies.split(";"))]
        for wanted in (f"{_HOST}{self.name}{kind}", f"{self.name}{kind}"):
            yield from (value for name, value in pairs if name == wanted)

    def header(self, value: str, kind: str = "", *, https: bool) -> str:
        """The `Set-Cookie` header for a value of a kind."""
        secure = https or self._framed
        parts = [f"{_HOST if secure else ''}{self.name}{kind}={value}", "Path=/", f"Max-Age={_SECONDS}", "HttpOnly"]
        if self._framed:
            parts += ["SameSite=None", "Secure", "Partitioned"]
        else:
            parts += ["SameSite=Lax", *(["Secure"] if secure else [])]
        return "; ".join(parts)
