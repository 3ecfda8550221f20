"""Connections to model services: a request goes out in one, and the first words of a reply wait for nothing."""

from __future__ import annotations

import asyncio
import socket
import ssl
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from core.llm.backends import http_clients, network
from core.llm.backends.http_clients import PublicTransport
from core.llm.backends.network import FLOWING, Transport

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"
KEY = {"Authorization": "Bearer secret"}
TURNS = 50  # of the loop, in which what was said is heard


class Listener(asyncio.Protocol):
    """Keeps what comes, as it comes, and answers each request with `ok`."""

    answer: bytes = HEAD + b"ok"

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.transport: asyncio.Transport | None = None
        self.is_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        if data.endswith(b"}") and self.transport is not None:
            self.transport.write(self.answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True

    def say(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)

    def leave(self) -> None:
        assert self.transport is not None
        self.transport.close()


class Streaming(Listener):
    """Begins an answer, of which the test says the rest."""

    answer = ENDLESS


@asynccontextmanager
async def listening(
    kind: type[Listener] = Listener, secure: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[list[Listener], int]]:
    made: list[Listener] = []

    def make() -> Listener:
        made.append(kind())
        return made[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0, ssl=secure)
    async with server:
        yield made, server.sockets[0].getsockname()[1]
        for one in made:
            if one.transport is not None:
                one.transport.abort()


async def turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


@asynccontextmanager
async def streamed(seconds: float | None = 5) -> AsyncIterator[tuple[Listener, AsyncIterator[bytes]]]:
    """An answer that has begun, and its pieces."""
    limits = httpx2.Timeout(5, read=seconds)
    async with (
        listening(Streaming) as (made, port),
        httpx2.AsyncClient(transport=Transport(), timeout=limits) as client,
        client.stream("POST", f"http://127.0.0.1:{port}/", json={}) as answer,
    ):
        yield made[0], answer.aiter_bytes()


async def flowing(service: Listener, pieces: AsyncIterator[bytes]) -> None:
    """Say pieces one after another, until what follows is gathered."""
    for number in range(FLOWING + 1):  # the first came long after the one before it, which there is not
        service.say(b"%d" % number)
        assert await anext(pieces) == b"%d" % number


async def test_head_and_body_of_a_request_go_out_together_and_its_connection_is_used_again() -> None:
    async with listening() as (made, port), httpx2.AsyncClient(transport=Transport()) as client:
        for _ in range(2):
            answer = await client.post(f"http://127.0.0.1:{port}/", json={"a": 1})
            assert answer.text == "ok"
    (one,) = made
    assert [piece.endswith(b'\r\n\r\n{"a":1}') for piece in one.pieces] == [True, True]


async def test_a_request_says_what_its_head_says_and_nothing_besides() -> None:
    async with listening() as (made, port), httpx2.AsyncClient(transport=Transport()) as client:
        said = [(b"X-Said", "é".encode())]
        request = client.build_request("POST", f"http://127.0.0.1:{port}/a%2Fb%41?c=%20", content=b"{}", headers=said)
        for name in ("accept", "accept-encoding", "user-agent"):
            del request.headers[name]
        await client.send(request)
    expected = f"POST /a%2Fb%41?c=%20 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    assert made[0].pieces[0].decode() == (
        f"{expected}Connection: keep-alive\r\nX-Said: é\r\nContent-Length: 2\r\n\r\n{{}}"
    )


async def test_a_body_of_unknown_length_is_sent_as_it_is_made() -> None:
    async def parts() -> AsyncGenerator[bytes, None]:
        yield b"{"
        yield b"}"

    async with listening() as (made, port), httpx2.AsyncClient(transport=Transport()) as client:
        posting = asyncio.ensure_future(client.post(f"http://127.0.0.1:{port}/", content=parts()))
        while not made or not b"".join(made[0].pieces).endswith(b"0\r\n\r\n"):
            await asyncio.sleep(0)
        made[0].say(HEAD + b"ok")
        assert (await posting).text == "ok"
    assert b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n" in b"".join(made[0].pieces)


async def test_the_first_pieces_are_told_at_once_and_those_of_a_fast_reply_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "GATHERED", 0.3)
    async with streamed() as (service, pieces):
        await flowing(service, pieces)
        reading = asyncio.ensure_future(anext(pieces))
        for piece in (b"a", b"b"):
            await turns()
            service.say(piece)
        assert await reading == b"ab"


