"""Keys and OAuth 2 tokens for a service: how it knows who asks, where keys go, and how they stay out of all else."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast
from urllib.parse import quote, quote_plus, urlencode, urljoin, urlsplit

from core.errors import SettingsError, ToolError
from core.net.fetcher import FetchLimits, Outgoing, body_of, checked, connected, sent
from core.tools.openapi.document import node, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from core.net.addresses import Reach
    from core.tools.openapi.document import Document, Node
    from core.tools.openapi.operations import Operation


_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_WRONG: Final = re.compile(r"[^\x20-\x7e]")
_SHORTEST: Final = 4  # letters: shorter values would take whole answers apart
HIDDEN: Final = "…"
_NO_SECRETS: Final = frozenset({"username", "client_id", "token_url", "scope"})


@dataclass(frozen=True, slots=True)
class Placed:
    """What goes with a request. Nothing of it is ever shown."""

    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    query: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    cookies: dict[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one service.

    Args:
        document: Which schemes there are.
        given: `{"bearer": token}`, `{"basic": {"username": …, "password": …}}`, `{"header": {name: value}}`,
            `{"query": {name: value}}`, `{"cookie": {name: value}}`, or by the name that the document gives a scheme;
            what gets a token first is said in `tokens`.
        besides: More that nobody may see.
    """

    document: Document
    given: Mapping[str, Any] = field(repr=False)
    besides: frozenset[str] = field(default=frozenset(), repr=False)

    def placed(self, operation: Operation) -> Placed:
        """What goes with a call of this operation.

        Raises:
            SettingsError: A value is missing or cannot be sent; no value is in the message.
        """
        placed = Placed()
        for name, value in self.given.items():
            scheme = self.scheme(name)
            if not scheme:
                _place_plainly(placed, name, value)
            elif not operation.security or any(name in names for names in operation.security):
                _place_by_scheme(placed, name, scheme, value)
        return placed

    def check(self, operation: Operation) -> None:
        """Look whether this operation has what it needs.

        Raises:
            SettingsError: Something is missing, or cannot be sent.
        """
        placed = self.placed(operation)
        plainly = any(not self.scheme(name) for name in self.given)
        given = set(self.given)
        if not operation.security or plainly or any(names <= given for names in operation.security):
            return
        if placed.headers or placed.query or placed.cookies:
            return
        needed = ", ".join(sorted(min(operation.security, key=len)))
        raise SettingsError(
            f"{self.document.title} needs credentials ({needed}).",
            hint="Enter them with the address of the service.",
            key="openapi_credentials",
            needed=needed,
        )

    def hidden(self, text: str) -> str:
        """The text without any key in it, however it is written there."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text

    @property
    def secrets(self) -> frozenset[str]:
        """Whatever must not be seen, in every spelling."""
        found = set(self.besides)
        for value in self.given.values():
            parts = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {"": value}
            found.update(str(part) for name, part in parts.items() if name not in _NO_SECRETS)
            if "password" in parts:
                found.add(_pair(parts))
        found = {one for one in found if len(one) >= _SHORTEST}
        return frozenset(found | {quote(one, "") for one in found} | {quote_plus(one) for one in found})

    def scheme(self, name: str) -> Mapping[str, Any]:
        """What the document says of a security scheme; empty where it has none of that name."""
        schemes = node(node(self.document.root.get("components")).get("securitySchemes"))
        return self.document.resolved(schemes.get(name))


def _place_plainly(placed: Placed, name: str, value: Any) -> None:
    match name:
        case "bearer":
            placed.headers["authorization"] = f"Bearer {_fit(value)}"
        case "basic":
            placed.headers["authorization"] = f"Basic {_pair(node(value))}"
        case "header":
            placed.headers.update({_header_name(key): _fit(each) for key, each in node(value).items()})
        case "query":
            placed.query.update({str(key): _fit(each) for key, each in node(value).items()})
        case "cookie":
            placed.cookies.update({_header_name(key): _fit(each) for key, each in node(value).items()})
        case _:
            hint = "Known: bearer, basic, header, query, cookie, and the names of the document's security schemes."
            raise SettingsError(f"There is no way to send the credentials {name!r}.", hint=hint)


def _place_by_scheme(placed: Placed, name: str, scheme: Mapping[str, Any], value: Any) -> None:
    kind, way = str(scheme.get("type")), str(scheme.get("scheme") or "").lower()
    match kind, way, scheme.get("in"):
        case "apiKey", _, "header":
            placed.headers[_header_name(scheme.get("name"))] = _fit(value)
        case "apiKey", _, "query":
            placed.query[str(scheme.get("name"))] = _fit(value)
        case "apiKey", _, "cookie":
            placed.cookies[_header_name(scheme.get("name"))] = _fit(value)
        case "http", "basic", _:
            placed.headers["authorization"] = f"Basic {_pair(node(value))}"
        case ("http", "bearer", _) | ("oauth2" | "openIdConnect", _, _):
            placed.headers["authorization"] = f"Bearer {_fit(value)}"
        case _:
            raise SettingsError(f"The security scheme {name!r} is of a kind that is not supported.")


def _pair(value: Mapping[str, Any]) -> str:
    username, password = str(value.get("username") or ""), str(value.get("password") or "")
    if not username and not password:
        raise SettingsError("The credentials have no user name and no password.")
    return b64encode(f"{username}:{password}".encode()).decode()


def _fit(value: object) -> str:
    """A key as it can be sent."""
    text = str(value or "").strip()
    if not text or _WRONG.search(text):
        raise SettingsError("A key is empty, or has letters that cannot be sent.", hint="Copy it again.")
    return text


def _header_name(value: object) -> str:
    name = str(value or "")
    if not _HEADER_NAME.fullmatch(name):
        raise SettingsError("The name of a header for a key cannot be sent.")
    return name.lower()


_PLAINLY: Final = "oauth2"
_PENDING: Final = "pending"
_LIMITS: Final = FetchLimits(size=64 * 1024, seconds=20.0)
_USUAL_SECONDS: Final = 300.0  # where the service does not say how long its token counts
_EARLY: Final = 30.0
_LONGEST_LIFE: Final = 24 * 3600.0
_LONGEST_REASON: Final = 200


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks for a token, and where.

    Args:
        url: The address that gives tokens.
        scope: What the token is for; the service's usual where empty.
    """

    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str = ""

    @property
    def pair(self) -> str:
        """Both, as a header says them."""
        return b64encode(f"{quote_plus(self.client_id)}:{quote_plus(self.secret)}".encode()).decode()


