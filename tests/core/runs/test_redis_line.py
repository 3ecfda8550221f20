"""The line to a Redis: answers come in their order and whole, and a connection that broke is made again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.runs.redis_line import RedisLine, packed
from tests.grown_servers import Served
from tests.slow_line import SlowLine

pytestmark = pytest.mark.anyio


@pytest.fixture
async def line(redis: str, anyio_backend: str) -> AsyncIterator[RedisLine]:
    opened = RedisLine(redis)
    yield opened
    await opened.aclose()


async def test_answers_come_in_the_order_of_the_commands_and_an_error_in_its_place(line: RedisLine) -> None:
    large = "报告\r\n$-1\r\n".encode() * 100_000  # comes in many pieces, and looks like answers
    answers: list[Any] = await line.ask(
        [
            packed(b"SET", b"large", large),
            packed(b"GET", b"large"),
            packed(b"NOSUCH"),
            packed(b"GET", b"nothing"),
            packed(b"RPUSH", b"list", b"", b"two"),
            packed(b"LRANGE", b"list", b"0", b"-1"),
            packed(b"XREAD", b"BLOCK", b"1", b"STREAMS", b"none", b"0"),
        ]
    )
    assert [*answers[:2], *answers[3:]] == [b"OK", large, None, 2, [b"", b"two"], None]
    assert "unknown command" in str(answers[2])


async def test_a_connection_that_the_server_closed_meanwhile_is_made_again(line: RedisLine, redis: str) -> None:
    assert await line.ask([packed(b"PING")]) == [b"PONG"]
    other = RedisLine(redis)
    await other.ask([packed(b"CLIENT", b"KILL", b"TYPE", b"normal")])
    await other.aclose()
    assert await line.ask([packed(b"PING"), packed(b"PING")]) == [b"PONG", b"PONG"]


async def test_a_server_that_is_gone_is_told_and_one_that_is_there_again_is_asked(own_redis: Served) -> None:
    from redis.exceptions import RedisError

    line = RedisLine(f"redis://127.0.0.1:{own_redis.port}/0")
    assert await line.ask([packed(b"PING")]) == [b"PONG"]
    own_redis.kill()
    with pytest.raises((RedisError, OSError)):
        await line.ask([packed(b"PING")])
    own_redis.start()
    assert await line.ask([packed(b"PING")]) == [b"PONG"]
    await line.aclose()


async def test_who_is_cancelled_while_an_answer_is_on_its_way_leaves_none_for_the_next(redis: str) -> None:
    async with SlowLine(int(redis.rpartition(":")[2].partition("/")[0])) as slow:
        line = RedisLine(f"redis://127.0.0.1:{slow.port}/0")
        assert await line.ask([packed(b"ECHO", b"one")]) == [b"one"]
        slow.held = True
        asking = asyncio.create_task(line.ask([packed(b"ECHO", b"two")]))
        await asyncio.sleep(0.05)
        asking.cancel()
        await asyncio.wait({asking})
        slow.held = False
        assert await line.ask([packed(b"ECHO", b"three")]) == [b"three"]
        await line.aclose()
