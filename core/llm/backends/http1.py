"""HTTP/1.1 to model services, over connections of `network.py`; answers are read by a parser that is written in C.

Who passes a reply on word by word spends most of the time here, on each of its pieces.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import httptools
import httpx2

from core.llm.backends.network import Connection, connected

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Mapping

_PIECE: Final = 64 * 1024  # bytes that are read at once
_LONGEST_HEAD: Final = 100 * 1024
_TOKEN: Final = rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]+"
_SAID: Final = rb"[^\x00\s]+(?:[ \t]+[^\x00\s]+)*"
_HEAD: Final = re.compile(rb"%b [\x21-\x7e]+ HTTP/1\.1\r\n(?:%b: (?:%b)?\r\n)*" % (_TOKEN, _TOKEN, _SAID))
_PORTS: Final = {"http": 80, "https": 443}


class _Answer:
    """One answer, as the parser finds it in what comes."""

    def __init__(self, method: str) -> None:
        self.status = 0
        self.reason = b""
        self.version = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.has_head = False
        self.is_over = False
        self.may_stay = False
        """Whether the connection can be used once more."""
        self._pieces: list[bytes] = []
        self._is_bodiless = method == "HEAD"
        self._unsaid = 0  # bytes that have made neither a head nor a piece of the body yet
        self._parser = parser = httptools.HttpResponseParser(self)
        # As lenient as HTTP clients are used to: some services end lines so, or say two lengths.
        parser.set_dangerous_leniencies(
            lenient_chunked_length=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def feed(self, data: bytes) -> None:
        """Take in what came; nothing at the end. Raises httpx2.RemoteProtocolError."""
        if not data:
            self._end()
            return
        self._unsaid += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.may_stay = False
            if not self.is_over:
                raise httpx2.RemoteProtocolError(f"malformed answer: {error}") from error
        if self._unsaid > _LONGEST_HEAD and not self.is_over:
            raise httpx2.RemoteProtocolError("malformed answer: a head without end")

    def taken(self) -> bytes:
        """What came of the body, which is taken then."""
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _end(self) -> None:
        if not self.has_head:
            raise httpx2.RemoteProtocolError("Server disconnected without sending a response.")
        names = {name.lower() for name, _ in self.headers}
        if not self.is_over and names & {b"content-length", b"transfer-encoding"}:
            raise httpx2.RemoteProtocolError("Server disconnected before the answer was whole.")
        self.is_over = True

    # -- what the parser calls ------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """An answer begins: a second one was not asked for."""
        if self.is_over:
            self.may_stay = False

    def on_status(self, status: bytes) -> None:
        """What the status is called."""
        if not self.is_over:
            self.reason = status

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or one after the body, which nobody reads."""
        if not self.has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """A head is whole; one before the answer itself tells nothing."""
        status = self._parser.get_status_code()
        if self.has_head or 100 <= status < 200:
            self.headers = self.headers if self.has_head else []
            return
        self.status, self.has_head, self._unsaid = status, True, 0
        self.version = b"HTTP/" + self._parser.get_http_version().encode("ascii")
        if self._is_bodiless:  # the parser waits for what the head announces
            self.is_over = True

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._unsaid = 0
        if not self.is_over:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self.has_head and not self.is_over:
            self.is_over, self.may_stay = True, self._parser.should_keep_alive()


class _Place(NamedTuple):
    """Who is connected with.

    Args:
        name: Whom the certificate must name.
    """

    scheme: str
    host: str
    port: int
    name: str


@dataclass(slots=True, eq=False)
class _Line:
    """A connection, and with whom."""

    place: _Place
    connection: Connection
    rests_since: float = 0.0


