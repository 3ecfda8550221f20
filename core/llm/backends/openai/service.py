"""A service of the OpenAI protocol: its address and key, the SDK's clients, its models, and what its errors mean."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx2
import openai

from core.errors import (
    ModelMisbehavedError,
    ModelRefusedError,
    ModelServiceError,
    ModelUnavailableError,
    ParlourError,
)
from core.known_hosts import is_dashscope
from core.llm.backends import errors
from core.llm.backends.dashscope.service import resolve_endpoint
from core.llm.backends.errors import HTTP_ERRORS, seconds_until
from core.llm.backends.http_clients import DIRECT, HttpPool, bounded, http_pool, public_client
from core.llm.backends.meanings import in_words, meaning, says_why
from core.llm.backends.service_config import ServiceConfig, whole_address
from core.net.body import ASKED

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from openai import AsyncOpenAI


OFFICIAL: Final = "https://api.openai.com/v1"
NO_KEY: Final = "EMPTY"
"""The key for services that want none."""
DASHSCOPE: Final = "https://dashscope.aliyuncs.com/compatible-mode/v1"
_EXAMPLE: Final = "Give an address such as https://api.openai.com/v1 or http://127.0.0.1:11434/v1."


class OpenAIConfig(ServiceConfig):
    """The settings of this back end; unknown ones are ignored."""


def address_of(given: str | None) -> str | None:
    """The service's address, completed with a scheme; `dashscope` stands for its own.

    Raises:
        SettingsError: It is not an HTTP address.
    """
    if not given or not given.strip():
        return None
    return whole_address(DASHSCOPE if given.strip() == "dashscope" else given, _EXAMPLE)


def dashscope_key(address: str | None) -> str | None:
    """DashScope's key for its own addresses, empty where there is none; `None` for any other address."""
    return resolve_endpoint(address, "", None).api_key if address and is_dashscope(address) else None


def default_key(address: str | None, http: httpx2.AsyncClient) -> str | None:
    """The key for an address where none is given: `None` leaves it to the SDK's variable, else `NO_KEY`.

    The vendor's key goes to the vendor's own address alone; other servers rarely want one.
    """
    if address is None:
        return None
    usual = openai.AsyncOpenAI(api_key=NO_KEY, http_client=http).base_url
    try:
        openai.AsyncOpenAI(base_url=address, http_client=http)
    except openai.OpenAIError:  # there is none among the variables
        return NO_KEY
    known = {urlsplit(OFFICIAL).netloc, urlsplit(str(usual)).netloc}
    return None if urlsplit(address).netloc in known else NO_KEY


_NEEDED_LATER = (
    "openai.resources.chat.chat",
    "openai.resources.chat.completions.completions",
)  # imported at the first request otherwise

MOST_CLIENTS: Final = 256
"""Per loop; the least recently used is dropped. On a shared page everybody brings a key."""

Make: TypeAlias = "Callable[[httpx2.AsyncClient], AsyncOpenAI]"
_OF_ONE: Final = frozenset({b"content-length", b"cookie"})  # headers of one request alone
_MOST_HEADS: Final = 8


class _Head(NamedTuple):
    url: httpx2.URL
    headers: httpx2.Headers
    extensions: Mapping[str, Any]


class Heads:
    """Heads of requests as the SDK makes them: making one takes as long as all the rest of sending it.

    What is remembered of a client is the head of a request that was answered; the same options get the same one again.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[AsyncOpenAI, dict[str, _Head]] = WeakKeyDictionary()

    def note(self, client: AsyncOpenAI, options: str, request: httpx2.Request) -> None:
        """Remember the head of a request, if the key alone lets it in: a token would be over some time."""
        if request.headers.get("authorization") == f"Bearer {client.api_key}":
            heads = self._known.setdefault(client, {})
            if len(heads) >= _MOST_HEADS:
                heads.clear()
            said = [(name, value) for name, value in request.headers.raw if name.lower() not in _OF_ONE]
            headers = httpx2.Headers(said, encoding=request.headers.encoding)
            heads[options] = _Head(request.url, headers, request.extensions)

    def request(
        self, client: AsyncOpenAI, http: httpx2.AsyncClient, options: str, body: Mapping[str, Any]
    ) -> httpx2.Request | None:
        """A request with a remembered head; `None` where there is none yet, or the SDK alone can write the body.

        Raises:
            ValueError: The body is not JSON, as for `RecursionError`.
            UnicodeEncodeError: There is half of a surrogate pair in it.
        """
        head = self._known.get(client, {}).get(options)
        if head is None:
            return None
        try:
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except TypeError:  # a time, or an object of Pydantic, which the SDK knows
            return None
        headers = httpx2.Headers(head.headers, encoding=head.headers.encoding)
        headers["Content-Length"] = str(len(content))
        # With a stream, nothing is worked out of the headers once more.
        request = httpx2.Request(
            "POST",
            head.url,
            headers=headers,
            cookies=http.cookies or None,
            stream=httpx2.ByteStream(content),
            extensions=head.extensions,
        )
        request.headers.encoding = headers.encoding
        request.read()
        return request


def refusal(response: httpx2.Response) -> openai.APIStatusError:
    """The SDK's error for an answer that was read and is no success."""
    try:
        told: Any = response.json()
    except ValueError:
        told = None
    body = cast("dict[str, Any]", told).get("error", told) if isinstance(told, dict) else told
    return openai.APIStatusError(response.text, response=response, body=body)


