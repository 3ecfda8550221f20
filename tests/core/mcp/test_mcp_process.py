"""Processes of servers: what goes in and comes out, and that nothing stays; on both kinds of loop."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

import psutil
import pytest

from core.bridge.sync import new_loop
from core.mcp.settings import Resolved
from core.mcp.stdio import GONE, Process, ended, started

Scene = Callable[[], Awaitable[None]]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not end by itself is not waited for as long as outside of tests."""
    monkeypatch.setattr("core.mcp.stdio._LEAVING", 0.2)
    monkeypatch.setattr("core.mcp.stdio._KILLED", 0.2)


@pytest.fixture(params=[asyncio.new_event_loop, new_loop], ids=["plain", "ours"])
def play(request: pytest.FixtureRequest) -> Callable[[Scene], None]:
    def played(scene: Scene) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(scene(), 30))

    return played


async def _running(code: str, *arguments: str) -> Process:
    return await started(Resolved(sys.executable, ("-c", code, *arguments)), dict(os.environ), None)


async def _all_of(process: Process) -> bytes:
    assert process.stdout
    found = b""
    try:
        while True:
            found += await process.stdout.receive()
    except GONE:
        return found


@pytest.mark.anyio
async def test_a_server_starts_without_the_loops_own_way_that_holds_everybody_up(monkeypatch: pytest.MonkeyPatch):
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("it takes up to twenty milliseconds, in which nothing else runs")

    monkeypatch.setattr(asyncio.get_running_loop(), "subprocess_exec", refused)
    process = await _running("print('there')")
    assert (await _all_of(process)).split() == [b"there"]
    await ended(process)


def test_megabytes_go_in_and_come_out_whole(play: Callable[[Scene], None]):
    echo = (
        "import sys; told = sys.stdin.buffer.read(int(sys.argv[1])); sys.stdout.buffer.write(told); sys.stdout.flush()"
    )

    async def scene() -> None:
        sent = os.urandom(3_000_000)
        process = await _running(echo, str(len(sent)))
        assert process.stdin
        assert process.stdout
        sending = asyncio.create_task(process.stdin.send(sent))
        found = b""
        while len(found) < len(sent):
            found += await process.stdout.receive()
        await sending
        assert found == sent
        await ended(process)
        assert process.returncode is not None

    play(scene)


def test_whoever_waits_at_a_pipe_hears_that_it_is_over(play: Callable[[Scene], None]):
    async def scene() -> None:
        process = await _running("import time; time.sleep(60)")  # it neither reads nor writes, nor ends by itself
        assert process.stdin
        sending = asyncio.create_task(process.stdin.send(bytes(1_000_000)))
        reading = asyncio.create_task(_all_of(process))
        await asyncio.sleep(0)
        await ended(process)
        assert await reading == b""
        with pytest.raises(GONE):
            await sending
        with pytest.raises(GONE):
            await process.stdin.send(b"more")
        assert process.returncode

    play(scene)


def test_what_a_process_started_and_left_behind_ends_with_it(play: Callable[[Scene], None]):
    sleeps = "import time; time.sleep(600)"
    leaves = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', sys.argv[1]]).pid, flush=True)"

    async def scene() -> None:
        process = await _running(leaves, sleeps)
        assert process.stdout
        child = int(await process.stdout.receive())
        await ended(process)
        assert process.returncode is not None
        # In a container nobody may be there to collect what has ended: a dead entry is as good as none.
        assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE

    play(scene)
