"""What the operations of the stores cost on PostgreSQL, held against SQLite.

python -m bench.database

Each round does the same to a database of each kind: eight callers at once, in turns. Counted is the CPU of Parlour's
own process; what PostgreSQL takes beside it, on this machine or another, is told.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from bench.figures import Figure, report
from core.messages.message import Message
from core.storage.base import EventRow
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from tests.grown_postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from core.storage.stores import OwnerStores

CALLERS: Final = 8
TIMES: Final = 20  # by each caller, in a round
ROUNDS: Final = 3
GOAL: Final = 2.5
TURNS: Final = 10


class Talk:
    """A conversation of some turns, with a run that goes on."""

    def __init__(self, mine: OwnerStores) -> None:
        self._mine = mine
        self._seq = 0

    async def begin(self) -> None:
        """Make both."""
        self._id = (await self._mine.conversations.create("A talk")).id
        parent = None
        for number in range(TURNS):
            role = "assistant" if number % 2 else "user"
            turn = await self._mine.conversations.add_message(self._id, role, [Message(role, "word " * 60)], parent)
            parent = turn.id
        self._run, self._place = await self._mine.runs.create(self._id, user=[Message("user", "q")], parent_id=parent)

    async def read(self) -> None:
        """All turns of it."""
        await self._mine.conversations.thread(self._id)

    async def append(self) -> None:
        """One more event of the run."""
        self._seq += 1
        await self._mine.runs.append(self._run.id, [EventRow(self._seq, 0.1, "text_delta", {"text": "word"})], epoch=1)

    async def reply(self) -> None:
        """The run ends, and the next one begins."""
        await self._mine.runs.finish(self._run.id, "complete", epoch=1, parts=[Message("assistant", "word " * 60)])
        self._seq = 0
        asked = [Message("user", "q")]
        self._run, self._place = await self._mine.runs.create(self._id, user=asked, parent_id=None)


DOES: Final[dict[str, Callable[[Talk], Awaitable[None]]]] = {
    "to read a conversation of 11 turns": Talk.read,
    "to store an event of a reply, with those of others": Talk.append,
    "to end a reply and begin the next one": Talk.reply,
}


async def talks_of(database: Database, folder: Path) -> list[Talk]:
    """A conversation for each caller, who is an owner of their own."""
    stores = Stores(database, folder / "files", Sealer("secret"))
    talks = [Talk(stores.of(f"owner {number}")) for number in range(CALLERS)]
    for one in talks:
        await one.begin()
    return talks


async def cpu_of(does: Callable[[Talk], Awaitable[None]], talks: list[Talk]) -> float:
    """Milliseconds of this process's CPU for one call."""

    async def repeat(talk: Talk) -> None:
        for _ in range(TIMES):
            await does(talk)

    began = time.process_time()
    await asyncio.gather(*map(repeat, talks))
    return (time.process_time() - began) * 1000 / (TIMES * len(talks))


def server_cpu(pid: int) -> float:
    """Seconds that a server and what it started have taken, connections that were closed left out."""
    there = psutil.Process(pid)
    return sum(sum(one.cpu_times()[:2]) for one in (there, *there.children(recursive=True)))


async def measure(folder: Path) -> list[Figure]:
    """The figures, in turns of the two."""
    figures: list[Figure] = []
    with running_postgres() as server:
        embedded, grown = await Database.open(folder / "parlour.db"), await Database.open(server.make("parlour"))
        both = [await talks_of(one, folder) for one in (embedded, grown)]
        for what, does in DOES.items():
            for talks in both:
                await cpu_of(does, talks)
            pairs: list[tuple[float, float]] = []
            pid = server.process.pid if server.process is not None else 0
            before = server_cpu(pid)
            pairs = [(await cpu_of(does, both[0]), await cpu_of(does, both[1])) for _ in range(ROUNDS)]
            beside = (server_cpu(pid) - before) * 1000 / (ROUNDS * TIMES * CALLERS)
            ours, theirs = (statistics.median(one) for one in zip(*pairs, strict=True))
            note = f"{theirs:.2f} ms on PostgreSQL, {ours:.2f} ms on SQLite; the server takes {beside:.2f} ms beside"
            figures.append(Figure(f"{what}, CPU of Parlour", theirs / ours, GOAL, "×", note))
        for one in (embedded, grown):
            await one.aclose()
    return figures


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        report(asyncio.run(measure(Path(made))))
