"""Authentication: the one local owner behind a token, or a browser known by a signed cookie.

On a loopback address there is one owner: whoever comes by a name of this machine, through no proxy, and has shown the
token (`PageToken`). Neither an address nor a header proves that: other accounts of the machine reach the port as
well, and a proxy or a tunnel may pass on what the internet asks without adding a header. On any other address, and for
whoever comes by an allowed name, each browser is an owner of its own until there are accounts.
"""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING

from itsdangerous import BadSignature, Signer, TimestampSigner

from core.storage.base import LOCAL_OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.settings import Settings

_HOST_HEADER = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::\d{1,5})?")
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


class Owners:
    """Finds the owner of a request, and makes new ones.

    Args:
        secret: Signs the cookies; also part of their name, so that two servers on one host keep apart.
        local: There is one local owner; cookies are looked at only for visitors.
        framed: The page lives in a frame of another site, as on a Space; its cookie must say so.
        path: Under which the page is shown; "" for the root.
    """

    def __init__(self, secret: str, *, local: bool, framed: bool = False, path: str = "") -> None:
        self.local = local
        self.cookies = Cookies(secret, framed=framed, path=path)
        self._signer = TimestampSigner(secret, salt="parlour.owner", digest_method=sha256)
        self._in_pages = TimestampSigner(secret, salt="parlour.visitor", digest_method=sha256) if framed else None

    def written(self, owner: str) -> str:
        """What a page in a frame says with each request where its browser keeps no cookie; "" where none is framed."""
        return self._in_pages.sign(owner).decode("ascii") if self._in_pages is not None else ""

    def named(self, value: str) -> str | None:
        """The owner that a page in a frame names; `None` where it names none."""
        return (_unsigned(self._in_pages, value) or None) if self._in_pages is not None and value else None

    @property
    def cookie_name(self) -> str:
        """The name of the cookie, without what HTTPS puts before it."""
        return self.cookies.name

    def of(self, cookies: str, *, visitor: bool = False) -> str | None:
        """The owner of a request that may be answered.

        Args:
            cookies: Its `Cookie` header.
            visitor: It may not be the local owner's, wherever Parlour is bound.

        Returns:
            The owner; `None` where no cookie names one, or none with a good signature.
        """
        if self.local and not visitor:
            return LOCAL_OWNER
        read = (self._read(value) for value in self.cookies.values(cookies))
        return next((owner for owner in read if owner), None)

    def unread(self, cookies: str) -> str:
        """The owner's cookie that is there and names nobody; "" where there is none, or a good one beside it."""
        values = [value for value in self.cookies.values(cookies) if value]
        return "" if not values or any(self._read(value) for value in values) else values[0]

    def new(self) -> str:
        """A new owner's id."""
        return f"b-{secrets.token_urlsafe(16)}"

    def cookie(self, owner: str, *, https: bool) -> str:
        """The `Set-Cookie` header that makes a browser this owner."""
        return self.cookies.header(self._signer.sign(owner).decode("ascii"), https=https)

    def set_aside(self, value: str, *, https: bool) -> str:
        """The `Set-Cookie` header that keeps a value that could not be read under another name, beside all others."""
        return self.cookies.header(value, f"-unread-{sha256(value.encode()).hexdigest()[:8]}", https=https)

    def _read(self, value: str) -> str:
        # The signature alone counts. Its time would make strangers of whoever has a cookie from before the clock was
        # set back, or from long ago.
        return _unsigned(self._signer, value)


def _unsigned(signer: TimestampSigner, value: str) -> str:
    """The owner whose name was signed; "" for any other value."""
    try:
        owner = signer.unsign(value).decode("ascii")
    except (BadSignature, ValueError):
        return ""
    return "" if owner == LOCAL_OWNER else owner  # nothing signed makes anybody the owner of this machine


def owners_of(settings: Settings, secret: str) -> Owners:
    """The owners and cookies of an installation; all that write cookies do so alike, else one would not read another's.

    Args:
        secret: Signs the cookies.
    """
    return Owners(secret, local=settings.has_local_owner, framed=settings.is_framed, path=settings.root_path)


