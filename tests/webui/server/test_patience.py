"""Nobody holds a connection by saying nothing, and no head is taken in without end."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.server import ServerState
from websockets.asyncio.client import connect

from core.settings import Settings
from webui.server import Joined, PatientProtocol, Server

pytestmark = pytest.mark.anyio

HEAD = b"POST / HTTP/1.1\r\nhost: a\r\n"
WHOLE = HEAD + b"content-length: 4\r\n\r\nbody"


class Hurried(PatientProtocol):
    """Waits a moment."""

    head_seconds = 0.1
    body_seconds = 0.1
    write_seconds = 0.4


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Says how much came."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
    await send({"type": "http.response.body", "body": str(size).encode()[:1]})


@asynccontextmanager
async def connected(
    kind: type[PatientProtocol] = Hurried, app: Any = answer
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    config = Config(app, http=kind, log_config=None, ws="none", lifespan="off")
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0)
    [listening] = server.sockets
    mine = socket.socket()
    mine.setblocking(False)
    # Little is on the way at once: else the system would take whole answers that nobody reads.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**14)
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**14)
    await loop.sock_connect(mine, listening.getsockname())
    reader, writer = await asyncio.open_connection(sock=mine)
    try:
        yield reader, writer
    finally:
        writer.close()
        server.close()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """All that still came, once the other side has ended it."""
    said = b""
    try:
        while piece := await reader.read(1024):
            said += piece
    except ConnectionError:
        pass
    return said


Step = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


async def a_request_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(WHOLE)
    assert (await reader.readuntil(b"\r\n\r\n4")).startswith(b"HTTP/1.1 200")


async def nothing_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    del reader, writer


@pytest.mark.parametrize(
    ("before", "sent"),
    [
        (nothing_first, b""),
        (nothing_first, HEAD),
        (nothing_first, HEAD + b"content-length: 4\r\n\r\nbo"),
        (nothing_first, HEAD + b"transfer-encoding: chunked\r\n\r\n"),
        (a_request_first, HEAD),
        (a_request_first, b"\r\n"),
        (a_request_first, HEAD + b"content-length: 4\r\n\r\n"),
    ],
)
async def test_who_sends_nothing_more_is_not_waited_for(before: Step, sent: bytes) -> None:
    async with asyncio.timeout(20), connected() as (reader, writer):
        await before(reader, writer)
        writer.write(sent)
        assert await ended(reader) == b""


async def test_a_head_that_trickles_in_has_no_more_time_than_any_other() -> None:
    async with asyncio.timeout(20), connected() as (reader, writer):
        over = asyncio.ensure_future(ended(reader))
        writer.write(b"GET /")
        while not over.done():
            writer.write(b"a")
            await asyncio.wait({over}, timeout=0.02)
        assert await over == b""


async def test_while_an_answer_is_made_nobody_is_hurried() -> None:
    begun, may = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await may.wait()
        await answer(scope, receive, send)

    async with asyncio.timeout(20), connected(Hurried, slow) as (reader, writer), connected() as (quiet, _):
        writer.write(WHOLE)
        await begun.wait()
        await ended(quiet)  # as long as one is waited for that says nothing
        may.set()
        assert (await reader.readuntil(b"\r\n\r\n4")).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\na: ", b"GET /", HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\na: "]
)
async def test_a_head_without_end_is_refused(sent: bytes) -> None:
    async with asyncio.timeout(20), connected(PatientProtocol) as (reader, writer):
        over = asyncio.ensure_future(ended(reader))
        writer.write(sent)
        written = 0
        while not over.done():
            assert written < 2**23
            writer.write(b"a" * 2**14)
            written += 2**14
            await asyncio.wait({over}, timeout=0.01)
        assert b"200" not in await over


WANTED = 2**21


class Seen(Hurried):
    """Tells how its connections stand."""

    lost: ClassVar[asyncio.Event]
    full: ClassVar[asyncio.Event]

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.full.set()


@pytest.fixture
def seen() -> type[Seen]:
    class Fresh(Seen):
        lost, full = asyncio.Event(), asyncio.Event()

    return Fresh


async def at_once(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with much, in one piece: it is done long before anybody has read it."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % WANTED)]})
    await send({"type": "http.response.body", "body": b"a" * WANTED})


async def piece_by_piece(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with as much, in pieces that each wait for those before."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % WANTED)]})
    for _ in range(WANTED // 2**14):
        await send({"type": "http.response.body", "body": b"a" * 2**14, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("app", [at_once, piece_by_piece])
@pytest.mark.parametrize("more", [b"", b"connection: close\r\n"])
async def test_who_never_reads_the_answer_is_not_waited_for(app: Any, more: bytes, seen: type[Seen]) -> None:
    async with asyncio.timeout(20), connected(seen, app) as (_, writer):
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n" + more + b"\r\n")
        await seen.lost.wait()
        assert seen.full.is_set()


@pytest.mark.parametrize("app", [at_once, piece_by_piece])
async def test_who_reads_slowly_gets_all_of_it(app: Any, seen: type[Seen]) -> None:
    async with asyncio.timeout(180), connected(seen, app) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        lost = asyncio.ensure_future(seen.lost.wait())
        began, got = time.monotonic(), 0
        await reader.readuntil(b"\r\n\r\n")
        while piece := await reader.read(2**14):
            got += len(piece)
            await asyncio.wait({lost}, timeout=0.01)
        lost.cancel()
        assert got == WANTED
        assert seen.full.is_set()
        assert time.monotonic() - began > 2 * seen.write_seconds


async def test_parlour_listens_so_and_waits_for_readers_as_long_as_its_settings_say() -> None:
    given: list[dict[str, Any]] = [{}, {"write_seconds": 7.0}]
    kinds = [Server(answer, lambda: None, **more).config.http for more in given]
    for kind, seconds in zip(kinds, (Settings().write_seconds, 7.0), strict=True):
        assert isinstance(kind, type)
        assert issubclass(kind, PatientProtocol)
        assert kind.write_seconds == seconds
    assert PatientProtocol.write_seconds == 300


class Counting(asyncio.Transport):
    """Keeps what is sent, each time by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.is_closed = False

    def write(self, data: Any) -> None:
        assert not self.is_closed
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True

    def get_write_buffer_size(self) -> int:
        return 3


async def test_an_answers_head_and_the_beginning_of_its_body_are_sent_in_one_and_nothing_large_is_held() -> None:
    inner = Counting()
    joined = Joined(inner, asyncio.get_running_loop())
    joined.write(b"head")
    joined.write(b"body")
    assert (inner.sent, joined.get_write_buffer_size()) == ([], 11)
    await asyncio.sleep(0)
    assert (inner.sent, joined.get_write_buffer_size()) == ([b"headbody"], 3)
    joined.write(b"x" * (Joined.most + 1))
    assert len(inner.sent) == 2
    joined.write(b"last")
    joined.close()
    await asyncio.sleep(0)
    assert (inner.sent[2:], inner.is_closed) == ([b"last"], True)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Says over a WebSocket what it is told."""
    assert scope["type"] == "websocket"
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def test_who_speaks_by_websocket_may_keep_silent_for_longer_than_a_head_takes() -> None:
    config = Config(echo, http=Hurried, log_config=None, ws="auto", lifespan="off")
    config.load()
    made: list[Hurried] = []

    def make() -> Hurried:
        made.append(Hurried(config=config, server_state=ServerState(), app_state={}))
        return made[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    async with server, connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/") as over:
        assert made[0]._timer is None  # pyright: ignore[reportPrivateUsage]
        await over.send("Hello!")
        assert await over.recv() == "Hello!"