class ClientPool:
    """One client per service and event loop, for as long as the loop's connections last.

    Args:
        connections: Those of this process by default.

    Attributes:
        heads: Of requests of the clients.
    """

    def __init__(self, connections: HttpPool | None = None) -> None:
        self._loaded = False
        self._connections = connections or http_pool()
        self._clients: dict[httpx2.AsyncClient, dict[Hashable, AsyncOpenAI]] = {}
        self.heads = Heads()

    async def http(self) -> httpx2.AsyncClient:
        """The connections of this loop, over which its clients ask."""
        return await self._connections.client()

    async def prepare(self) -> None:
        """Load what the first request needs, in a thread: the loop goes on, and many first requests wait together."""
        await self._connections.prepare()
        if not self._loaded:
            await asyncio.get_running_loop().run_in_executor(None, self._load)

    async def client(self, user: object, service: Hashable, make: Make) -> AsyncOpenAI:
        """The client of this loop for one service.

        Args:
            user: Holds the connections open until it is released.
            service: Address, key and whatever else distinguishes two clients.
            make: Makes the client on these connections; its errors propagate.
        """
        await self.prepare()
        http = await self._connections.client()
        if http not in self._clients:
            self._clients = {known: kept for known, kept in tuple(self._clients.items()) if not known.is_closed}
        clients = self._clients.setdefault(http, {})
        found = clients[service] = clients.pop(service, None) or make(http)  # most recently used last
        if len(clients) > MOST_CLIENTS:
            del clients[next(iter(clients))]  # its users keep it; the connections are shared
        await self._connections.client(user)
        return found

    async def release(self, user: object) -> None:
        """Release `user`'s hold; the last one on this loop closes the connections."""
        await self._connections.release(user)

    def _load(self) -> None:
        for name in _NEEDED_LATER:
            import_module(name)
        self._loaded = True


@cache
def client_pool() -> ClientPool:
    """The pool of this process."""
    return ClientPool()


_WITHIN = 8.0
_MOST_BYTES = 2 * 1024 * 1024
_MOST = 500
_LONGEST = 200


async def offered_models(address: str, key: str, *, public_only: bool = False) -> list[str]:
    """The names of the service's models, sorted; empty where it does not list them. As `listed_models` otherwise."""
    return await listed_models(address, key, public_only=public_only) or []


async def listed_models(address: str, key: str, *, public_only: bool = False) -> list[str] | None:
    """The names of the service's models, sorted; empty where it does not list them, `None` where nobody answers.

    Args:
        address: Of a service that speaks the OpenAI protocol.
        key: Sent there and nowhere else.
        public_only: Refuse addresses that are not on the open internet.
    """
    # In a thread: reading the trusted certificates takes a while.
    client = await asyncio.to_thread(public_client if public_only else _client)
    try:
        async with asyncio.timeout(_WITHIN), client:
            raw = await _read(client, f"{address.rstrip('/')}/models", key)
        return _names(json.loads(raw))
    except (httpx2.TransportError, TimeoutError):
        return None
    except (httpx2.HTTPError, httpx2.InvalidURL, ParlourError, ValueError):
        return []


def _client() -> httpx2.AsyncClient:
    hooks = {"response": [bounded]}
    return httpx2.AsyncClient(mounts=DIRECT, follow_redirects=False, headers=ASKED, event_hooks=hooks)


async def _read(client: httpx2.AsyncClient, url: str, key: str) -> bytes:
    headers = {"authorization": f"Bearer {key}", "accept": "application/json"}
    pieces: list[bytes] = []
    size = 0
    async with client.stream("GET", url, headers=headers, timeout=_WITHIN) as answer:
        answer.raise_for_status()
        async for piece in answer.aiter_bytes():
            size += len(piece)
            if size > _MOST_BYTES:
                raise ValueError("The list is too long to be one.")
            pieces.append(piece)
    return b"".join(pieces)


