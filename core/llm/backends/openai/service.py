"""A service of the OpenAI protocol: its address and key, the SDK's clients for it, and the models it offers."""

from __future__ import annotations

import asyncio
import json
import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, field_validator

from core.errors import ParlourError, SettingsError
from core.llm.backends.dashscope.service import resolve_endpoint
from core.llm.backends.http_clients import DIRECT, HttpPool, bounded, http_pool, public_client
from core.net.body import ASKED
from core.vendor_hosts import is_dashscope

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from openai import AsyncOpenAI

OFFICIAL: Final = "https://api.openai.com/v1"
NO_KEY: Final = "EMPTY"
"""The key for services that want none."""
DASHSCOPE: Final = "https://dashscope.aliyuncs.com/compatible-mode/v1"
_EXAMPLE: Final = "Give an address such as https://api.openai.com/v1 or http://127.0.0.1:11434/v1."


class OpenAIConfig(BaseModel):
    """The settings of this back end; unknown ones are ignored."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    base_url: str | None = Field(default=None, validation_alias=AliasChoices("base_url", "model_server", "api_base"))
    api_key: SecretStr | None = None
    vision: bool | None = None
    audio: bool | None = None
    video: bool | None = None
    default_headers: dict[str, str] = Field(default_factory=dict)

    @field_validator("api_key")
    @classmethod
    def _writable(cls, key: SecretStr | None) -> SecretStr | None:
        text = key.get_secret_value().strip() if key else ""
        if not text:
            return None
        if not text.isascii() or re.search(r"\s", text) or not text.isprintable():
            raise ValueError("it holds characters that no key has; copy it again")
        return SecretStr(text)

    @field_validator("default_headers")
    @classmethod
    def _sendable(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not (value.isascii() and value.isprintable()):
                raise ValueError(f"the header {name!r} cannot be sent")
        return headers


def address_of(given: str | None) -> str | None:
    """The service's address, completed with a scheme; `dashscope` stands for its own.

    Raises:
        SettingsError: It is not an HTTP address.
    """
    if not given or not given.strip():
        return None
    address = DASHSCOPE if given.strip() == "dashscope" else given.strip()
    address = (address if "://" in address else f"http://{address}").rstrip("/")
    try:
        parts = urlsplit(address)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or re.search(r"[\s\x00-\x20]", address):
        shown = address.rpartition("@")[2][:80]
        raise SettingsError(f"The model's address {shown!r} is none that can be asked.", hint=_EXAMPLE)
    return address


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


class ClientPool:
    """One client per service and event loop, for as long as the loop's connections last.

    Args:
        connections: Those of this process by default.
    """

    def __init__(self, connections: HttpPool | None = None) -> None:
        self._loaded = False
        self._connections = connections or http_pool()
        self._clients: dict[httpx2.AsyncClient, dict[Hashable, AsyncOpenAI]] = {}

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
    """The names of the service's models, sorted; empty where it does not list them.

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
    except (httpx2.HTTPError, httpx2.InvalidURL, ParlourError, ValueError, TimeoutError):
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
