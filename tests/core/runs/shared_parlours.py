"""Processes that share a database and write replies, forked from one that has loaded all: to be killed or held up.

Run as a program it is their nursery: each line that it is told is a process, as `Told` says.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from core.agents.basic import FnCallAgent
from core.messages.message import Message
from core.runs import lease
from core.runs.feed import Feed, Tidings
from core.runs.lease import Sharing
from core.runs.manager import Runs
from core.runs.redis_feed import feed_at
from core.runs.run import RunOptions
from core.storage.database import Database
from core.storage.postgres_database import PostgresDatabase
from core.storage.runs import RunStore
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy
from core.tools.base import BaseTool

SHORT = Sharing(lease=0.5, beat=0.1)


@dataclass(frozen=True)
class Told:
    """What a process is told.

    Args:
        database: The address.
        notes: The file into which its tool writes.
        text: What its model says, slowly.
        calls: How many notes its model writes before, one turn each.
        asks: Whether it asks before it writes.
        hangs: Whether the tool never comes back.
        place: The space in which it seems to have its number; another one than ours if it is given.
        clock: How many seconds its clock is ahead.
        redis: The address of the Redis that is told what happens.
        holds: `end` where it stops before the end is stored, `news` where it stops before the end is told.
    """

    database: str
    notes: str
    text: str = ""
    calls: int = 0
    asks: bool = False
    hangs: bool = False
    place: str = ""
    clock: float = 0.0
    redis: str = ""
    holds: str = ""


class Writes(BaseTool):
    """Writes a line into a file, which cannot be done twice."""

    name = "write_note"
    description = "Writes."
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    writes = True
    idempotent = False

    def __init__(self, notes: str, *, hangs: bool = False) -> None:
        super().__init__()
        self.notes, self.hangs = Path(notes), hangs

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        with self.notes.open("a") as file:
            print(self._verify_json_format_args(params)["text"], file=file)
        if self.hangs:
            print("began", flush=True)
            await asyncio.Event().wait()
        return "written"


def agent_of(notes: str, *turns: Any, hangs: bool = False) -> FnCallAgent:
    """An agent with the tool, and a model that plays these turns."""
    return FnCallAgent([Writes(notes, hangs=hangs)], ScriptedModel(*turns))


def stores_at(database: Database, folder: Path) -> Stores:
    return Stores(database, folder / "files", Sealer("secret"))


async def write(told: Told) -> None:
    """Ask alice's question, and tell how its reply goes: its conversation, each word, and how it ended."""
    database = Database(PostgresDatabase(told.database))  # whose tables are there: that is not looked at again
    stores = stores_at(database, Path(told.notes).parent)
    talk = await stores.of("alice").conversations.create()
    print(talk.id, flush=True)
    turns = [Reply(calls=[("write_note", {"text": f"note {number}"})]) for number in range(told.calls)]
    agent = agent_of(told.notes, *turns, Reply(told.text or "Done.", pace=0.02 if told.text else 0), hangs=told.hangs)
    feed = feed_at(told.redis, stores)
    runs = Runs(stores, sharing=SHORT, feed=feed)
    if told.holds == "end":
        RunStore.finish = held  # type: ignore[method-assign]
    elif told.holds == "news":
        feed.publish = quiet(feed)  # type: ignore[method-assign]
    question = Message("user", "Write!")
    terms = RunOptions(Policy(allow=() if told.asks else ("*",)))
    mine = runs.of("alice")
    run = await mine.start(talk.id, agent, user=question, parent_id=None, history=[question], terms=terms)
    async for one in run.log.follow():
        print(one.event.kind, flush=True)
    print(await run.wait(), flush=True)
    await runs.aclose()
    await database.aclose()


async def held(*_: Any, **__: Any) -> None:
    print("about to end", flush=True)
    await asyncio.Event().wait()


def quiet(feed: Feed) -> Any:
    """Tells all but the end."""
    publish = feed.publish

    async def told(tidings: Sequence[Tidings]) -> None:
        ends = {run.run_id for run in tidings if any(one.event.kind == "run_finished" for one in run.events)}
        await publish([run for run in tidings if run.run_id not in ends])

    return told


def be(told: Told) -> None:
    """Be a process, with the clock and the place that it is told."""
    real = time.time
    time.time = lambda: real() + told.clock
    if told.place:
        lease._place = lambda: told.place  # type: ignore[assignment] # the space of another machine
    asyncio.run(write(told))


def main() -> None:
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            be(Told(**json.loads(line)))
            os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("gone", flush=True)


@dataclass
class Nursery:
    """Has one process at a time."""

    program: subprocess.Popen[str]
    child: int = 0
    talk: str = ""
    said: list[str] = field(default_factory=list)

    async def begin(self, told: Told) -> None:
        """Start a process, and let it ask."""
        assert self.program.stdin is not None
        print(json.dumps(asdict(told)), file=self.program.stdin, flush=True)
        self.child, self.said = int(await self.line()), []
        self.talk = await self.line()

    async def line(self) -> str:
        assert self.program.stdout is not None
        line = (await asyncio.to_thread(self.program.stdout.readline)).strip()
        self.said.append(line)
        return line

    async def until(self, what: str, times: int = 1) -> None:
        """Wait until it has said something so often."""
        while self.said.count(what) < times:
            line = await self.line()
            assert line not in {"", "gone"}, f"it ended before {what}: {self.said}"

    async def kill(self) -> None:
        """End it as a power cut would."""
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            await self.gone()

    async def gone(self) -> None:
        """Wait until it has ended."""
        while await self.line() not in {"", "gone"}:
            pass
        self.child = 0

    def hold_up(self, sign: signal.Signals = signal.SIGSTOP) -> None:
        os.kill(self.child, sign)


def nurseries() -> Iterator[Nursery]:
    """A nursery, to the end of the tests that use it."""
    command = [sys.executable, "-m", "tests.core.runs.shared_parlours"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        yield Nursery(program)
        program.communicate()


@asynccontextmanager
async def here(address: str, folder: Path, worker: str = "") -> AsyncIterator[tuple[Stores, Runs]]:
    """What this process has on the same data."""
    database = await Database.open(address)
    stores = stores_at(database, folder)
    runs = Runs(stores, sharing=SHORT, worker=worker or None)
    yield stores, runs
    await runs.aclose()
    await database.aclose()


if __name__ == "__main__":
    main()
