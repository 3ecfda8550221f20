"""HTTP to model services: connections that all share, clients for the open internet alone, and timeouts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.request import getproxies

import anyio
import httpx2

from core.bridge.closing import known_to_loop
from core.bridge.watchdog import AwakeTimer
from core.errors import ModelUnavailableError, SettingsError
from core.llm.backends.network import Transport
from core.llm.wire_log import note_request, note_response
from core.net.addresses import PORTS, Resolve, is_own_server, is_public, system_addresses
from core.net.body import ASKED
from core.net.unpacking import unpack

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
    from types import TracebackType
    from typing import Self

    from core.llm.request import ChatRequest


CONNECT_SECONDS: Final = 5.0
_CONNECTIONS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)
DIRECT: Final[Mapping[str, httpx2.AsyncBaseTransport | None]] = MappingProxyType(
    {"all://localhost": None, "all://127.0.0.1": None, "all://[::1]": None}
)
"""Loopback addresses never go through a proxy, whatever the environment says."""

_STREAMS: Final = ("text/event-stream", "application/vnd.amazon.eventstream")
_LONGEST_STREAM: Final = 256 << 20  # a million tokens, each in an event of its own
_LONGEST_WHOLE: Final = 64 << 20
_LONGEST_REFUSAL: Final = 256 << 10

Make: TypeAlias = "Callable[[ssl.SSLContext | None], httpx2.AsyncClient]"


async def bounded(response: httpx2.Response) -> None:
    """Response hook: bound how much of an answer is read, packed or not, whatever it says that it is."""
    if response.status_code >= 300:
        unpack(response, _LONGEST_REFUSAL, cut=True)
        return
    is_stream = response.headers.get("content-type", "").lower().startswith(_STREAMS)
    unpack(response, _LONGEST_STREAM if is_stream else _LONGEST_WHOLE)


def _usual(trusted: ssl.SSLContext | None) -> httpx2.AsyncClient:
    # A proxy that the environment names is asked by the HTTP package's own way, which knows its ways of signing in.
    direct = None if getproxies() else Transport(trusted, _CONNECTIONS)
    return httpx2.AsyncClient(
        transport=direct,
        timeout=httpx2.Timeout(60.0, connect=CONNECT_SECONDS),
        limits=_CONNECTIONS,
        follow_redirects=False,  # a key in a vendor's own header would go along
        mounts=DIRECT,
        verify=trusted or True,
        headers=ASKED,
        event_hooks={"request": [note_request], "response": [note_response, bounded]},
    )


@dataclass(slots=True)
class _LoopClient:
    """The connections of one loop, and the models that use them."""

    http: httpx2.AsyncClient
    keeper: AsyncGenerator[None, None]
    users: set[int] = field(default_factory=set[int])


class HttpPool:
    """Hands out clients. Connections cannot move between loops, so each loop has its own.

    Args:
        make: Makes the client of a loop, given the trusted certificates.
    """

    def __init__(self, make: Make | None = None) -> None:
        self._make = make or _usual
        self._guard = Lock()
        self._loading = Lock()
        self._trusted: ssl.SSLContext | None = None
        self._loops: dict[asyncio.AbstractEventLoop, _LoopClient] = {}

    async def prepare(self) -> None:
        """Load what the first request needs, in a thread: the loop goes on, and many first requests wait together."""
        if self._trusted is None:
            # `asyncio.to_thread` would copy the context, in which a loop is running.
            await asyncio.get_running_loop().run_in_executor(None, self._load)

    async def client(self, user: object | None = None) -> httpx2.AsyncClient:
        """The client of this loop.

        Args:
            user: Holds the connections open until it is released; `None` holds nothing.
        """
        await self.prepare()
        held = self._loops.get(asyncio.get_running_loop()) or await self._open()
        if user is not None:
            held.users.add(id(user))
        return held.http

    async def release(self, user: object) -> None:
        """Release `user`'s hold; the last one on this loop closes the connections."""
        held = self._loops.get(asyncio.get_running_loop())
        if held is None:
            return
        held.users.discard(id(user))
        if not held.users:
            await held.keeper.aclose()

    def _load(self) -> None:
        with self._loading:
            if self._trusted is None:
                anyio.run(anyio.sleep, 0)  # imports its back end
                self._trusted = httpx2.create_ssl_context()

    async def _open(self) -> _LoopClient:
        loop = asyncio.get_running_loop()
        http = self._make(self._trusted)
        held = _LoopClient(http, self._keep(loop, http))
        with self._guard:
            self._loops = {known: kept for known, kept in self._loops.items() if not known.is_closed()}
            self._loops[loop] = held
        # A loop that shuts down closes its generators first, and this one closes the connections with it.
        await known_to_loop(held.keeper)
        return held

    async def _keep(self, loop: asyncio.AbstractEventLoop, http: httpx2.AsyncClient) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            with self._guard:
                self._loops.pop(loop, None)
            await http.aclose()


@cache
def http_pool() -> HttpPool:
    """The pool of this process."""
    return HttpPool()


_LOOKUP_SECONDS = 5.0