async def test_nobody_is_woken_for_each_piece_that_is_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "GATHERED", 2.0)
    heard: list[bytes] = []
    feed = aiohttp.StreamReader.feed_data
    noted = lambda self, data, *more: heard.append(data) or feed(self, data, *more)  # noqa: E731 - as a method
    monkeypatch.setattr(aiohttp.StreamReader, "feed_data", noted)
    async with streamed() as (service, pieces):
        await flowing(service, pieces)
        heard.clear()
        reading = asyncio.ensure_future(anext(pieces))
        await turns()
        for number in range(5):
            service.say(b"%d" % number)
            await turns()
        assert heard == []
        assert await reading == b"01234"


async def test_the_end_of_a_reply_that_is_gathered_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "GATHERED", 0.3)
    async with streamed() as (service, pieces):
        await flowing(service, pieces)
        reading = asyncio.ensure_future(anext(pieces))
        await turns()
        service.say(b"end")
        service.leave()
        assert await reading == b"end"
        assert [piece async for piece in pieces] == []


@pytest.mark.parametrize("quickly", [False, True], ids=["alone", "gathered"])
async def test_what_came_before_a_connection_broke_is_told_however_late_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, *, quickly: bool
) -> None:
    monkeypatch.setattr(network, "GATHERED", 0.1)

    class Chunked(Listener):
        answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

    async with (
        listening(Chunked) as (made, port),
        httpx2.AsyncClient(transport=Transport()) as client,
        client.stream("POST", f"http://127.0.0.1:{port}/", json={}) as answer,
    ):
        pieces = answer.aiter_bytes()
        for _ in range(FLOWING + 1 if quickly else 1):
            made[0].say(b"1\r\n-\r\n")
            assert await anext(pieces) == b"-"
        made[0].say(b"3\r\nend\r\n")
        await turns()
        made[0].leave()
        await turns()
        assert await anext(pieces) == b"end"
        with pytest.raises(httpx2.RemoteProtocolError):
            await anext(pieces)


async def test_a_reply_that_is_left_while_it_is_gathered_closes_its_connection_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(network, "GATHERED", 60.0)
    async with streamed() as (service, pieces):
        await flowing(service, pieces)
        reading = asyncio.ensure_future(anext(pieces))
        await turns()
        reading.cancel()
        await asyncio.wait({reading})
        assert reading.cancelled()
    while not service.is_over:
        await asyncio.sleep(0)


async def test_a_service_that_sends_more_than_is_read_is_let_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "GATHERED", 0.001)
    async with streamed() as (service, pieces):
        await flowing(service, pieces)
        service.say(b"x" * 50_000_000)
        assert service.transport is not None
        lengths: list[int] = []
        for _ in range(6):
            lengths.append(len(await anext(pieces)))
            await turns()
        assert service.transport.get_write_buffer_size() > 20_000_000
        assert max(lengths) <= 1_000_000, "what is held, and the piece of the system that came over it"


async def test_a_body_that_is_stopped_on_its_way_goes_no_further() -> None:
    async with listening() as (made, port), httpx2.AsyncClient(transport=Transport()) as client:
        posting = asyncio.ensure_future(client.post(f"http://127.0.0.1:{port}/", content=b"x" * 50_000_000))
        while not made or not made[0].pieces:
            await asyncio.sleep(0)
        assert made[0].transport is not None
        made[0].transport.pause_reading()
        await turns()
        posting.cancel()
        await asyncio.wait({posting})
        made[0].transport.resume_reading()
        while not made[0].is_over:
            await asyncio.sleep(0)
    assert sum(map(len, made[0].pieces)) < 30_000_000


async def test_silence_and_a_service_that_takes_nothing_are_told_as_what_they_are() -> None:
    async with streamed(0.01) as (_, pieces):
        with pytest.raises(httpx2.ReadTimeout):
            await anext(pieces)
    limits = httpx2.Timeout(30, write=0.05)
    async with (
        listening() as (made, port),
        httpx2.AsyncClient(transport=Transport(), timeout=limits) as client,
    ):
        posting = asyncio.ensure_future(client.post(f"http://127.0.0.1:{port}/", content=b"x" * 50_000_000))
        while not made or made[0].transport is None:
            await asyncio.sleep(0)
        made[0].transport.pause_reading()
        with pytest.raises(httpx2.WriteTimeout):
            await posting
    async with httpx2.AsyncClient(transport=Transport()) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(f"http://127.0.0.1:{port}/")