def clients_of(keys: Keys, server: str | None) -> dict[str, Client]:
    """Those of the credentials that are for getting a token, by their names.

    Args:
        server: Where it is: an address without `https` must be there, too.

    Raises:
        SettingsError: Something is missing, or the secret would travel openly to somebody else.
    """
    parts = {name: node(value) for name, value in keys.given.items()}
    return {name: _client(keys, name, value, server) for name, value in parts.items() if "client_id" in value}


def checkable(keys: Keys, server: str | None) -> Keys:
    """The same keys as if every token were there. Raises SettingsError, as `clients_of`."""
    return _with(keys, dict.fromkeys(clients_of(keys, server), _PENDING))


class Tokens:
    """The tokens of one service. They are in memory alone; calls that come together wait for the same one."""

    def __init__(self) -> None:
        self._kept: dict[Client, tuple[str, float]] = {}
        self._coming: dict[tuple[Client, asyncio.AbstractEventLoop], asyncio.Task[str]] = {}

    async def filled_in(self, keys: Keys, server: str | None, reach: Reach) -> Keys:
        """The same keys, with tokens in place of clients; a token that there is serves until shortly before its end.

        Args:
            reach: How far the address that gives tokens may be.

        Raises:
            FetchError: It may not be called, or does not answer.
            SettingsError: Something is missing.
            ToolError: It gives none.
        """
        clients = clients_of(keys, server)
        return _with(keys, {name: await self._of(client, keys, reach) for name, client in clients.items()})

    def forget(self, used: Keys) -> None:
        """Ask for others in place of the tokens that are in these keys; one that came since stays."""
        ended = list(used.given.values())
        self._kept = {client: one for client, one in self._kept.items() if one[0] not in ended}

    async def _of(self, client: Client, keys: Keys, reach: Reach) -> str:
        token, end = self._kept.get(client, ("", 0.0))
        if monotonic() < end:
            return token
        this = client, asyncio.get_running_loop()
        task = self._coming.get(this)
        if task is None or task.done():
            # A task of its own: whoever asked first may be cancelled, and the others still wait for it.
            task = self._coming[this] = asyncio.create_task(self._got(client, keys, reach))
            task.add_done_callback(lambda done: self._has_come(this, done))
        return await asyncio.shield(task)

    async def _got(self, client: Client, keys: Keys, reach: Reach) -> str:
        token, seconds = await _token(client, keys, reach)
        self._kept[client] = token, monotonic() + seconds
        return token

    def _has_come(self, this: tuple[Client, asyncio.AbstractEventLoop], done: asyncio.Task[str]) -> None:
        if self._coming.get(this) is done:
            del self._coming[this]
        if not done.cancelled():
            done.exception()  # heard, even where nobody waits for it any more


