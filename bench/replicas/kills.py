"""Parlours that are killed at random moments while people talk: nothing lost, no call made twice, taken over soon."""

from __future__ import annotations

import asyncio
import json
import random
import re
import secrets
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text

from bench.figures import Figure
from bench.pages import Functions
from bench.replicas.many import middle, p95
from bench.replicas.people import GONE, Person, browser, config_of
from bench.replicas.place import load
from core.runs.lease import worker_of
from core.storage.database import Database
from core.testing.script import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.replicas.place import Place

PEOPLE: Final = 6
_TAG: Final = re.compile(r"\[([0-9a-f]{16})\]")
_TOOL, _TALK = "Use the tool.", "Talk to me."
_LONGEST: Final = 3.0  # seconds from one kill, and its replies being taken over, to the next
_SETTLED: Final = 90.0
_EVERY: Final = 0.05
_HELD: Final = text("SELECT id, epoch FROM runs WHERE status = 'running' AND worker = :worker")
_NOW: Final = text("SELECT id, epoch, status FROM runs WHERE id = ANY(:wanted)")
_ASKED: Final = text("SELECT parts::text FROM messages WHERE role = 'user'")
_REPLIES: Final = text(
    "SELECT q.parts::text AS asked, a.parts::text AS said, r.status, r.id, r.error->>'key' AS why FROM runs r "
    "JOIN messages a ON a.id = r.message_id JOIN messages q ON q.id = a.parent_id"
)
_UNSETTLED: Final = text("SELECT id, worker, epoch FROM runs WHERE status = 'running'")


def answer(request: Request) -> Reply:
    """What the model says: words for some seconds, half of the time with a call in the middle."""
    messages: list[dict[str, Any]] = request.get("messages") or []
    asked = next((json.dumps(one) for one in reversed(messages) if one.get("role") == "user" and _of(one)), "")
    tag = (_TAG.findall(asked) or ["none"])[-1]
    after = messages[-1].get("role") == "tool" if messages else False
    if _TOOL in asked and not after:
        return Reply(text=_words("before", 20), calls=[("write_note", {"text": tag})], pace=0.05)
    return Reply(text=_words("after" if after else "word", 40), pace=0.05)


def _of(message: dict[str, Any]) -> bool:
    return bool(_TAG.search(json.dumps(message)))


def _words(name: str, count: int) -> list[str]:
    return [f"{name}{number} " for number in range(1, count + 1)]


