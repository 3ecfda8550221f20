"""The idle timeout of a reply: too long is an error, a slow reader is not, and a stop is a stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from core.llm.backends.http_clients import IdleTimeout

pytestmark = pytest.mark.anyio


async def pieces(*given: bytes, hang: bool = False) -> AsyncGenerator[bytes, None]:
    for piece in given:
        yield piece
    if hang:
        await asyncio.Event().wait()


async def test_pieces_come_as_they_are_and_end() -> None:
    with IdleTimeout() as idle:
        source = pieces(b"a", b"b")
        assert [await idle.next(source, 10) for _ in range(3)] == [b"a", b"b", None]


async def test_silence_is_too_long_after_a_shorter_limit_too() -> None:
    with IdleTimeout() as idle:
        source = pieces(b"a", hang=True)
        assert await idle.next(source, 600) == b"a"
        with pytest.raises(TimeoutError):
            await idle.next(source, 0.02)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "the task goes on as if nothing had happened"


async def test_the_time_of_the_reader_does_not_count() -> None:
    with IdleTimeout() as idle:
        source = pieces(b"a", b"b")
        assert await idle.next(source, 0.02) == b"a"
        rung = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, rung.set)
        await rung.wait()
        assert await idle.next(source, 0.02) == b"b"


async def test_a_reader_that_is_stopped_is_stopped() -> None:
    async def read() -> None:
        with IdleTimeout() as idle:
            await idle.next(pieces(hang=True), 600)

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
