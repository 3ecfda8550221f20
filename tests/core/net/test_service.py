"""Asking a service with a key: guarded like a fetch, and the key goes to one address only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.errors import FetchError
from core.net.addresses import Reach
from core.net.fetcher import FetchLimits
from core.net.service import Answer, ask

pytestmark = pytest.mark.anyio

KEY = "sk-CANARY"


class Host:
    """A server that answers the same to all, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
        self.pause: asyncio.Event | None = None
        self.sent: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        self.sent.append(head + await reader.readexactly(int(length[0].split(b":")[1]) if length else 0))
        if self.pause:
            await self.pause.wait()
        writer.write(self.answer)
        writer.close()

    async def asked(self, **question: Any) -> Answer:
        reach = Reach(lambda address, port: (address, port) == ("127.0.0.1", self.port), question.pop("resolve", found))
        return await ask(f"http://service.example:{self.port}/v1?a=1", reach=reach, **question)


async def found(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    made = Host()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    if made.pause:
        made.pause.set()
    server.close()
    await server.wait_closed()


async def test_a_question_is_a_get_and_one_with_a_body_a_post_of_json(host: Host) -> None:
    await host.asked(query={"q": "冷却 & heat"})
    answer = await host.asked(body={"text": "half a \ud83d pair"}, headers={"x-api-key": KEY})
    get, post = host.sent
    assert get.startswith(b"GET /v1?a=1&q=%E5%86%B7%E5%8D%B4")
    assert post.startswith(b"POST /v1?a=1 ")
    assert b"content-type: application/json" in post.lower()
    assert f"x-api-key: {KEY}".encode() in post
    assert b"host: service.example:" in post.lower()
    assert (answer.status, answer.json(), answer.host) == (200, {}, "service.example")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_s4_s8_no_redirect_is_followed_so_no_key_goes_along(host: Host, status: int) -> None:
    host.answer = (
        f"HTTP/1.1 {status} Elsewhere\r\nlocation: http://service.example:{host.port}/other\r\n"
        "content-length: 0\r\n\r\n"
    ).encode()
    assert (await host.asked(body={"a": 1}, headers={"authorization": KEY})).status == status
    assert len(host.sent) == 1


async def test_s2_s3_a_name_is_looked_up_once_and_all_its_addresses_are_checked(host: Host) -> None:
    looked: list[str] = []

    async def both(name: str, port: int) -> list[str]:
        looked.append(name)
        return ["127.0.0.1", "10.0.0.7"]

    with pytest.raises(FetchError) as caught:
        await host.asked(headers={"authorization": KEY}, resolve=both)
    assert (caught.value.words_key, looked, host.sent) == ("fetch_private", ["service.example"], [])


@pytest.mark.parametrize("url", ["http://127.0.0.1:11434/v1", "http://[::ffff:a9fe:a9fe]/", "http://localhost:8080/"])
async def test_s1_s9_the_own_network_is_asked_only_where_that_is_said(url: str) -> None:
    with pytest.raises(FetchError) as caught:
        await ask(url, headers={"authorization": KEY})
    assert caught.value.words_key == "fetch_private"


async def test_s7_an_answer_has_limits(host: Host) -> None:
    host.answer = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000
    with pytest.raises(FetchError) as caught:
        await host.asked(limits=FetchLimits(size=1000))
    assert caught.value.words_key == "fetch_too_large"
    host.pause = asyncio.Event()
    with pytest.raises(FetchError) as caught:
        await host.asked(limits=FetchLimits(seconds=0.2))
    assert caught.value.words_key == "fetch_too_slow"


@pytest.mark.parametrize(("said", "wait"), [("30", 30.0), ("0.5", 0.5), ("-1", None), ("soon", None), ("inf", None)])
async def test_how_long_to_wait_is_read(host: Host, said: str, wait: float | None) -> None:
    host.answer = f"HTTP/1.1 429 Slow\r\nretry-after: {said}\r\ncontent-length: 0\r\n\r\n".encode()
    assert (await host.asked()).retry_after == wait


async def test_what_is_no_json_is_told(host: Host) -> None:
    host.answer = b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 200_000
    with pytest.raises(ValueError, match="nested"):
        (await host.asked()).json()


async def test_l3_neither_errors_nor_logs_say_the_key(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    host.answer = b"not HTTP at all\r\n\r\n"
    with pytest.raises(FetchError) as caught:
        await host.asked(query={"key": KEY}, headers={"authorization": KEY}, body={"key": KEY})
    error: BaseException | None = caught.value
    while error is not None:
        assert KEY not in f"{error!r}"
        error = error.__cause__
    assert KEY not in caplog.text