class Hosts:
    """Which names a request may use for this server; others are refused, so that no foreign page can ask.

    Args:
        host: The address that Parlour is bound to.
        allowed: Further names, without a port: those of a proxy or a Space.
        any_address: Addresses in figures will do as well.
    """

    def __init__(self, host: str, allowed: tuple[str, ...] = (), *, any_address: bool) -> None:
        bound = host.strip("[]").lower()
        self._machine = _THIS_MACHINE | {bound}
        self._named = frozenset(name.lower().rstrip(".") for name in allowed if name) - _THIS_MACHINE
        self._names = self._named | self._machine
        self._any_address = any_address

    def knows(self, host: str) -> bool:
        """Whether a `Host` header names this server.

        Bound to a network, an address in figures is fine as well: a page of another site can make its own name
        point here, but never an address.
        """
        name = host_of(host)
        return name in self._names or (self._any_address and _is_address(name))

    def is_this_machine(self, host: str) -> bool:
        """Whether a `Host` header is a name of this machine, and not one that a setting allows besides."""
        name = host_of(host)
        return name in self._machine and name not in self._named

    def trusts(self, origin: str, host: str) -> bool:
        """Whether a page from `origin` may ask: one of this very server, or of a name that a setting allows."""
        scheme, _, place = origin.partition("://")
        if scheme not in {"http", "https"}:
            return False
        return self.is_same(origin, host) or host_of(place) in self._named

    def is_same(self, origin: str, host: str) -> bool:
        """Whether a page from `origin` is one of the very server that a `Host` header names."""
        scheme, _, place = origin.partition("://")
        default = ":443" if scheme == "https" else ":80"
        return place.lower().removesuffix(default) == host.lower().removesuffix(default)


def host_of(host: str) -> str:
    """A host without its port, brackets and last dot; "" where it is not written as one, for it goes into the page."""
    found = _HOST_HEADER.fullmatch(host)
    return (found[1] or found[2]).lower().rstrip(".") if found else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


_SECONDS = 400 * 24 * 3600  # the longest that browsers keep one; each visit begins it anew
_HOST_PREFIX = "__Host-"
_SECURE_PREFIX = "__Secure-"  # as safe from the network; one for the whole host must not name a path


class Cookies:
    """Names and attributes.

    Args:
        secret: Part of the names, so that two servers on one host keep apart.
        framed: The page lives in a frame of another site, as on a Space; its cookies must say so.
        path: Under which the page is shown: other programs of the host do not get its cookies.
    """

    def __init__(self, secret: str, *, framed: bool = False, path: str = "") -> None:
        self.name = f"parlour-{sha256(secret.encode()).hexdigest()[:8]}"
        self._framed = framed
        self._path = f"{path}/"
        self._prefix = _SECURE_PREFIX if path else _HOST_PREFIX

    def values(self, cookies: str, kind: str = "") -> Iterator[str]:
        """What a `Cookie` header holds of a kind, the safest first.

        A cookie may be there more than once, for a program at another port of this host can set one of the same name;
        it cannot set one whose name begins with `__Host-`, which browsers take over HTTPS from this very host alone.
        """
        # Not `SimpleCookie`: it gives up at the first cookie that it finds strange, and other programs of this host
        # set such ones; their readers would be new owners each time.
        pairs = [(name.strip(), value.strip()) for name, _, value in (one.partition("=") for one in cookies.split(";"))]
        for wanted in (f"{self._prefix}{self.name}{kind}", f"{self.name}{kind}"):
            yield from (value for name, value in pairs if name == wanted)

    def header(self, value: str, kind: str = "", *, https: bool, seconds: int = _SECONDS) -> str:
        """The `Set-Cookie` header for a value of a kind, kept for `seconds`; 0 takes it away."""
        secure = https or self._framed
        parts = [
            f"{self._prefix if secure else ''}{self.name}{kind}={value}",
            f"Path={self._path}",
            f"Max-Age={seconds}",
            "HttpOnly",
        ]
        if self._framed:
            parts += ["SameSite=None", "Secure", "Partitioned"]
        else:
            parts += ["SameSite=Lax", *(["Secure"] if secure else [])]
        return "; ".join(parts)


class PageToken:
    """A token and the proofs of having shown it.

    Args:
        secret: Signs the proofs.
        token: What has to be shown; "" where nobody is asked.
        for_everybody: Visitors are asked for it too, not the owner of this machine alone.
        cookies: How cookies of this server are named and written.
    """

    def __init__(self, secret: str, token: str = "", *, for_everybody: bool = False, cookies: Cookies) -> None:
        self._token = token
        self.for_everybody = bool(token) and for_everybody
        self._cookies = cookies
        # Signed for this very token: with another one, no proof of the first counts any more.
        salt = f"parlour.token.{sha256(token.encode()).hexdigest()}"
        self._signer = Signer(secret, salt=salt, digest_method=sha256)

    @property
    def asked(self) -> bool:
        """Whether there is one."""
        return bool(self._token)

    def matches(self, typed: str) -> bool:
        """Whether this is the token. What surrounds it is not looked at: it comes from a terminal, by copying."""
        given = typed.strip().encode("utf-8", "replace")
        return self.asked and hmac.compare_digest(given, self._token.encode())

    def shown_by(self, cookies: str) -> bool:
        """Whether a `Cookie` header holds a proof."""
        return any(self._proves(value) for value in self._cookies.values(cookies, "-key"))

    def proof(self, *, https: bool) -> str:
        """The `Set-Cookie` header for a browser that has shown the token."""
        value = self._signer.sign(secrets.token_urlsafe(16)).decode("ascii")
        return self._cookies.header(value, "-key", https=https)

    def _proves(self, value: str) -> bool:
        try:
            self._signer.unsign(value)
        except BadSignature:
            return False
        return True
