"""A stream that is left early ends quietly: what it was made by is closed from without inwards."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from core.bridge.closing import closed_within, known_to_loop
from core.testing.model_server import ModelServer
from core.testing.script import Reply

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]
LEAVES = """
import asyncio, sys
from typing import Any
from core.agents.basic import FnCallAgent

agent = FnCallAgent([], {"model": "any", "model_server": sys.argv[1], "api_key": "any"})
WAYS: dict[str, Any] = {
    "stream": lambda: agent.stream([{"role": "user", "content": "Go"}]),
    "events": lambda: agent.events("Go"),
    "partials": lambda: agent.partials("Go", str),
    "session": lambda: agent.session().events("Go"),
}


async def left(way, turns, held):
    events = WAYS[way]()
    kept = events if held else None
    async for event in events:
        if getattr(event, "kind", "text_delta") == "text_delta":
            break
    del events
    for _ in range(turns):
        await asyncio.sleep(0)
    del kept


for way in WAYS:
    for turns in (0, 1, 2, 5):
        for held in (True, False):
            asyncio.run(left(way, turns, held))
print("left")
"""


def test_a_program_that_leaves_a_stream_and_ends_is_told_of_nothing():
    with ModelServer(Reply(text="one two three four", hang_after=3)) as server:
        command = [sys.executable, "-W", "always::RuntimeWarning", "-c", LEAVES, server.base_url]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert (ended.stdout.strip(), ended.stderr) == ("left", "")


class Nested:
    """Generators within each other, none of which closes the next: that is left to Python."""

    def __init__(self, error: Exception | None = None) -> None:
        self.closed: list[int] = []
        self._error = error

    async def numbers(self, depth: int = 2) -> AsyncGenerator[int, None]:
        try:
            if depth:
                async for number in self.numbers(depth - 1):
                    yield number
            else:
                for number in range(3):
                    yield number
        finally:
            self.closed.append(depth)
            await asyncio.sleep(0)
            if self._error is not None and not depth:
                raise self._error


async def test_closing_the_outermost_closes_all_within_before_it_returns():
    nested = Nested()
    async with aclosing(closed_within(nested.numbers())) as events:
        assert await anext(events) == 0
    assert nested.closed == [2, 1, 0]


async def test_all_items_come_and_an_error_does():
    assert [number async for number in closed_within(Nested().numbers())] == [0, 1, 2]
    with pytest.raises(ValueError, match="odd"):
        [number async for number in closed_within(Nested(ValueError("odd")).numbers())]


async def test_a_cancelled_reader_has_all_closed():
    nested = Nested()
    begun = asyncio.Event()

    async def read() -> None:
        async with aclosing(closed_within(nested.numbers())) as events:
            async for _ in events:
                begun.set()
                await asyncio.Event().wait()

    task = asyncio.create_task(read())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert nested.closed == [2, 1, 0]


@pytest.mark.parametrize("turns", range(6))
def test_a_loop_that_ends_while_it_is_closed_waits_for_all_within(turns: int):
    nested = Nested()

    async def leave() -> None:
        async for _ in closed_within(nested.numbers()):
            break
        for _ in range(turns):
            await asyncio.sleep(0)

    asyncio.run(leave())
    assert sorted(nested.closed) == [0, 1, 2]


def test_what_is_begun_for_longer_is_closed_by_the_end_of_the_loop():
    kept: list[AsyncGenerator[int, None]] = []
    nested = Nested()

    async def events() -> AsyncGenerator[int, None]:
        kept.append(nested.numbers(0))
        yield await known_to_loop(kept[0])

    async def reads() -> list[int]:
        read = [number async for number in closed_within(events())]
        gc.collect()
        assert nested.closed == []
        return read

    assert asyncio.run(reads()) == [0]
    assert nested.closed == [0]
