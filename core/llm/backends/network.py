"""Connections to model services: what is written goes out in one, and fast replies are read several pieces at a time.

`aiohttp` speaks HTTP here, with a parser in C: a piece that comes alone takes half of the processor time. Each time
another process is told of bytes, or tells of some, costs more than handling them does. So a request's head and body are
sent together, and of a reply whose pieces come faster than anybody reads, several are read at once.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

import aiohttp
import httpx2
from yarl import URL

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Mapping

    from aiohttp.abc import ResolveResult

GATHERED: Final = 0.016
"""Seconds for which a reply that comes faster is gathered: what a screen takes for one picture."""
FLOWING: Final = 8
"""Pieces that come so fast one after another before any is gathered: the first words are told at once."""
_SOON: Final = 0.002  # seconds in which what waited with the system is here
_NEXT_ADDRESS: Final = 0.25  # seconds after which another address of the same name is tried beside the first
_LOOKUP_SECONDS: Final = 5.0
_MOST_UNSENT: Final = 64 * 1024
_LONGEST_LINE: Final = 64 * 1024  # of a head, whose lines are 8,190 bytes and 128 otherwise
_MOST_LINES: Final = 1000
_UNSAID: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")  # what the client above says, or nobody


class _Names(aiohttp.ThreadedResolver):
    """The system's way to find the addresses of a name."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Where a host is."""
        async with asyncio.timeout(_LOOKUP_SECONDS):
            return await super().resolve(host, port, family)


