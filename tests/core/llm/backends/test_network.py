"""Connections to model services: a request goes out in one, and the first words of a reply wait for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpcore2
import httpx2
import pytest

from core.llm.backends import network
from core.llm.backends.network import FLOWING, Connection, Network, Transport

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Listener(asyncio.Protocol):
    """Keeps what comes, as it comes, and answers each request with `ok`."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        if data.endswith(b"}") and self.transport is not None:
            self.transport.write(HEAD + b"ok")

    def say(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[list[Listener], int]]:
    made: list[Listener] = []

    def make() -> Listener:
        made.append(Listener())
        return made[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    async with server:
        yield made, server.sockets[0].getsockname()[1]


async def opened(port: int) -> Connection:
    connection = await Network().connect_tcp("127.0.0.1", port, timeout=5)
    assert isinstance(connection, Connection)
    return connection


async def test_head_and_body_of_a_request_go_out_together_and_its_connection_is_used_again() -> None:
    async with listening() as (made, port), httpx2.AsyncClient(transport=Transport()) as client:
        for _ in range(2):
            answer = await client.post(f"http://127.0.0.1:{port}/", json={"a": 1})
            assert answer.text == "ok"
    (one,) = made
    assert [piece.endswith(b'\r\n\r\n{"a":1}') for piece in one.pieces] == [True, True]


async def test_the_first_pieces_are_told_at_once_and_those_of_a_fast_reply_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "GATHERED", 0.3)
    async with listening() as (made, port):
        connection = await opened(port)
        await connection.write(b"go")
        for number in range(FLOWING + 1):  # the first came long after the one before it, which there is not
            while not made or made[0].transport is None:
                await asyncio.sleep(0)
            made[0].say(b"%d" % number)
            assert await connection.read(100) == b"%d" % number
        reading = asyncio.ensure_future(connection.read(100))
        made[0].say(b"a")
        while not connection.get_extra_info("is_readable"):
            await asyncio.sleep(0)
        made[0].say(b"b")
        assert await reading == b"ab"
        await connection.aclose()


async def flowing(connection: Connection, made: list[Listener]) -> None:
    """Say pieces one after another, until what follows is gathered."""
    await connection.write(b"go")
    while not made or made[0].transport is None:
        await asyncio.sleep(0)
    for _ in range(FLOWING + 1):
        made[0].say(b"-")
        assert await connection.read(100) == b"-"


async def test_nobody_is_woken_for_each_piece_that_is_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "GATHERED", 2.0)
    heard: list[bytes] = []
    hear = network._Bytes.data_received  # pyright: ignore[reportPrivateUsage]
    noted = lambda self, data: heard.append(data) or hear(self, data)  # noqa: E731 - as a method
    monkeypatch.setattr(network._Bytes, "data_received", noted)  # pyright: ignore[reportPrivateUsage]
    async with listening() as (made, port):
        connection = await opened(port)
        await flowing(connection, made)
        heard.clear()
        reading = asyncio.ensure_future(connection.read(100))
        for number in range(5):
            made[0].say(b"%d" % number)
            for _ in range(20):
                await asyncio.sleep(0)
        assert heard == []
        assert await reading == b"01234"
        assert heard == [b"01234"]
        await connection.aclose()


async def test_the_end_of_a_reply_that_is_gathered_is_told_and_one_that_is_left_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "GATHERED", 0.3)
    async with listening() as (made, port):
        connection = await opened(port)
        await flowing(connection, made)
        reading = asyncio.ensure_future(connection.read(100))
        await asyncio.sleep(0)
        made[0].say(b"end")
        assert made[0].transport is not None
        made[0].transport.close()
        assert await reading == b"end"
        assert await connection.read(100) == b""
        await connection.aclose()
        other = await opened(port)
        while len(made) < 2:
            await asyncio.sleep(0)
        await flowing(other, made[1:])
        reading = asyncio.ensure_future(other.read(100))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait({reading})
        assert reading.cancelled()
        await other.aclose()
        with pytest.raises(httpcore2.ReadError):
            await other.read(10)


async def test_a_service_that_sends_more_than_is_read_is_let_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "GATHERED", 0.01)
    async with listening() as (made, port):
        connection = await opened(port)
        await flowing(connection, made)
        made[0].say(b"x" * 8_000_000)
        assert made[0].transport is not None
        held: list[int] = []
        for _ in range(12):
            await connection.read(1000)
            for _ in range(20):
                await asyncio.sleep(0)
            held.append(len(connection._received.got))  # pyright: ignore[reportPrivateUsage]
        most = network._MOST_HELD  # pyright: ignore[reportPrivateUsage]
        await connection.aclose()
        made[0].transport.abort()
        assert most < max(held) <= 2 * most, "what may be held, and the piece of the system that came over it"


async def test_what_is_more_than_asked_for_waits_and_the_end_is_told() -> None:
    async with listening() as (made, port):
        connection = await opened(port)
        await connection.write(b"{}")
        while not made or not made[0].pieces:
            await asyncio.sleep(0)
        made[0].say(b"x" * 600_000)
        assert made[0].transport is not None
        made[0].transport.close()
        got = b""
        while piece := await connection.read(64_000):
            assert len(piece) <= 64_000
            got += piece
        assert got == HEAD + b"ok" + b"x" * 600_000
        await connection.aclose()


async def test_silence_and_a_closed_connection_are_told_as_the_http_layer_knows_them() -> None:
    async with listening() as (_, port):
        connection = await opened(port)
        with pytest.raises(httpcore2.ReadTimeout):
            await connection.read(10, timeout=0.01)
        await connection.aclose()
        with pytest.raises(httpcore2.ReadError):
            await connection.read(10)
        with pytest.raises(httpcore2.WriteError):
            await connection.write(b"x")
    with pytest.raises(httpcore2.ConnectError):
        await opened(port)


async def test_of_the_addresses_of_a_name_the_one_that_answers_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_NEXT_ADDRESS", 0.01)
    async with listening() as (_, port):
        asked: list[str] = []

        async def connect(address: str) -> Connection:
            asked.append(address)
            if address == "silent":
                await asyncio.Event().wait()
            if address == "closed":
                raise OSError("Nobody is there.")
            return await opened(port)

        found = await network._first(["silent", "closed", "open"], connect)  # pyright: ignore[reportPrivateUsage]
        assert asked == ["silent", "closed", "open"]
        await found.aclose()
        with pytest.raises(OSError, match="Nobody"):
            await network._first(["closed", "closed"], connect)  # pyright: ignore[reportPrivateUsage]
