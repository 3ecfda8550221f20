"""OAuth 2 for programs: a service's client id and secret become a token, which is kept until shortly before its end.

`{"credentials": {"oauth2": {"client_id": …, "client_secret": …}}}`; `token_url` and `scope` may stand there, too. The
name of the document's own scheme does as well as `oauth2`.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, urlencode, urljoin, urlsplit

from core.errors import SettingsError, ToolError
from core.net.fetcher import FetchLimits, Outgoing, body_of, checked, connected, sent
from core.tools.openapi.credentials import HIDDEN, Keys
from core.tools.openapi.document import node, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from core.net.addresses import Reach

_PLAINLY: Final = "oauth2"
_PENDING: Final = "pending"
_LIMITS: Final = FetchLimits(size=64 * 1024, seconds=20.0)
_USUAL_SECONDS: Final = 300.0  # where the service does not say how long its token counts
_EARLY: Final = 30.0
_LONGEST: Final = 24 * 3600.0
_LONGEST_REASON: Final = 200


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks for a token, and where.

    Args:
        url: The address that gives tokens.
        client_id: The program.
        secret: Its secret.
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
        keys: The service's.
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
            keys: The service's.
            server: Where it is.
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
    known = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < _LONGEST
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
