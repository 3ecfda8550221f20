"""Who is asking: the one local owner, or a browser known by a signed cookie.

The address that Parlour is bound to decides which, never what a request says. On a loopback address only
programs of this machine can ask, so everything belongs to `LOCAL_OWNER`. On any other address each browser is an
owner of its own until there are accounts.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from ipaddress import ip_address

from itsdangerous import BadSignature, TimestampSigner
from starlette.requests import cookie_parser

from core.storage.base import LOCAL_OWNER

_YEAR = 365 * 24 * 3600


class Owners:
    """Finds the owner of a request, and makes new ones.

    Args:
        secret: Signs the cookies; also part of their name, so that two servers on one host keep apart.
        local: Everything belongs to the one local owner, and cookies are not looked at.
        framed: The page lives in a frame of another site, as on a Space; its cookie must say so.
    """

    def __init__(self, secret: str, *, local: bool, framed: bool = False) -> None:
        self.local = local
        self.cookie_name = f"parlour-{sha256(secret.encode()).hexdigest()[:8]}"
        self._framed = framed
        self._signer = TimestampSigner(secret, salt="parlour.owner", digest_method=sha256)

    def of(self, cookies: str) -> str | None:
        """The owner named by a `Cookie` header, or `None` where none is, or its signature is wrong."""
        if self.local:
            return LOCAL_OWNER
        # Not `SimpleCookie`: it gives up at the first cookie that it finds strange, and other programs of this host
        # set such ones; their readers would be new owners each time.
        value = cookie_parser(cookies).get(self.cookie_name, "")
        try:
            return self._signer.unsign(value, max_age=_YEAR).decode("ascii")
        except (BadSignature, UnicodeDecodeError):
            return None

    def new(self) -> str:
        """A new owner's id."""
        return f"b-{secrets.token_urlsafe(16)}"

    def cookie(self, owner: str, *, https: bool) -> str:
        """The `Set-Cookie` header that makes a browser this owner."""
        value = self._signer.sign(owner).decode("ascii")
        parts = [f"{self.cookie_name}={value}", "Path=/", f"Max-Age={_YEAR}", "HttpOnly"]
        if self._framed:
            parts += ["SameSite=None", "Secure", "Partitioned"]
        else:
            parts += ["SameSite=Lax", *(["Secure"] if https else [])]
        return "; ".join(parts)


class Hosts:
    """Which names a request may use for this server; others are refused, so that no foreign page can ask.

    Args:
        host: The address that Parlour is bound to.
        allowed: Further names, without a port: those of a proxy or a Space.
        any_address: Addresses in figures will do as well.
    """

    def __init__(self, host: str, allowed: tuple[str, ...] = (), *, any_address: bool) -> None:
        bound = host.strip("[]").lower()
        self._named = frozenset(name.lower().rstrip(".") for name in allowed if name)
        self._names = self._named | {"localhost", "127.0.0.1", "::1", bound}
        self._any_address = any_address

    def knows(self, host: str) -> bool:
        """Whether a `Host` header names this server.

        Bound to a network, an address in figures is fine as well: a page of another site can make its own name
        point here, but never an address.
        """
        name = _name(host)
        return name in self._names or (self._any_address and _is_address(name))

    def trusts(self, origin: str, host: str) -> bool:
        """Whether a page from `origin` may ask: one of this very server, or of a name that a setting allows."""
        scheme, _, place = origin.partition("://")
        if scheme not in {"http", "https"}:
            return False
        default = ":443" if scheme == "https" else ":80"
        same = place.lower().removesuffix(default) == host.lower().removesuffix(default)
        return same or _name(place) in self._named


def _name(host: str) -> str:
    """A host without its port, brackets and last dot."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
