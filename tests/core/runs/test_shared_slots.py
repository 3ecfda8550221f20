"""Replies of one owner in several processes on one database: together never more at once than the limit says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import text

from core.errors import TooManyRequestsError
from core.limits import Slot
from core.messages.events import Event, MessageStarted, TextDelta
from core.messages.message import Message
from core.runs.lease import BEAT
from core.runs.manager import Runs
from core.runs.run import Run
from core.runs.shared_slots import SharedSlots
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.places import Places
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from tests.grown_postgres import FORMS, opened_form

pytestmark = pytest.mark.anyio
LASTS = 60.0


@dataclass
class Written:
    """Who writes at this moment, wherever; each until it is let go."""

    most: int = 0
    now: set[str] = field(default_factory=set[str])
    go: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    def agent(self, name: str) -> Any:
        self.go[name] = asyncio.Event()
        return Speaks(name, self)

    async def until(self, count: int) -> set[str]:
        """Those who write, as soon as it is so many."""
        with anyio.fail_after(20):
            while len(self.now) != count:
                self.moved.clear()
                await self.moved.wait()
        return {*self.now}


class Speaks:
    def __init__(self, name: str, written: Written) -> None:
        self.name, self.written = name, written

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        written = self.written
        written.now.add(self.name)
        written.most = max(written.most, len(written.now))
        written.moved.set()
        yield MessageStarted()
        yield TextDelta("Here.")
        await written.go[self.name].wait()
        written.now.discard(self.name)
        written.moved.set()


@dataclass
class Process:
    """As far as another one can tell."""

    database: Database
    slots: SharedSlots
    runs: Runs

    async def asks(self, agent: Any, owner: str = "alice") -> Run:
        talk = await ConversationStore(self.database, owner).create()
        question = Message("user", "Hello?")
        return await self.runs.of(owner).start(talk.id, agent, user=question, parent_id=None, history=[question])


@pytest.fixture(params=FORMS)
async def processes(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[list[Process]]:
    """Two on one database; an owner may have two replies at once."""
    made: list[Process] = []
    first = await opened_form(request, tmp_path)
    for number, database in enumerate((first, await Database.open(first.place))):
        slots = SharedSlots(partial(Places, database, lasts=LASTS), 2, beat=BEAT, queue=3)
        stores = Stores(database, tmp_path / "files", Sealer("secret"))
        made.append(Process(database, slots, Runs(stores, worker=f"{number}", at_once=slots)))
    yield made
    for one in made:
        await one.runs.aclose()
        await one.database.aclose()


async def test_who_asks_in_two_processes_has_no_more_replies_at_once_than_in_one(processes: list[Process]) -> None:
    written, runs = Written(), dict[str, Run]()
    for number in range(6):
        runs[f"{number}"] = await processes[number % 2].asks(written.agent(f"{number}"))
    assert await written.until(2) == {"0", "1"}
    other = await processes[1].asks(written.agent("of bob"), "bob")  # nobody waits for another owner
    assert "of bob" in await written.until(3)
    written.go["of bob"].set()
    await other.wait()
    written.most = 0
    while left := {name for name, run in runs.items() if run.status == "running"}:
        now = await written.until(min(2, len(left)))
        ends = min(now)
        written.go[ends].set()
        assert await runs[ends].wait() == "complete"
    assert written.most == 2


async def test_what_programs_ask_counts_with_it_until_it_is_given_back(processes: list[Process]) -> None:
    written = Written()
    run = await processes[0].asks(written.agent("reply"))
    await written.until(1)
    held, waits = (processes[1].slots.take("alice") for _ in range(2))
    await held.wait()
    assert await granted_within(waits, 0.2) is False
    written.go["reply"].set()
    await run.wait()
    await waits.wait()
    third = processes[0].slots.take("alice")
    assert await granted_within(third, 0.2) is False
    held.release()
    await third.wait()
    waits.release()
    third.release()


async def test_a_place_whose_process_is_gone_is_free_when_its_lease_is_over(processes: list[Process]) -> None:
    here, there = processes
    written = Written()
    for name in ("a", "b"):
        await there.asks(written.agent(name))
    await written.until(2)
    await here.asks(written.agent("late"))
    assert await written.until(2) == {"a", "b"}
    await here.database.write(lambda c: c.execute(text("UPDATE runs SET lease_until = 0 WHERE worker = '1'")).rowcount)
    assert "late" in await written.until(3)  # the others are over for everybody but themselves
    assert await Places(there.database, "bob", lasts=-1.0).take("a program's", 1)
    assert await Places(here.database, "bob", lasts=LASTS).take("another's", 1)


async def test_what_is_taken_over_goes_on_in_the_place_that_it_had(processes: list[Process]) -> None:
    written = Written()
    run = await processes[0].asks(written.agent("a"))
    await processes[0].asks(written.agent("b"))
    await written.until(2)
    places = Places(processes[1].database, "alice", lasts=LASTS)
    assert not await places.take("a third", 2)
    assert await places.take(run.id, 2)


async def test_of_many_that_ask_at_the_same_moment_no_more_have_a_place_than_there_are(
    processes: list[Process],
) -> None:
    asked = (Places(processes[at % 2].database, "carol", lasts=LASTS).take(f"{at}", 2) for at in range(16))
    assert sorted(await asyncio.gather(*asked))[-3:] == [False, True, True]


async def test_the_queue_of_a_process_has_an_end(processes: list[Process]) -> None:
    for _ in range(5):
        processes[0].slots.take("alice")
    with pytest.raises(TooManyRequestsError):
        processes[0].slots.take("alice")


async def test_who_closes_gives_its_places_back_at_once(processes: list[Process]) -> None:
    here, there = processes
    held = [there.slots.take("alice") for _ in range(2)]
    for one in held:
        await one.wait()
    places = Places(here.database, "alice", lasts=LASTS)
    assert not await places.take("another's", 1)
    await there.runs.aclose()
    assert await places.take("another's", 1)


async def test_nobody_who_is_forgotten_is_known_again_by_the_end_of_what_was_asked(processes: list[Process]) -> None:
    places = Places(processes[0].database, "dora", lasts=LASTS)
    await places.take("a program's", 2)
    forget = text("DELETE FROM owners WHERE id = 'dora'")
    await processes[0].database.write(lambda c: c.execute(forget).rowcount)
    await places.renew(["a program's"])
    await places.release("a program's")
    known = text("SELECT id FROM owners WHERE id = 'dora'")
    assert await processes[0].database.read(lambda c: c.execute(known).first()) is None


class LateRenewals:
    """Places whose renewals are stored after what is given back meanwhile."""

    def __init__(self) -> None:
        self.held = set[str]()
        self.renewing, self.given_back = asyncio.Event(), asyncio.Event()

    async def take(self, place: str, most: int) -> bool:
        self.held.add(place)
        return len(self.held) <= most

    async def renew(self, places: Collection[str]) -> None:
        self.renewing.set()
        await self.given_back.wait()
        self.held |= {*places}

    async def release(self, place: str) -> None:
        self.held.discard(place)
        self.given_back.set()


async def test_a_place_that_is_given_back_while_it_is_renewed_is_free() -> None:
    places: Any = LateRenewals()
    slots = SharedSlots(lambda _: places, 1, beat=0.001)
    slot = slots.take("alice")
    await slot.wait()
    await places.renewing.wait()
    slot.release()
    await anyio.wait_all_tasks_blocked()
    assert places.given_back.is_set()
    assert places.held == set()


async def granted_within(slot: Slot, seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        await slot.wait()
    return slot.granted
