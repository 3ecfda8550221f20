"""Two real processes on one data folder: one writes a reply, the other follows it, stops it, or takes it over."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from core.errors import ConflictError
from core.runs.followed import FollowedRun
from core.runs.manager import Runs
from core.runs.reply import TextBlock
from core.storage.base import RunRecord, StoredMessage
from core.storage.database import Database
from core.storage.stores import Stores
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio

_WRITES = """
import asyncio, sys
from tests.core.runs.slow_reply import begun

async def main():
    database, _, runs, run = await begun(sys.argv[1])
    print(await run.wait(), flush=True)
    await runs.aclose()
    await database.aclose()

asyncio.run(main())
"""


@dataclass
class Other:
    """A process that writes a reply, and what this one has on the same data."""

    process: subprocess.Popen[str]
    stores: Stores
    runs: Runs
    talk: str

    async def followed(self) -> FollowedRun:
        found = await self.runs.of("alice").found(self.talk)
        assert isinstance(found, FollowedRun)
        return found

    async def last(self) -> StoredMessage:
        return (await self.stores.of("alice").conversations.thread(self.talk))[-1]

    async def taken_over_while_held_up(self) -> RunRecord:
        """Stop the process, and end its reply; where it was stopped in the middle of a write, let it finish that."""
        while True:
            self.process.send_signal(signal.SIGSTOP)
            ((record, lease),) = await self.stores.runs.running()
            try:
                await self.runs.interrupt(record, lease)
            except ConflictError:
                self.process.send_signal(signal.SIGCONT)
            else:
                return record

    async def ended(self) -> tuple[str, str, int]:
        """What it says of its reply, what it complains about, and how it ends."""
        said, complained = await asyncio.to_thread(self.process.communicate, timeout=60)
        return said.strip(), complained, self.process.returncode


@pytest.fixture
async def other(tmp_path: Path, migrated: Callable[[], bytes]) -> AsyncIterator[Other]:
    """The process, its reply begun."""
    path = tmp_path / "parlour.db"
    path.write_bytes(migrated())
    command, pipe = [sys.executable, "-c", _WRITES, str(path)], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        talk = (await asyncio.to_thread(process.stdout.readline)).strip()
        database = await Database.open(path)
        stores = stores_over(database)
        runs = Runs(stores)
        yield Other(process, stores, runs, talk)
        await runs.aclose()
        await database.aclose()
        process.kill()


def words(run: FollowedRun) -> int:
    return sum(block.text.count("word") for block in run.reply().blocks if isinstance(block, TextBlock))


async def test_what_a_process_writes_is_followed_and_stopped_from_another(other: Other) -> None:
    seen = await other.followed()
    grown = asyncio.Event()
    seen.log.watch(lambda _: grown.set())
    with anyio.fail_after(180):
        while words(seen) < 100:
            grown.clear()
            await grown.wait()
        await other.runs.of("alice").stop(other.talk)
    said, complained, code = await other.ended()
    assert (said, complained, code) == ("stopped", "", 0)
    message: Any = await other.last()
    assert message.status == "stopped"
    text = message.parts[0].get_text_content()
    assert text == "".join(block.text for block in seen.reply().blocks if isinstance(block, TextBlock))
    assert text.split() == [f"word{number}" for number in range(len(text.split()))]


async def test_a_process_that_was_held_up_and_wakes_changes_nothing_and_ends_its_reply_quietly(other: Other) -> None:
    seen = await other.followed()
    grown = asyncio.Event()
    seen.log.watch(lambda _: grown.set())
    with anyio.fail_after(180):
        while not words(seen):
            grown.clear()
            await grown.wait()
    record = await other.taken_over_while_held_up()
    before = await other.last(), await other.stores.of("alice").runs.events(record.id)
    other.process.send_signal(signal.SIGCONT)
    said, _, code = await other.ended()
    assert (said, code) == ("interrupted", 0)
    assert (await other.last(), await other.stores.of("alice").runs.events(record.id)) == before
    assert before[0].status == "interrupted"
    with anyio.fail_after(10):
        assert await seen.wait() == "interrupted"