async def public_address(host: str, port: int, resolve: Resolve | None = None) -> str:
    """The IP address to connect to, for a host that somebody typed.

    Args:
        host: A name, or an address in any form that the system understands.
        resolve: Finds the addresses of a name; the system's way if left out.

    Raises:
        SettingsError: key `address_private`: one of its addresses is not public, or the port is not one of services.
        ModelUnavailableError: key `model_unreachable`: the name is not known.
    """
    if port not in PORTS:
        raise not_public(host)
    try:
        async with asyncio.timeout(_LOOKUP_SECONDS):
            found = await (resolve or system_addresses)(host, port)
    except (OSError, UnicodeError) as error:
        raise _unknown(host) from error
    if not found:
        raise _unknown(host)
    if not all(is_public(address) and not is_own_server(address, port) for address in found):
        raise not_public(host)
    return found[0]


def not_public(host: str) -> SettingsError:
    """The error for an address that only whoever runs Parlour may use."""
    hint = "On a shared page only public addresses can be used, on the usual ports."
    return SettingsError(f"{host} is not a public address.", hint=hint, key="address_private", host=host)


def _unknown(host: str) -> ModelUnavailableError:
    error = ModelUnavailableError(
        message=f"{host} cannot be found.", hint="Check the address.", key="model_unreachable"
    )
    error.details["host"] = host
    return error


class PublicTransport(httpx2.AsyncBaseTransport):
    """Connects to the very address that was checked, so that DNS rebinding gains nothing.

    Args:
        resolve: Finds the addresses of a name; the system's way if left out.
        trusted: The certificates to trust; they are read if left out.
    """

    def __init__(self, resolve: Resolve | None = None, trusted: ssl.SSLContext | None = None) -> None:
        self._resolve = resolve
        self._inner = Transport(trusted)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the certificate must be the name's.

        Raises:
            ParlourError: The address is not public, or not known.
        """
        url = request.url
        address = await public_address(url.host, url.port or _port(url.scheme), self._resolve)
        # One of our own: the caller's may be the pattern of the next, for which the name is asked anew.
        sent = httpx2.Request(
            request.method,
            url.copy_with(host=address),
            headers=request.headers,  # Host among them, which is the name's
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": url.host},
        )
        return await self._inner.handle_async_request(sent)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def public_client(trusted: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    """A client that calls the open internet alone. It follows no redirect, and no proxy of the environment."""
    timeout = httpx2.Timeout(60.0, connect=CONNECT_SECONDS)
    transport = PublicTransport(trusted=trusted)
    return httpx2.AsyncClient(
        transport=transport,
        timeout=timeout,
        follow_redirects=False,
        trust_env=False,
        headers=ASKED,
        event_hooks={"request": [note_request], "response": [note_response, bounded]},
    )


def _port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


FIRST_BYTE_SECONDS: Final = 60.0
_FIRST_BYTE_HERE_SECONDS: Final = 600.0  # a local server may load a model or read a long prompt first
_IDLE_SECONDS: Final = 30.0
AFTER_END_SECONDS: Final = 0.2
"""To drain the few bytes after a reply, so that the connection can be reused."""


async def drain(
    pieces: AsyncGenerator[bytes, None], received: Callable[[bytes], object], errors: tuple[type[BaseException], ...]
) -> None:
    """Read the few bytes after a reply's end, so that the connection can be reused.

    Args:
        received: Is given each of them.
        errors: What reading may fail with, which ends it: the reply is whole already.
    """
    try:
        async with asyncio.timeout(AFTER_END_SECONDS):
            async for piece in pieces:
                received(piece)
    except errors:
        return


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to wait for the first bytes of the reply, and for more of it later."""

    first: float
    idle: float

    @classmethod
    def of(cls, request: ChatRequest, *, here: bool) -> Limits:
        """`generate_cfg["request_timeout"]` for both, else the defaults.

        Args:
            request: Its `generate` may hold `request_timeout`.
            here: Whether the service runs on this machine.
        """
        if asked := request.generate.get("request_timeout"):
            return cls(float(asked), float(asked))
        return cls(_FIRST_BYTE_HERE_SECONDS if here else FIRST_BYTE_SECONDS, _IDLE_SECONDS)


class IdleTimeout:
    """Raises `TimeoutError` when a stream stays silent for too long; a context manager.

        with IdleTimeout() as idle:
            while (piece := await idle.next(pieces, seconds)) is not None: ...

    One timer serves all pieces and costs nothing while they come. The time that the reader spends on a piece does not
    count.
    """

    __slots__ = ("_cancelling", "_expired", "_task", "_timer")

    def __init__(self) -> None:
        self._timer = AwakeTimer(self._expire)
        self._task: asyncio.Task[object] | None = None  # the one that waits now
        self._cancelling = 0
        self._expired = False

    def __enter__(self) -> Self:
        """The timer starts with the first wait."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel the timer."""
        self._timer.cancel()

    async def next(self, pieces: AsyncIterator[bytes], seconds: float) -> bytes | None:
        """The next piece; `None` when there is none.

        Raises:
            TimeoutError: Nothing came for so many seconds, not counting those in which this machine was asleep.
        """
        task = self._task = asyncio.current_task()
        self._cancelling = task.cancelling() if task else 0
        self._timer.start(seconds)
        try:
            return await anext(pieces, None)
        except asyncio.CancelledError as error:
            if self._expired and task is not None and task.uncancel() <= self._cancelling:
                raise TimeoutError from error
            raise
        finally:
            self._timer.stop()
            self._task = None

    def _expire(self) -> None:
        if self._task is not None:
            self._expired = True
            self._task.cancel()