class _Reply(httpx2.AsyncByteStream):
    """The body of one answer, as it comes.

    The connection is heard only while somebody waits for a piece: what comes before a connection breaks would be
    forgotten with the break, and nobody is woken for what is gathered. And only then is silence the service's.

    Args:
        answer: Its head has come.
        seconds: How long a piece may be waited for.
    """

    def __init__(self, answer: aiohttp.ClientResponse, seconds: float | None) -> None:
        self._answer = answer
        self._seconds = seconds
        self._unheard: asyncio.Transport | None = None
        if answer.connection is not None and (protocol := answer.connection.protocol) is not None:
            protocol.read_timeout = None  # it would count while nobody reads
            protocol.start_timeout()
        self._hear_nothing()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Each piece, or several that came fast. Raises `httpx2.TransportError`."""
        loop, content = asyncio.get_running_loop(), self._answer.content
        read_at = 0.0
        quick = 0  # pieces that came fast, one after another
        with _raising():
            while True:
                left, until = read_at + GATHERED - loop.time(), read_at + GATHERED
                if quick >= FLOWING and left > 0:
                    await asyncio.sleep(left)
                if quick >= FLOWING:
                    until = loop.time() + _SOON
                piece = content.read_nowait()
                if piece:
                    await asyncio.sleep(0)  # others have their turn, however much comes
                else:
                    self._hear()
                    try:
                        async with asyncio.timeout(self._seconds):
                            piece = await content.readany()
                    except TimeoutError as error:
                        raise httpx2.ReadTimeout(str(error)) from None
                self._hear_nothing()
                if not piece:
                    return
                read_at = loop.time()
                quick = quick + 1 if read_at < until else 0
                yield piece

    async def aclose(self) -> None:
        """Close it: a service whose reply is left hears of it before this returns; nobody is said good-bye to."""
        if self._answer.connection is None:  # it is whole, and others have its connection
            return
        if (transport := self._answer.connection.transport) is not None:
            transport.abort()
        self._answer.close()
        await asyncio.sleep(0)  # in which the loop closes it

    def _hear(self) -> None:
        transport, self._unheard = self._unheard, None
        if transport is not None and not transport.is_closing():
            transport.resume_reading()

    def _hear_nothing(self) -> None:
        connection = self._answer.connection
        if connection is not None and (transport := connection.transport) is not None and not transport.is_closing():
            transport.pause_reading()
            self._unheard = transport


class Transport(httpx2.AsyncBaseTransport):
    """Sends the requests of an HTTP client over such connections, through no proxy and with no cookies of its own.

    Args:
        trusted: The certificates to trust; they are read if left out.
        limits: How many connections there may be.
    """

    def __init__(self, trusted: ssl.SSLContext | None = None, limits: httpx2.Limits | None = None) -> None:
        self._trusted = trusted or httpx2.create_ssl_context()
        self._limits = limits or httpx2.Limits(max_connections=100)
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. Raises `httpx2.TransportError`."""
        session = self._session = self._session or self._opened()
        # In two turns the loop hears of resting connections that were closed while it was busy with something else.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        limits: Mapping[str, float | None] = request.extensions.get("timeout", {})
        try:
            with _raising():
                answer = await self._answer(session, request, limits)
        except BaseException:
            await asyncio.sleep(0)  # in which the loop closes the connection
            raise
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": (answer.reason or "").encode()}
        return httpx2.Response(
            answer.status,
            headers=answer.raw_headers,
            stream=_Reply(answer, limits.get("read")),
            request=request,
            extensions=extensions,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _answer(
        self, session: aiohttp.ClientSession, request: httpx2.Request, limits: Mapping[str, float | None]
    ) -> aiohttp.ClientResponse:
        url = request.url
        place = f"{url.scheme}://{url.netloc.decode('ascii')}{url.raw_path.decode('ascii')}"
        told, coding = request.headers, request.headers.encoding
        has_body = "transfer-encoding" in told or told.get("content-length", "0") != "0"
        headers = [
            (name.decode("ascii"), value.decode(coding))
            for name, value in told.raw
            if name.lower() != b"transfer-encoding"  # which is worked out anew
        ]
        stream = cast("AsyncIterable[bytes]", request.stream)
        writing = asyncio.timeout(None)
        try:
            async with writing:
                return await session.request(
                    request.method,
                    URL(place, encoded=True),
                    headers=headers,
                    data=_unsent(stream, writing, limits.get("write")) if has_body else None,
                    allow_redirects=False,
                    server_hostname=request.extensions.get("sni_hostname"),
                    timeout=aiohttp.ClientTimeout(sock_connect=limits.get("connect"), sock_read=limits.get("read")),
                )
        except TimeoutError as error:
            if writing.expired():
                raise httpx2.WriteTimeout("") from error
            raise

    def _opened(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            ssl=self._trusted,
            limit=self._limits.max_connections or 0,
            keepalive_timeout=self._limits.keepalive_expiry,
            resolver=_Names(),
            use_dns_cache=False,
            happy_eyeballs_delay=_NEXT_ADDRESS,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_UNSAID,
            auto_decompress=False,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
            max_headers=_MOST_LINES,
        )


async def _unsent(
    stream: AsyncIterable[bytes], writing: asyncio.Timeout, seconds: float | None
) -> AsyncGenerator[bytes, None]:
    """A body in parts: who stops sends no more of it than was written, and each is taken within so many seconds."""
    loop = asyncio.get_running_loop()
    async for piece in stream:
        for start in range(0, len(piece), _MOST_UNSENT):
            _limit(writing, None if seconds is None else loop.time() + seconds)
            yield piece[start : start + _MOST_UNSENT]
            _limit(writing, None)


def _limit(writing: asyncio.Timeout, when: float | None) -> None:
    if not writing.expired():
        try:
            writing.reschedule(when)
        except RuntimeError:  # the service answered before it had all
            return


@contextmanager
def _raising() -> Generator[None]:
    """Errors of `aiohttp` as those that the client above knows. Its own show a request's head, with the key in it."""
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        raise httpx2.ConnectError(str(error.certificate_error)) from None
    except aiohttp.ClientConnectorError as error:
        raise httpx2.ConnectError(str(error.os_error)) from None
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx2.ConnectTimeout(str(error)) from None
    except aiohttp.SocketTimeoutError as error:
        raise httpx2.ReadTimeout(str(error)) from None
    except aiohttp.ClientResponseError as error:
        raise httpx2.RemoteProtocolError(f"illegal answer: {error.message}") from None
    except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError) as error:
        raise httpx2.RemoteProtocolError(str(error)) from None
    except (aiohttp.ClientError, OSError) as error:
        if isinstance(error, TimeoutError):
            raise
        raise httpx2.ReadError(str(error)) from None
    except ValueError as error:  # a line break in a header
        raise httpx2.LocalProtocolError(str(error)) from None