@dataclass
class Killing:
    """What was done, and what came of it.

    Args:
        place: Where the Parlours are.
        seed: Decides what is asked, and the moments as far as the machine lets them be decided.
    """

    place: Place
    database: Database
    seed: int
    over: bool = False
    begun: set[str] = field(default_factory=set[str])
    acknowledged: set[str] = field(default_factory=set[str])
    killed: Counter[str] = field(default_factory=Counter[str])
    held: set[str] = field(default_factory=set[str])
    taken: list[float] = field(default_factory=list[float])
    wrong: list[str] = field(default_factory=list[str])

    async def go(self, kinds: Sequence[str], minutes: float) -> None:
        """Kill one Parlour after the other while people talk.

        Args:
            kinds: The role of each that is killed.
            minutes: After so many, no more is killed.
        """
        end = time.monotonic() + minutes * 60
        chance = random.Random(self.seed)
        config = await config_of(self.place.serving[0].url)
        people = [asyncio.create_task(self._talks(Functions.read(config), number)) for number in range(PEOPLE)]
        try:
            for kind in kinds:
                if time.monotonic() > end:
                    break
                await asyncio.sleep(chance.random() * _LONGEST)
                names = [name for name in self.place.parlours if name.rstrip("0123456789") == kind]
                await self._kill(chance.choice(names), kind)
        finally:
            self.over = True
            await asyncio.gather(*people, return_exceptions=True)
        await self._check()

    async def _kill(self, name: str, kind: str) -> None:
        parlour = self.place.parlours[name]
        assert parlour.process is not None
        worker = worker_of(parlour.process.pid)
        await asyncio.to_thread(parlour.kill)
        began = time.monotonic()
        rows = await self.database.read(lambda c: c.execute(_HELD, {"worker": worker}).all())
        left = {row.id: row.epoch for row in rows}
        self.killed[kind] += 1
        self.held |= left.keys()
        again = asyncio.create_task(asyncio.to_thread(parlour.start))
        while left and time.monotonic() < began + _SETTLED:
            await asyncio.sleep(_EVERY)
            now = await self.database.read(lambda c: c.execute(_NOW, {"wanted": [*left]}).all())
            for row in now:
                if row.epoch != left[row.id] or row.status != "running":
                    del left[row.id]
                    self.taken.append(time.monotonic() - began)
        self.wrong += [f"reply {run} was not taken over in {_SETTLED:.0f} s" for run in left]
        await again

    async def _talks(self, functions: Functions, number: int) -> None:
        """One person after the other, each at a Parlour that is there, until it is over."""
        chance = random.Random(f"{self.seed} {number}")
        while not self.over:
            url = chance.choice(self.place.serving).url
            with suppress(*GONE):
                async with browser(url) as client:
                    person = Person(client, functions)
                    try:
                        await person.open()
                        (await client.post("/tools/mode", json={"mode": "never"})).raise_for_status()
                        while not self.over:
                            await self._asks(person, chance)
                    finally:
                        await person.close()
            await asyncio.sleep(0.2)

    async def _asks(self, person: Person, chance: random.Random) -> None:
        tag = secrets.token_hex(8)
        self.begun.add(tag)
        await person.say(f"[{tag}] {_TOOL if chance.random() < 0.5 else _TALK}")
        self.acknowledged.add(tag)
        await person.watch(first="word", last="word")

    async def _check(self) -> None:
        """All replies come to an end; what was acknowledged is there once; no call was made twice."""
        end = time.monotonic() + _SETTLED
        while running := (await self.database.read(lambda c: c.execute(_UNSETTLED).all())):
            if time.monotonic() > end:
                self.wrong += [f"reply {row.id} of {row.worker} is stuck in epoch {row.epoch}" for row in running]
                break
            await asyncio.sleep(0.2)

    async def lost(self) -> list[str]:
        """Acknowledged messages that are not there exactly once, and others that stand twice."""
        rows = await self.database.read(lambda c: c.execute(_ASKED).scalars().all())
        there = Counter(tag for row in rows for tag in _TAG.findall(row))
        return [
            *(f"message {tag} is there {there[tag]} times" for tag in self.acknowledged if there[tag] != 1),
            *(f"message {tag} stands {count} times" for tag, count in there.items() if count > 1),
            *(f"message {tag} was never sent" for tag in there if tag not in self.begun),
        ]

    def doubled(self) -> tuple[list[str], int]:
        """Calls that were made more than once, and how many were made."""
        calls = self.place.calls
        made = Counter(calls.read_text("utf-8").split() if calls.exists() else ())
        return [f"the call of {tag} was made {count} times" for tag, count in made.items() if count > 1], len(made)

    async def ends(self) -> tuple[Counter[str], Counter[str], list[str]]:
        """How replies ended, and why: all of them, those taken over, and which of the complete ones are not whole."""
        rows = await self.database.read(lambda c: c.execute(_REPLIES).all())
        every, taken, broken = Counter[str](), Counter[str](), list[str]()
        for row in rows:
            ended = f"{row.status}, {row.why}" if row.why else row.status
            every[ended] += 1
            taken[ended] += row.id in self.held
            name = "after" if _TOOL in row.asked else "word"
            said = re.findall(rf"\b{name}\d+", row.said)
            if row.status == "complete" and said != [one.strip() for one in _words(name, 40)]:
                broken.append(f"{row.asked[:80]}: {' '.join(said)[:400]}")
        return every, taken, broken


async def measured(place: Place, kinds: Sequence[str], seed: int, minutes: float) -> tuple[list[Figure], list[str]]:
    """The figures, and what went wrong in words."""
    database = await Database.open(place.database)
    try:
        busy, began = load(), time.monotonic()
        killing = Killing(place, database, seed)
        await killing.go(kinds, minutes)
        lost, (doubled, made), (every, taken, broken) = await killing.lost(), killing.doubled(), await killing.ends()
    finally:
        await database.aclose()
    count = sum(killing.killed.values())
    how = ", ".join(f"{number} × {kind}" for kind, number in killing.killed.items())
    said = f"by SIGKILL, within {time.monotonic() - began:.0f} s; {len(killing.acknowledged)} acknowledged; {busy}"
    over = (
        f"{len(killing.held)} replies were being written by who was killed: {dict(+taken)}; all replies: {dict(every)}"
    )
    figures = [
        Figure(f"{count} kills ({how}): acknowledged messages lost or doubled", len(lost), 0, "", said),
        Figure("of these: calls made twice", len(doubled), 0, "", f"{made} calls made"),
        Figure("of these: replies stuck, or complete and not whole", len(killing.wrong) + len(broken), 0, "", over),
        Figure("of these: until a reply is taken over, p95", p95(killing.taken), 15, "s", middle(killing.taken)),
    ]
    return figures, [*lost, *doubled, *killing.wrong, *broken]
