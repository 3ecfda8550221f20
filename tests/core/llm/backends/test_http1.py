"""HTTP to model services: answers are read as they are sent, connections are used again, and no limit is passed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from core.llm.backends.http1 import Transport

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Service:
    """Answers each request of each connection with the next of its answers, the last one for ever.

    Attributes:
        asked: The requests, with their bodies.
        connections: How many were opened.
        held: Set it, and what answers wait for has come.
        left: Set when a connection ends.
    """

    def __init__(self, *answers: bytes, closes: bool = False, waits: bool = False) -> None:
        self._answers = list(answers)
        self._closes = closes
        self.asked: list[bytes] = []
        self.connections = 0
        self.held = asyncio.Event()
        self.came = asyncio.Event()
        self.left = asyncio.Event()
        if not waits:
            self.held.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                told = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
                body = b""
                if b"transfer-encoding" in told:
                    body = await reader.readuntil(b"0\r\n\r\n")
                elif told.get(b"content-length", b"0") != b"0" and b"x-unread" not in told:
                    body = await reader.readexactly(int(told[b"content-length"]))
                self.asked.append(head + body)
                self.came.set()
                await self.held.wait()
                writer.write(self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])
                await writer.drain()
                if self._closes:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.left.set()
            writer.close()


@asynccontextmanager
async def serving(service: Service, context: ssl.SSLContext | None = None) -> AsyncIterator[Service]:
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0, ssl=context)
    service.port = server.sockets[0].getsockname()[1]
    try:
        yield service
    finally:
        service.held.set()
        server.close()


def client(**limits: float | None) -> httpx2.AsyncClient:
    known = httpx2.Limits(**limits) if limits else None  # pyright: ignore[reportArgumentType]
    return httpx2.AsyncClient(transport=Transport(limits=known), timeout=5.0)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (OK, b"ok"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\nlater: 1\r\n\r\n", b"ok"),
        (b"HTTP/1.1 204 Nothing\r\n\r\n", b""),
        (b"HTTP/1.1 100 Go on\r\na: b\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 200\ncontent-length: 2\n\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 9\r\n\r\n2 \r\nok\r\n0\r\n\r\n", b"ok"),
    ],
    ids=["length", "chunks", "nothing", "said before", "bare line ends", "two lengths"],
)
async def test_every_form_of_an_answer_is_read_and_its_connection_is_used_again(answer: bytes, body: bytes) -> None:
    async with serving(Service(answer)) as service, client() as http:
        for _ in range(3):
            found = await http.get(service.url)
            assert (found.status_code, found.content) == (int(answer.split()[1]) if body == b"" else 200, body)
            assert "a" not in found.headers
            assert "later" not in found.headers
        assert service.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        OK + b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother",
        OK + b"\x00what is no answer",
    ],
    ids=["says so", "old", "another answer", "more"],
)
async def test_a_connection_that_ends_or_says_more_than_it_was_asked_is_used_for_nothing_else(answer: bytes) -> None:
    async with serving(Service(answer)) as service, client() as http:
        for _ in range(2):
            assert (await http.get(service.url)).text == "ok"
        assert service.connections == 2


async def test_what_an_answer_without_length_says_goes_on_until_the_connection_ends() -> None:
    async with serving(Service(b"HTTP/1.1 200 OK\r\n\r\nall of it", closes=True)) as service, client() as http:
        assert (await http.get(service.url)).text == "all of it"


async def test_an_answer_to_head_has_no_body_whatever_it_announces() -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"
    async with serving(Service(answer)) as service, client() as http:
        found = await http.head(service.url)
        assert (found.headers["content-length"], found.content) == ("100", b"")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "without sending"),
        (b"HTTP/1.1 200 OK\r\ncontent-len", "without sending"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok", "before the answer was whole"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n", "before the answer was whole"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nok\r\n", "malformed"),
        (b"220 mail ready\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\na: " + b"a" * 300_000, "malformed answer: a head without end"),
        (b"HTTP/1.1 101 Other\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "malformed"),
    ],
    ids=[
        "nothing",
        "half a head",
        "half a body",
        "no last chunk",
        "a bad chunk",
        "mail",
        "endless",
        "another protocol",
    ],
)
async def test_what_is_no_whole_answer_is_an_error_and_its_connection_is_closed(answer: bytes, said: str) -> None:
    async with serving(Service(answer, closes=True)) as service, client(max_connections=1) as http:
        for _ in range(2):  # the first one takes no room from the second
            with pytest.raises(httpx2.RemoteProtocolError, match=said):
                await http.get(service.url)
        assert service.connections == 2


async def test_a_line_end_in_a_header_is_refused_before_anything_is_sent() -> None:
    async with serving(Service(OK)) as service, client() as http:
        for headers in ({"x": "a\r\ny: b"}, {"x": "a\nb"}, {"x": "a\0"}, {"x y": "a"}, {"x": "a "}):
            with pytest.raises(httpx2.LocalProtocolError):
                await http.get(service.url, headers=headers)
        assert service.connections == 0


async def test_a_body_goes_out_whole_or_as_its_pieces_come() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"a", b"", b"bc"):
            yield piece

    async with serving(Service(OK)) as service, client() as http:
        await http.post(service.url, content=b"whole")
        await http.post(service.url, content=pieces())
        assert [one.partition(b"\r\n\r\n")[2] for one in service.asked] == [b"whole", b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"]
        for told in ("2", "9"):
            with pytest.raises(httpx2.LocalProtocolError, match=r"longer|shorter"):
                await http.post(service.url, content=pieces(), headers={"content-length": told})


async def test_a_service_that_refuses_a_body_before_it_came_is_heard() -> None:
    answer = b"HTTP/1.1 413 Too large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nno!"
    async with serving(Service(answer, closes=True)) as service, client() as http:
        found = await http.post(service.url, content=b"x" * 200_000, headers={"x-unread": "1"})
        assert (found.status_code, found.text) == (413, "no!")


async def test_a_connection_that_the_service_ended_meanwhile_is_not_used_again() -> None:
    async with serving(Service(OK, closes=True)) as service, client() as http:
        for _ in range(3):
            assert (await http.get(service.url)).text == "ok"
            await service.left.wait()
            service.left.clear()
        assert service.connections == 3


@pytest.mark.parametrize("limits", [{"keepalive_expiry": 0.0}, {"max_keepalive_connections": 0}])
async def test_a_connection_rests_no_longer_than_it_may(limits: dict[str, float]) -> None:
    async with serving(Service(OK)) as service, client(**limits) as http:
        for _ in range(2):
            await http.get(service.url)
        assert service.connections == 2


async def test_no_more_connections_are_open_than_agreed_and_who_waits_gets_the_next() -> None:
    async with serving(Service(OK, waits=True)) as service, client(max_connections=2) as http:
        asking = [asyncio.create_task(http.get(service.url)) for _ in range(5)]
        while len(service.asked) < 2:
            await asyncio.sleep(0)
        with pytest.raises(httpx2.PoolTimeout):
            await http.get(service.url, timeout=httpx2.Timeout(5.0, pool=0.01))
        asking[3].cancel()
        service.held.set()
        done = await asyncio.gather(*asking, return_exceptions=True)
        assert [isinstance(one, httpx2.Response) for one in done] == [True, True, True, False, True]
        assert (service.connections, len(service.asked)) == (2, 4)


async def test_a_resting_connection_makes_room_for_one_to_somebody_else() -> None:
    async with serving(Service(OK)) as one, serving(Service(OK)) as other, client(max_connections=1) as http:
        for service in (one, other, one):
            assert (await http.get(service.url)).text == "ok"
        assert (one.connections, other.connections) == (2, 1)


async def test_a_reply_that_is_left_or_cancelled_ends_its_connection_and_frees_its_place() -> None:
    begun = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n"
    async with serving(Service(begun)) as service, client(max_connections=1) as http:
        async with http.stream("GET", service.url) as answer:
            async for piece in answer.aiter_raw():
                assert piece == b"ok"
                break
        await service.left.wait()
        service.left.clear()
        asking = asyncio.create_task(http.get(service.url))
        service.came.clear()
        await service.came.wait()
        asking.cancel()
        await asyncio.wait({asking})
        assert asking.cancelled()
        await service.left.wait()
        with pytest.raises(httpx2.ReadTimeout):
            await http.get(service.url, timeout=httpx2.Timeout(5.0, read=0.01))
        assert service.connections == 3


async def test_closing_ends_what_is_open() -> None:
    async with serving(Service(OK)) as service:
        http = client()
        await http.get(service.url)
        await http.aclose()
        await service.left.wait()


async def test_another_protocol_than_http_is_refused() -> None:
    async with client() as http:
        with pytest.raises(httpx2.UnsupportedProtocol):
            await http.get("ftp://127.0.0.1/")


async def test_a_connection_serves_the_name_alone_that_its_certificate_was_checked_for(tmp_path: Path) -> None:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "one.example")])
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("one.example")]), critical=False)
        .sign(key, SHA256())
    )
    file = tmp_path / "one.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    trusted = ssl.create_default_context(cafile=str(file))
    async with (
        serving(Service(OK), context) as service,
        httpx2.AsyncClient(transport=Transport(trusted), timeout=5.0) as http,
    ):
        url = f"https://127.0.0.1:{service.port}/"
        for _ in range(2):
            assert (await http.get(url, extensions={"sni_hostname": "one.example"})).text == "ok"
        assert service.connections == 1
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await http.get(url, extensions={"sni_hostname": "two.example"})