def _client(keys: Keys, name: str, value: Mapping[str, Any], server: str | None) -> Client:
    scheme = keys.scheme(name)
    flow = node(node(scheme.get("flows")).get("clientCredentials"))
    if not scheme and name != _PLAINLY:
        raise SettingsError(f"The document has no security scheme {name!r}.", hint='Give "oauth2".')
    url = str(value.get("token_url") or flow.get("tokenUrl") or "").strip()
    client_id, secret = (str(value.get(one) or "").strip() for one in ("client_id", "client_secret"))
    if not url or not client_id or not secret:
        missing = next(one for one, there in _NEEDED.items() if not {"u": url, "i": client_id, "s": secret}[there])
        raise SettingsError(
            f"{keys.document.title} needs {missing} to get a token.",
            hint="Enter it with the address of the service.",
            key="openapi_credentials",
            needed=missing,
        )
    url = urljoin(server or "", url)
    same = server is not None and urlsplit(url)[:2] == urlsplit(server)[:2]
    if urlsplit(url).scheme != "https" and not same:
        text = "The address that gives tokens must begin with https://."
        raise SettingsError(text, hint="Ask the service for it.", key="openapi_token_address")
    return Client(url, client_id, secret, str(value.get("scope") or "").strip())


_NEEDED: Final = {"token_url": "u", "client_id": "i", "client_secret": "s"}


async def _token(client: Client, keys: Keys, reach: Reach) -> tuple[str, float]:
    """A token, and for how many seconds it counts. Raises FetchError, ToolError."""
    form = {"grant_type": "client_credentials", **({"scope": client.scope} if client.scope else {})}
    status, told = await _asked(client, form, {"authorization": f"Basic {client.pair}"}, reach)
    if status in {400, 401}:  # some services want both in the body
        form |= {"client_id": client.client_id, "client_secret": client.secret}
        status, told = await _asked(client, form, {}, reach)
    host = urlsplit(client.url).hostname or ""
    try:
        given: Any = json.loads(told)
    except (ValueError, RecursionError):
        given = {}
    answer = node(given)
    token, kind = answer.get("access_token"), str(answer.get("token_type") or "bearer").lower()
    if status != 200 or not isinstance(token, str) or not token.strip() or kind != "bearer":
        reason = str(answer.get("error_description") or answer.get("error") or "").replace(client.pair, HIDDEN)
        said = plain(keys.hidden(reason), _LONGEST_REASON)
        text = f"{host} gave no token ({status}){f': {said}' if said else '.'}"
        raise ToolError(text, key="service_refused", host=host, status=status)
    seconds = answer.get("expires_in")
    known = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < _LONGEST_LIFE
    return token.strip(), max(float(seconds if known else _USUAL_SECONDS) - _EARLY, 0.0)  # pyright: ignore[reportArgumentType] - known


