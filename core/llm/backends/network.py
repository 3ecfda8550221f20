"""Connections to model services: what is written goes out in one, and fast replies are read several pieces at a time.

Each time another process is told of bytes, or tells of some, costs more than handling them does. So a request's head
and body are sent together, and of a reply whose pieces come faster than anybody reads, several are read at once.
"""

from __future__ import annotations

import asyncio
import select
import socket
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import httpcore2
import httpx2

from core.llm.backends.framing import Framing

if TYPE_CHECKING:
    import ssl
    from collections.abc import Generator, Iterable, Sequence

GATHERED: Final = 0.016
"""Seconds for which a reply that comes faster is gathered: what a screen takes for one picture."""
FLOWING: Final = 8
"""Pieces that come so fast one after another before any is gathered: the first words are told at once."""
_SOON: Final = 0.002  # seconds in which what waited with the system is here
_NEXT_ADDRESS: Final = 0.25  # seconds after which another address of the same name is tried beside the first
_MOST_HELD: Final = 256 * 1024  # bytes that were received and not read
_MOST_UNSENT: Final = 64 * 1024


class _Bytes(asyncio.Protocol):
    """The bytes of one connection, as they came."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.is_over = False
        self.error: Exception | None = None
        self.transport: asyncio.Transport | None = None
        self._is_paused = False
        self._waiting: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """More came."""
        self.got += data
        if len(self.got) > _MOST_HELD:
            self._pause()
        _wake(self._waiting)

    def eof_received(self) -> None:
        """Nothing more comes."""
        self.is_over = True
        _wake(self._waiting)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self.is_over, self.error = True, exc
        _wake(self._waiting)
        _wake(self._room)

    def pause_writing(self) -> None:
        """More was written than is taken."""
        self._room = self._room or asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """There is room again."""
        _wake(self._room)
        self._room = None

    async def came(self) -> None:
        """Wait until something is there, or it is over."""
        if not self.got and not self.is_over:
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None

    @property
    def has_room(self) -> bool:
        """Whether more may be written."""
        return self._room is None or self.is_over

    async def room(self) -> None:
        """Wait until more may be written."""
        if self._room is not None:
            await asyncio.shield(self._room)

    async def unheard(self, seconds: float) -> None:
        """Hear of nothing for so long: what comes meanwhile waits with the system, and nobody is woken for it."""
        self._pause()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._go_on()

    def taken(self, most: int) -> bytes:
        """So many of the bytes, which are read then."""
        found = bytes(self.got[:most])
        del self.got[:most]
        if not self.got:
            self._go_on()
        return found

    def _pause(self) -> None:
        if self.transport is not None and not self._is_paused and not self.is_over:
            self._is_paused = True
            self.transport.pause_reading()

    def _go_on(self) -> None:
        if self.transport is not None and self._is_paused:
            self._is_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()


class Connection(httpcore2.AsyncNetworkStream):
    """One connection."""

    def __init__(self, transport: asyncio.Transport, received: _Bytes) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._received = received
        self._unsent = bytearray()
        self._framing = Framing()
        self._is_closed = False
        self._read_at = 0.0
        self._quick = 0  # pieces that came fast, one after another

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What came; empty at the end. Raises `httpcore2.ReadError` and `ReadTimeout`."""
        while data := await self._next(max_bytes, timeout):
            if joined := self._framing.joined(data):
                return joined
        return b""

    async def _next(self, max_bytes: int, timeout: float | None) -> bytes:
        self._send()
        with _raising(httpcore2.ReadTimeout, httpcore2.ReadError):
            if self._is_closed:
                raise ConnectionError("The connection is closed.")
            left, quick = self._read_at + GATHERED - self._loop.time(), self._read_at + GATHERED
            # Not where there is more than is asked for: it would grow with each time that the system is heard again.
            if self._quick >= FLOWING and left > 0 and len(self._received.got) < max_bytes:
                await self._received.unheard(left)
            elif self._received.got:
                await asyncio.sleep(0)  # others have their turn, however much comes
            if self._quick >= FLOWING:
                quick = self._loop.time() + _SOON
            if not self._received.got:
                async with asyncio.timeout(timeout):
                    await self._received.came()
            self._read_at = self._loop.time()
            self._quick = self._quick + 1 if self._read_at < quick else 0
            if not self._received.got and self._received.error is not None:
                raise self._received.error
        return self._received.taken(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes, together with what follows in the same breath. Raises `httpcore2.WriteError`, `WriteTimeout`."""
        if not buffer:
            return
        with _raising(httpcore2.WriteTimeout, httpcore2.WriteError):
            if self._is_closed or self._received.is_over:
                raise self._received.error or ConnectionError("The connection is closed.")
            if not self._unsent:
                self._loop.call_soon(self._send)
                self._framing.asked()
            self._unsent += buffer
            self._quick = 0
            if len(self._unsent) > _MOST_UNSENT:
                self._send()
            if not self._received.has_room:
                async with asyncio.timeout(timeout):
                    await self._received.room()

    async def aclose(self) -> None:
        """Close it: a service whose reply is left hears of it before this returns."""
        self.close()
        await asyncio.sleep(0)  # in which the loop closes it

    def close(self) -> None:
        """Close it in the next turn of the loop, and say good-bye to nobody: who still sends would be waited for."""
        self._is_closed = True
        self._transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """The same one, encrypted from now on. Raises `httpcore2.ConnectError` and `ConnectTimeout`."""
        try:
            with _raising(httpcore2.ConnectTimeout, httpcore2.ConnectError):
                async with asyncio.timeout(timeout):
                    inner = await self._loop.start_tls(
                        self._transport, self._received, ssl_context, server_hostname=server_hostname
                    )
        except BaseException:
            self._transport.abort()
            raise
        if inner is None:  # the connection was lost meanwhile
            raise httpcore2.ConnectError("The connection was closed.")
        self._received.transport = inner
        return Connection(inner, self._received)

    def get_extra_info(self, info: str) -> Any:
        """What the HTTP layer asks for: `is_readable`, `ssl_object`, `socket`, `client_addr`, `server_addr`."""
        if info == "is_readable":
            raw = self._transport.get_extra_info("socket")
            return bool(self._received.got) or self._received.is_over or raw is None or _is_readable(raw)
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._transport.get_extra_info(names.get(info, info))

    def _send(self) -> None:
        if self._unsent and not self._is_closed:
            data = bytes(self._unsent)
            self._unsent.clear()
            self._transport.write(data)


class Network(httpcore2.AsyncNetworkBackend):
    """Opens connections on the running loop."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to a host. Raises `httpcore2.ConnectError` and `ConnectTimeout`."""
        loop = asyncio.get_running_loop()
        local = (local_address, 0) if local_address else None

        async def connect(address: str) -> Connection:
            transport, received = await loop.create_connection(_Bytes, address, port, local_addr=local)
            for option in socket_options or ():
                transport.get_extra_info("socket").setsockopt(*option)
            return Connection(transport, received)

        with _raising(httpcore2.ConnectTimeout, httpcore2.ConnectError):
            async with asyncio.timeout(timeout):
                return await _first(await _addresses(host, port), connect)
        raise AssertionError

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Nothing: no model service is asked so."""
        del timeout, socket_options
        raise httpcore2.UnsupportedProtocol(f"No service is asked by a file such as {path!r}.")

    async def sleep(self, seconds: float) -> None:
        """Wait, between two tries to connect."""
        await asyncio.sleep(seconds)


class _Connect(Protocol):
    async def __call__(self, address: str) -> Connection: ...


async def _addresses(host: str, port: int) -> list[str]:
    """Where a host is; one that is an address already is not looked up."""
    with suppress(ValueError):
        return [str(ip_address(host))]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


async def _first(addresses: Sequence[str], connect: _Connect) -> Connection:
    """A connection to whichever of a name's addresses answers first; the next is tried where one keeps silent."""
    if len(addresses) == 1:
        return await connect(addresses[0])
    left, tries = list(addresses), set[asyncio.Task[Connection]]()
    error: BaseException = OSError("The name has no address.")
    try:
        while left or tries:
            if left:
                tries.add(asyncio.ensure_future(connect(left.pop(0))))
            wait = _NEXT_ADDRESS if left else None
            done, tries = await asyncio.wait(tries, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                error = one.exception() or error
                if one.exception() is None:
                    tries |= done - {one}
                    return one.result()
        raise error
    finally:
        for one in tries:
            one.cancel()
            one.add_done_callback(_unused)


def _is_readable(raw: socket.socket) -> bool:
    """Whether something came on a connection that rests: then it is about to be closed."""
    if raw.fileno() < 0:
        return True
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([raw], [], [], 0)[0])
    asked = select.poll()
    asked.register(raw.fileno(), select.POLLIN)
    return bool(asked.poll(0))


def _unused(trying: asyncio.Task[Connection]) -> None:
    if not trying.cancelled() and trying.exception() is None:
        trying.result().close()


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


@contextmanager
def _raising(late: type[Exception], failed: type[Exception]) -> Generator[None]:
    """Errors of the loop as those that the HTTP layer knows."""
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except OSError as error:
        raise failed(str(error)) from error


class Transport(httpx2.AsyncHTTPTransport):
    """Sends the requests of an HTTP client over such connections, through no proxy.

    Args:
        trusted: The certificates to trust; they are read if left out.
        limits: How many connections there may be.
    """

    def __init__(self, trusted: ssl.SSLContext | None = None, limits: httpx2.Limits | None = None) -> None:
        limits = limits or httpx2.Limits(max_connections=100, max_keepalive_connections=20)
        trusted = trusted or httpx2.create_ssl_context()
        super().__init__(verify=trusted, trust_env=False, limits=limits)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trusted,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=Network(),
        )