def _names(told: Any) -> list[str]:
    listed = cast("dict[str, Any]", told).get("data") if isinstance(told, dict) else None
    models = cast("list[Any]", listed) if isinstance(listed, list) else []
    names = {str(cast("dict[str, Any]", one).get("id") or "") for one in models if isinstance(one, dict)}
    return sorted((name for name in names if name and len(name) <= _LONGEST and name.isprintable()), key=str.lower)[
        :_MOST
    ]


VENDOR_ERRORS = (openai.OpenAIError, *HTTP_ERRORS)
"""What the SDK, the HTTP layer and timeouts raise."""


class Translator(errors.Translator):
    """Translates failures of a service of the OpenAI protocol."""

    protocol = "OpenAI"
    ending = "/v1"

    def translated(self, error: Exception, *, spoke: bool = False) -> ModelServiceError:
        """Parlour's error for one of `VENDOR_ERRORS`."""
        match error:
            case openai.APIStatusError():
                return self._refusal(error)
            case openai.APIConnectionError() if isinstance(error.__cause__, HTTP_ERRORS):
                return super().translated(error.__cause__, spoke=spoke)
            case openai.APITimeoutError():
                return self.slow()
            case openai.APIConnectionError():
                return self.cut_off(spoke=spoke)
            case _ if isinstance(error, HTTP_ERRORS):
                return super().translated(error, spoke=spoke)
            case _:
                return self._unusable(error)

    def _refusal(self, error: openai.APIStatusError) -> ModelServiceError:
        """The error for a response that is not a success."""
        headers = error.response.headers
        body = _mapping(error.body)
        text = error.response.text
        if error.status_code < 400:
            return self.moved(headers.get("location", ""))
        if "html" in headers.get("content-type", "").lower() and error.status_code not in {401, 403}:
            if error.status_code < 500:
                return self.html(str(error.status_code))
            text = ""
        said = str(body.get("message") or body.get("detail") or text or f"HTTP status {error.status_code}")
        return self.by_status(error.status_code, str(body.get("code") or ""), said, _pause(headers))

    def by_status(self, status: int, code: str, message: str, retry_after: float | None = None) -> ModelServiceError:
        """The error for a status, the service's own code and its message."""
        message = self.redacted(in_words(message))
        return self.make_refusal(
            meaning(status, f"{code} {message}"), str(status), message, retry_after, {"service_code": code}
        )

    def moved(self, location: str) -> ModelServiceError:
        """The service redirects; it is not followed, as the key would go along."""
        place = urlsplit(location)
        if not place.netloc:  # most often its own sign-in page
            return self.html()
        address = f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path.removesuffix('/chat/completions')}"
        said = f"{self.host} sends its callers to another address."
        error = self.make(ModelRefusedError, said, f"Use {address} as the address, if you trust it.")
        error.details["place"] = address
        return error

    def in_stream(self, error: Mapping[str, Any], *, spoke: bool) -> ModelServiceError:
        """An error that came as a chunk of the reply."""
        code = str(error.get("code") or error.get("type") or "")
        status = int(code) if code.isdecimal() else {"rate_limit_exceeded": 429, "server_error": 500}.get(code, 0)
        message = str(error.get("message") or "The service reported an error.")
        if status or says_why(code + message):
            return self.by_status(status or 400, code, message)
        kind = ModelMisbehavedError if spoke else ModelUnavailableError
        return self.make(kind, self.redacted(message), "Ask again.", code=code or None)

    def _unusable(self, error: Exception) -> ModelServiceError:
        if "api_key" in str(error) or "credentials" in str(error).lower():
            hint = "Set api_key, or the vendor's variable: OPENAI_API_KEY, AZURE_OPENAI_API_KEY, DASHSCOPE_API_KEY."
            return self.keyless(hint)
        return self.make(ModelMisbehavedError, self.redacted(str(error)), "")


def _pause(headers: Mapping[str, str]) -> float | None:
    """Seconds that the service asks to wait; some services say milliseconds."""
    exact = headers.get("retry-after-ms", "")
    return int(exact) / 1000 if exact.isdecimal() else seconds_until(headers.get("retry-after"))


def _mapping(body: object) -> Mapping[str, Any]:
    if isinstance(body, list) and body:  # as Google's service does
        first = cast("list[object]", body)[0]
        return _mapping(cast("Mapping[str, object]", first).get("error")) if isinstance(first, Mapping) else {}
    return cast("Mapping[str, Any]", body) if isinstance(body, Mapping) else {}