async def _asked(
    client: Client, form: Mapping[str, str], headers: Mapping[str, str], reach: Reach
) -> tuple[int, bytes]:
    """The answer, from that address and no other: nobody sends the secret on."""
    url: httpx.URL = checked(client.url)
    kind = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    what = Outgoing(url, "POST", {**kind, **headers}, urlencode(form).encode())
    async with connected(url, _LIMITS, reach) as transport:
        response = await sent(transport, what, reach)
        try:
            return response.status_code, await body_of(response, url.host, _LIMITS.size)
        finally:
            await response.aclose()


def _with(keys: Keys, tokens: Mapping[str, str]) -> Keys:
    """Keys with tokens in the place of clients; what is hidden stays so."""
    if not tokens:
        return keys
    given = {name: value for name, value in keys.given.items() if name not in tokens}
    for name, token in tokens.items():
        given[name if keys.scheme(name) else "bearer"] = token
    return Keys(keys.document, given, keys.secrets)


WayKind: TypeAlias = Literal["bearer", "header", "query", "cookie", "basic", "oauth2"]

_PLACES: Final[Mapping[str, WayKind]] = {"header": "header", "query": "query", "cookie": "cookie"}
_MOST: Final = 12
_MOST_SCOPES: Final = 60
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class AuthScheme:
    """One of them.

    Args:
        kind: Where the key goes; of `oauth2` a client's id and secret become a token first.
        name: Of the header, the parameter or the cookie.
        token_url: Where tokens are given; "" where the document does not say.
        scopes: What a token can be for, in the document's words.
    """

    kind: WayKind
    name: str = ""
    token_url: str = ""
    scopes: Mapping[str, str] = field(default_factory=dict[str, str])


def auth_schemes(document: Document, server: str) -> list[AuthScheme]:
    """Those of a document, each once, in its order.

    Args:
        server: What an address without a host follows.
    """
    schemes = node(node(document.root.get("components")).get("securitySchemes"))
    found: list[AuthScheme] = []
    for value in schemes.values():
        found += [way for way in _ways(document.resolved(value), server) if way not in found]
    return found[:_MOST]


def _ways(scheme: Node, server: str) -> Iterator[AuthScheme]:
    name = plain(str(scheme.get("name") or ""), _LONGEST_NAME)
    match str(scheme.get("type")), str(scheme.get("scheme") or "").lower():
        case "apiKey", _ if name and scheme.get("in") in _PLACES:
            yield AuthScheme(_PLACES[str(scheme.get("in"))], name)
        case "http", "basic":
            yield AuthScheme("basic")
        case "http", "bearer":
            yield AuthScheme("bearer")
        case "oauth2", _:
            flow = node(node(scheme.get("flows")).get("clientCredentials"))
            if not flow:
                yield AuthScheme("bearer")  # a token that was got elsewhere
                return
            url = str(flow.get("tokenUrl") or "").strip()
            scopes = list(node(flow.get("scopes")).items())[:_MOST_SCOPES]
            told = {plain(str(one), _LONGEST_NAME): plain(str(words or ""), _LONGEST_NAME) for one, words in scopes}
            yield AuthScheme("oauth2", token_url=plain(urljoin(server, url), 2000) if url else "", scopes=told)
        case "openIdConnect", _:
            yield AuthScheme("bearer")
            yield AuthScheme("oauth2")
        case _:
            return
