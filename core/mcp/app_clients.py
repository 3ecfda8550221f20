"""Who a program is that wants to be let in: one that introduced itself here, or one whose own site describes it.

Nothing is kept of those that introduce themselves: what they said stands, signed, in the name that they are given
(RFC 7591, appendix A.5.2), so that nobody fills a database by introducing programs.
"""

from __future__ import annotations

import hmac
import json
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import SplitResult, urlsplit

import httpx2

from core.errors import ParlourError
from core.mcp.app_addresses import THIS_MACHINE
from core.mcp.web import guarded_client
from core.messages.invisible import plain_line
from core.net.addresses import Reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

METHODS: Final = ("none", "client_secret_post", "client_secret_basic")
_BEGINNING: Final = "app."
_LONGEST_NAME: Final = 60
_LONGEST_REDIRECT: Final = 500
_MOST_REDIRECTS: Final = 10
_LONGEST_SAID: Final = 1_500  # bytes: it all stands in an address
_LONGEST_ID: Final = 2_300
_LONGEST_DOCUMENT: Final = 64 * 1024
_MOST_DOCUMENTS: Final = 200
_FRESH: Final = (60.0, 300.0, 86_400.0)  # seconds: at least, where it does not say, at most
_AGE: Final = re.compile(r"max-age=(\d{1,9})")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]{1,60}")
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")  # it stands in a header of the page where a person agrees
# Schemes of nobody's program: browsers show, run or fetch what they name, or hand it to mail and telephone.
_NO_PROGRAMS: Final = frozenset(
    {"about", "blob", "chrome", "data", "file", "filesystem", "ftp", "intent", "javascript", "jar", "mailto", "sms"}
    | {"moz-extension", "resource", "tel", "vbscript", "view-source", "ws", "wss"}
)


@dataclass(frozen=True, slots=True)
class Client:
    """A program.

    Args:
        id: What it is known by.
        name: What it calls itself.
        redirects: Where it may be sent back to.
        method: How it proves who it is at the token's address, one of `METHODS`.
        site: The host that describes it; "" where it introduced itself.
    """

    id: str
    name: str
    redirects: tuple[str, ...]
    method: str = "none"
    site: str = ""

    def redirect(self, asked: str | None) -> str | None:
        """Where it is sent back to; `None` where that is none of its addresses, or it named none of several.

        At this machine the port is the program's to choose each time (RFC 8252, 7.3).
        """
        if asked is None:
            return self.redirects[0] if len(self.redirects) == 1 else None
        return asked if any(_is_same(known, asked) for known in self.redirects) else None


class Clients:
    """All programs that there may be.

    Args:
        secret: The installation's; signs what programs say of themselves.
        reach: How far a program's own site may be asked.
    """

    def __init__(self, secret: str, reach: Reach = Reach()) -> None:  # noqa: B008 - frozen
        self._key = hmac.digest(secret.encode(), b"parlour.apps", "sha256")
        self.reach = reach
        self._read: OrderedDict[str, tuple[Client, float]] = OrderedDict()

    async def get(self, client_id: str) -> Client:
        """The program of that name.

        Raises:
            ParlourError: key `app_unknown`, or `app_site`: its own site does not describe it.
        """
        if client_id.startswith("https://"):
            return await self._described(client_id)
        return self._introduced(client_id)

    def introduce(self, name: str, redirects: Sequence[str], method: str) -> Client:
        """A program that says who it is.

        Raises:
            ParlourError: key `app_redirect`: it cannot be sent back there; `app_says`: it says too much.
        """
        called, checked = _named(name), _checked(redirects)
        said = {"n": called, "r": checked, "m": method}
        raw = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
        if len(raw) > _LONGEST_SAID:
            hint = f"Name fewer or shorter addresses: all of it may have {_LONGEST_SAID} bytes."
            raise ParlourError("The program says too much of itself.", hint=hint, key="app_says")
        body = _letters(raw)
        return Client(f"{_BEGINNING}{body}.{self._mark(body)}", called, tuple(checked), method)

    def secret_of(self, client: Client) -> str | None:
        """What a program proves by that it is the one that introduced itself; `None` for one that proves nothing."""
        return None if client.method == "none" else _letters(self._digest(f"secret {client.id}"))

    def _introduced(self, client_id: str) -> Client:
        parts = client_id.split(".")
        if len(client_id) > _LONGEST_ID or len(parts) != 3 or f"{parts[0]}." != _BEGINNING:
            raise _unknown()
        if not hmac.compare_digest(self._mark(parts[1]).encode(), parts[2].encode()):
            raise _unknown()
        said: dict[str, Any] = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return Client(client_id, said["n"], tuple(said["r"]), said["m"])

    async def _described(self, address: str) -> Client:
        known, until = self._read.get(address, (None, 0.0))
        if known is not None and time.monotonic() < until:
            return known
        host = _document_host(address)
        try:
            async with guarded_client(self.reach) as http:
                answer = await http.get(address, headers={"accept": "application/json"})
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _undescribed(f"{host} did not answer") from error
        if answer.status_code != 200 or len(answer.content) > _LONGEST_DOCUMENT:
            raise _undescribed(f"{host} has no such document")
        try:
            found: object = json.loads(answer.content)
        except (ValueError, RecursionError) as error:
            raise _undescribed("it is no JSON") from error
        client = _of_document(address, host, cast("Mapping[str, Any]", found) if isinstance(found, dict) else {})
        self._remember(address, client, _fresh_for(answer.headers.get("cache-control", "")))
        return client

    def _remember(self, address: str, client: Client, seconds: float) -> None:
        self._read[address] = (client, time.monotonic() + seconds)
        self._read.move_to_end(address)
        while len(self._read) > _MOST_DOCUMENTS:
            self._read.popitem(last=False)

    def _mark(self, body: str) -> str:
        return _letters(self._digest(f"id {body}"))

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode("utf-8", "replace"), "sha256")