class Transport(httpx2.AsyncBaseTransport):
    """Sends the requests of an HTTP client of one loop, through no proxy.

    Args:
        trusted: The certificates to trust; they are read if left out.
        limits: How many connections there may be.
    """

    def __init__(self, trusted: ssl.SSLContext | None = None, limits: httpx2.Limits | None = None) -> None:
        limits = limits or httpx2.Limits(max_connections=100, max_keepalive_connections=20)
        self._trusted = trusted or httpx2.create_ssl_context()
        self._trusted.set_alpn_protocols(["http/1.1"])
        unlimited = float("inf")
        self._most = unlimited if limits.max_connections is None else limits.max_connections
        kept = limits.max_keepalive_connections
        self._most_resting = unlimited if kept is None else kept
        self._rest = unlimited if limits.keepalive_expiry is None else limits.keepalive_expiry
        self._count = 0  # lines that are open, or being opened
        self._open: set[_Line] = set()
        self._resting: list[_Line] = []  # the one that rests for longest first
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and read the head of its answer.

        Raises:
            httpx2.TransportError: It cannot be sent, nobody answers in time, or what comes is no answer.
        """
        head = _head_of(request)
        seconds: Mapping[str, float | None] = request.extensions.get("timeout", {})
        line = await self._line(_place_of(request), seconds)
        answer = _Answer(request.method)
        try:
            await _say(line.connection, request, head, seconds.get("write"))
            while not answer.has_head:
                answer.feed(await line.connection.read(_PIECE, seconds.get("read")))
        except BaseException:
            self._close(line)
            raise
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(self, line, answer, seconds.get("read")),
            extensions={"http_version": answer.version, "reason_phrase": answer.reason},
        )

    async def aclose(self) -> None:
        """Close all connections."""
        for line in list(self._open):
            self._close(line)
        await asyncio.sleep(0)  # in which the loop closes them

    def left(self, line: _Line, answer: _Answer) -> None:
        """Nobody reads this answer any more."""
        if not (answer.is_over and answer.may_stay and self._most_resting) or line not in self._open:
            self._close(line)
            return
        line.rests_since = asyncio.get_running_loop().time()
        self._resting.append(line)
        if len(self._resting) > self._most_resting:
            self._close(self._resting[0])
        self._wake()

    # -- inside ---------------------------------------------------------------------------------------------------

    async def _line(self, place: _Place, seconds: Mapping[str, float | None]) -> _Line:
        """A connection that nobody else uses. Raises httpx2.TransportError."""
        found = self._rested(place)
        if found is None and self._count >= self._most:
            try:
                async with asyncio.timeout(seconds.get("pool")):
                    found = await self._turn(place)
            except TimeoutError as error:
                raise httpx2.PoolTimeout("All connections are in use.") from error
        if found is not None:
            return found
        self._count += 1
        try:
            connection = await _opened(place, self._trusted, seconds.get("connect"))
        except BaseException:
            self._count -= 1
            self._wake()
            raise
        line = _Line(place, connection)
        self._open.add(line)
        return line

    def _rested(self, place: _Place) -> _Line | None:
        """One that rests, for who asks the same; those that rested for too long are closed, and those that ended."""
        due = asyncio.get_running_loop().time() - self._rest
        while self._resting and self._resting[0].rests_since < due:
            self._close(self._resting[0])
        for line in [one for one in reversed(self._resting) if one.place == place]:
            if not line.connection.is_readable:  # something that came meanwhile is its end
                self._resting.remove(line)
                return line
            self._close(line)
        return None

    async def _turn(self, place: _Place) -> _Line | None:
        """Wait until there is room for one more, or one rests."""
        found, again = None, False
        while self._count >= self._most and (found := self._rested(place)) is None:
            if self._resting:
                self._close(self._resting[0])
                continue
            turn = asyncio.get_running_loop().create_future()
            (self._waiting.appendleft if again else self._waiting.append)(turn)
            again = True  # somebody was faster: who waited already is the next
            try:
                await turn
            except BaseException:
                if turn.done() and not turn.cancelled():
                    self._wake()
                elif turn in self._waiting:
                    self._waiting.remove(turn)
                raise
        return found

    def _close(self, line: _Line) -> None:
        if line not in self._open:
            return
        self._open.remove(line)
        if line in self._resting:
            self._resting.remove(line)
        line.connection.close()
        self._count -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, as it comes."""

    def __init__(self, transport: Transport, line: _Line, answer: _Answer, seconds: float | None) -> None:
        self._transport = transport
        self._line = line
        self._answer = answer
        self._seconds = seconds
        self._is_left = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        answer, read = self._answer, self._line.connection.read
        try:
            while True:
                if piece := answer.taken():
                    yield piece
                if answer.is_over:
                    break
                answer.feed(await read(_PIECE, self._seconds))
        finally:
            self._leave()

    async def aclose(self) -> None:
        """Leave it: where it is not over, a service hears of that before this returns."""
        if not self._is_left:
            self._leave()
            await asyncio.sleep(0)  # in which the loop closes the connection

    def _leave(self) -> None:
        if not self._is_left:
            self._is_left = True
            self._transport.left(self._line, self._answer)


def _place_of(request: httpx2.Request) -> _Place:
    """Raises httpx2.UnsupportedProtocol."""
    url = request.url
    if url.scheme not in _PORTS:
        raise httpx2.UnsupportedProtocol(f"Request URL has an unsupported protocol {url.scheme!r}.")
    host = url.raw_host.decode("ascii")
    return _Place(url.scheme, host, url.port or _PORTS[url.scheme], request.extensions.get("sni_hostname") or host)


def _head_of(request: httpx2.Request) -> bytes:
    """Raises httpx2.LocalProtocolError: something in it cannot be said in a head."""
    first = b"%b %b HTTP/1.1\r\n" % (request.method.encode("utf-8"), request.url.raw_path)
    headers = request.headers.raw
    head = first + b"".join([b"%b: %b\r\n" % header for header in headers])
    if head.count(b"\n") != 1 + len(headers) or _HEAD.fullmatch(head) is None:  # a line end would begin another header
        raise httpx2.LocalProtocolError("Illegal header: it has characters that none may have.")
    return head + b"\r\n"


async def _opened(place: _Place, trusted: ssl.SSLContext, seconds: float | None) -> Connection:
    connection = await connected(place.host, place.port, seconds)
    return connection if place.scheme == "http" else await connection.start_tls(trusted, place.name, seconds)


async def _say(connection: Connection, request: httpx2.Request, head: bytes, seconds: float | None) -> None:
    """Send a request. A service that breaks off while it is sent may have answered nevertheless."""
    told, in_chunks = request.headers.get("content-length"), "transfer-encoding" in request.headers
    left = int(told) if told is not None and told.isdecimal() and not in_chunks else None
    try:
        await connection.write(head, seconds)
        async for piece in cast("AsyncIterator[bytes]", request.stream):
            if in_chunks:
                await connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"", seconds)
                continue
            left = (left or 0) - len(piece)
            if left < 0:
                raise httpx2.LocalProtocolError("The body is longer than its head says.")
            await connection.write(piece, seconds)
        if left:
            raise httpx2.LocalProtocolError("The body is shorter than its head says.")
        if in_chunks:
            await connection.write(b"0\r\n\r\n", seconds)
    except httpx2.WriteError:
        return
