"""Blocking iterators as async ones."""

from __future__ import annotations

import sys
import threading
from contextlib import aclosing

import pytest

from core.bridge.cancellation import ProgramEnd
from core.llm.concurrency import from_blocking

pytestmark = pytest.mark.anyio


async def test_items_come_in_order_from_a_thread_of_their_own():
    names = set()

    def items():
        for number in range(100):
            names.add(threading.current_thread().name)
            yield number

    async with aclosing(from_blocking(items)) as stream:
        assert [item async for item in stream] == list(range(100))
    assert names == {"parlour-model"}


async def test_an_error_comes_after_the_items_before_it():
    def items():
        yield 1
        raise LookupError("lost")

    seen = []
    with pytest.raises(LookupError, match="lost"):
        async with aclosing(from_blocking(items)) as stream:
            seen.extend([item async for item in stream])
    async with aclosing(from_blocking(lambda: [1, 2])) as stream:
        assert [item async for item in stream] == [1, 2]


async def test_leaving_closes_the_iterator():
    closed = threading.Event()

    def items():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    async with aclosing(from_blocking(items)) as stream:
        assert await anext(stream) == 1
    assert closed.wait(60)


async def test_ending_the_program_in_the_thread_does_not_end_the_loop_and_whoever_reads_knows_how():
    def quits():
        yield 1
        sys.exit(3)

    with pytest.raises(ProgramEnd, match="told to end") as caught:
        async for _ in from_blocking(quits):
            pass
    assert isinstance(caught.value.ending, SystemExit)