def back_of(redirect: str) -> str:
    """Where an address leads back to, as a person reads it: a host, or a scheme such as `cursor:`.

    Raises:
        ParlourError: key `app_redirect`: nobody may be sent there.
    """
    try:
        parts = urlsplit(redirect)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _no_way_back() from None
    whole = len(redirect) <= _LONGEST_REDIRECT and redirect.isascii() and redirect.isprintable() and " " not in redirect
    if not whole or "#" in redirect or "\\" in redirect or "@" in parts.netloc:
        raise _no_way_back()
    scheme = parts.scheme
    if scheme in {"http", "https"}:
        if not (_HOST.fullmatch(host) or ":" in host) or (scheme == "http" and host not in THIS_MACHINE):
            raise _no_way_back()
        shown = f"[{host}]" if ":" in host else host
        return shown if port is None or host in THIS_MACHINE else f"{shown}:{port}"
    if _SCHEME.fullmatch(scheme) is None or scheme in _NO_PROGRAMS:
        raise _no_way_back()
    return f"{scheme}:"


def _checked(redirects: Iterable[str]) -> list[str]:
    given = list(dict.fromkeys(redirects))
    for one in given:
        back_of(one)
    if not 0 < len(given) <= _MOST_REDIRECTS:
        raise _no_way_back()
    return given


def _of_document(address: str, host: str, said: Mapping[str, Any]) -> Client:
    if said.get("client_id") != address:
        raise _undescribed("it describes another program")
    name, redirects = said.get("client_name"), said.get("redirect_uris")
    if not isinstance(name, str) or not isinstance(redirects, list):
        raise _undescribed("it names no client_name, or no redirect_uris")
    each = cast("list[object]", redirects)
    if not all(isinstance(one, str) for one in each):
        raise _undescribed("it names no redirect_uris")
    if said.get("token_endpoint_auth_method", "none") != "none":
        raise _undescribed("it would prove who it is in a way that is not known here")
    return Client(address, _named(name), tuple(_checked(map(str, each))), "none", host)


def _document_host(address: str) -> str:
    """The host of a document's address. Raises ParlourError."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise _unknown() from None
    dots = any(part in {".", ".."} for part in parts.path.split("/"))
    plain = address.isascii() and address.isprintable() and " " not in address and len(address) <= _LONGEST_REDIRECT
    if not (plain and host and len(parts.path) > 1) or dots or "#" in address or "@" in parts.netloc:
        raise _unknown()
    return host


def _is_same(known: str, asked: str) -> bool:
    if known == asked:
        return True
    try:
        back_of(asked)
    except ParlourError:
        return False
    one, other = urlsplit(known), urlsplit(asked)
    here = (one.scheme, other.scheme) == ("http", "http") and one.hostname in THIS_MACHINE
    return here and _without_port(one) == _without_port(other) and other.port != 0


def _without_port(parts: SplitResult) -> tuple[str | None, str, str]:
    return parts.hostname, parts.path or "/", parts.query


def _fresh_for(said: str) -> float:
    least, usual, most = _FRESH
    found = _AGE.search(said)
    return min(max(float(found[1]), least), most) if found is not None else usual


def _named(name: str) -> str:
    return plain_line(name, " ").strip()[:_LONGEST_NAME] or "?"


def _letters(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def _unknown() -> ParlourError:
    hint = "Let the program begin anew, so that it introduces itself again."
    return ParlourError("This program is not known here.", hint=hint, key="app_unknown")


def _undescribed(why: str) -> ParlourError:
    hint = "Tell who makes it."
    return ParlourError(f"The program's own site does not describe it: {why}.", hint=hint, key="app_site")


def _no_way_back() -> ParlourError:
    hint = "A program is sent back to an address that it named: HTTPS, this machine, or a scheme of its own."
    return ParlourError("Nobody may be sent to the address that the program names.", hint=hint, key="app_redirect")