async def test_whoever_reads_slowly_is_not_told_that_the_service_was_silent() -> None:
    async with streamed(0.05) as (service, pieces):
        for said in (b"one", b"two"):
            service.say(said)
            assert await anext(pieces) == said
            rested = asyncio.Event()
            asyncio.get_running_loop().call_later(0.15, rested.set)
            await rested.wait()
        with pytest.raises(httpx2.ReadTimeout):
            await anext(pieces)


@pytest.mark.parametrize(
    "said",
    [
        b"hello\r\n\r\n",
        b"",
        HEAD + b"o",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\no",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nok",
    ],
    ids=["another protocol", "nothing", "half", "half a chunk", "no chunk"],
)
async def test_an_answer_that_is_none_or_half_of_one_is_an_error_that_shows_no_key(said: bytes) -> None:
    class Broken(Listener):
        answer = said

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.leave()

    async with listening(Broken) as (_, port), httpx2.AsyncClient(transport=Transport()) as client:
        with pytest.raises(httpx2.RemoteProtocolError) as caught:
            await client.post(f"http://127.0.0.1:{port}/", json={}, headers=KEY)
    assert "secret" not in "".join(traceback.format_exception(caught.value))


async def test_a_head_with_a_line_break_in_it_is_not_sent() -> None:
    async with listening() as (made, port), httpx2.AsyncClient(transport=Transport()) as client:
        with pytest.raises(httpx2.LocalProtocolError):
            await client.post(f"http://127.0.0.1:{port}/", json={}, headers={"X-A": "b\r\nX-C: d"})
        await turns()
    assert all(b"X-C" not in piece for one in made for piece in one.pieces)


async def test_a_resting_connection_that_was_closed_while_the_loop_was_busy_is_not_used() -> None:
    async with listening() as (made, port), httpx2.AsyncClient(transport=Transport()) as client:
        url = f"http://127.0.0.1:{port}/"
        assert (await client.post(url, json={})).text == "ok"
        assert made[0].transport is not None
        made[0].transport.get_extra_info("socket").shutdown(2)  # heard of once the loop looks
        assert (await client.post(url, json={})).text == "ok"
        assert len(made) == 2


async def test_of_the_addresses_of_a_name_the_one_that_answers_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    asked: list[object] = []
    async with listening() as (_, closed):
        pass

    async with listening() as (_, port), httpx2.AsyncClient(transport=Transport()) as client:

        async def told(host: object, *_: object, **__: object) -> object:
            asked.append(host)
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*kind, ("127.0.0.1", one)) for one in (closed, port)]

        monkeypatch.setattr(loop, "getaddrinfo", told)
        assert (await client.post(f"http://service.example:{port}/", json={})).text == "ok"
    assert asked == ["service.example"]


async def test_a_name_that_is_looked_up_without_end_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*_: object, **__: object) -> object:
        return await asyncio.Event().wait()

    monkeypatch.setattr(network, "_LOOKUP_SECONDS", 0.01)
    async with httpx2.AsyncClient(transport=Transport()) as client:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", silent)
        with pytest.raises(httpx2.ConnectTimeout):
            await client.get("http://service.example/")


@contextmanager
def certified(folder: Path, name: str) -> Generator[tuple[ssl.SSLContext, ssl.SSLContext]]:
    """What a server of that name shows, and a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    said = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC) - timedelta(1)
    made = x509.CertificateBuilder(said, said, key.public_key(), x509.random_serial_number(), now, now + timedelta(3))
    signed = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False).sign(key, SHA256())
    file = folder / "own.pem"
    whole = signed.public_bytes(Encoding.PEM)
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + whole)
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(file)
    yield shown, ssl.create_default_context(cadata=whole.decode())


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have this machine stand for the open internet, on one port."""

    def on(port: int) -> None:
        monkeypatch.setattr(http_clients, "is_public", lambda address: address == "127.0.0.1")
        monkeypatch.setattr(http_clients, "PORTS", {port})

    return on


async def test_the_certificate_is_the_names_though_the_address_is_asked(
    tmp_path: Path, public: Callable[[int], None]
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        del host, port
        return ["127.0.0.1"]

    with certified(tmp_path, "service.example") as (shown, trusting):
        async with (
            listening(secure=shown) as (made, port),
            httpx2.AsyncClient(transport=PublicTransport(resolve, trusting)) as client,
        ):
            public(port)
            answer = await client.post(f"https://service.example:{port}/", json={})
            assert answer.text == "ok"
            assert f"Host: service.example:{port}".encode() in made[0].pieces[0]
            with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await client.post(f"https://other.example:{port}/", json={})
            assert sum(len(one.pieces) for one in made) == 1
