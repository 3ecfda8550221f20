"""Replies of one owner that are too many at once: they wait, say so, can be stopped, and have their turn in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.errors import StorageError, TooManyRequestsError
from core.limits import Slots
from core.messages.events import Event, MessageStarted, TextDelta
from core.messages.message import Message
from core.runs.lease import this_worker
from core.runs.log import LoggedEvent, Queued
from core.runs.manager import Runs
from core.runs.resumable import ResumableRun
from core.runs.rows import rows_of
from core.runs.run import Run
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.runs import AllRuns, RunStore
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio


class Held:
    """An agent that speaks, and ends when it is let go."""

    def __init__(self, name: str = "", spoken: list[str] | None = None) -> None:
        self.go = asyncio.Event()
        self.begun = asyncio.Event()
        self._name, self._spoken = name, spoken

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        if self._spoken is not None:
            self._spoken.append(self._name)
        self.begun.set()
        yield MessageStarted()
        yield TextDelta("Here.")
        await self.go.wait()


class House:
    """Runs of several owners, two at once for each."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.talks = partial(ConversationStore, database)
        self.runs = self.fresh()

    def fresh(self, worker: str | None = None) -> Runs:
        return Runs(stores_over(self.database), worker=worker, at_once=Slots(2, queue=3))

    async def ask(self, agent: Any, owner: str = "alice") -> Run:
        talk = await self.talks(owner).create()
        question = Message("user", "Hello?")
        return await self.runs.of(owner).start(talk.id, agent, user=question, parent_id=None, history=[question])


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    database = await Database.open(tmp_path / "parlour.db")
    house = House(database)
    yield house
    await house.runs.aclose()
    await database.aclose()


async def queued(run: Run, *, waiting: bool = True) -> None:
    """Wait until the run says so."""
    async for one in run.log.follow():
        if isinstance(one.event, Queued) and one.event.waiting == waiting:
            return


async def test_a_third_reply_waits_says_so_and_begins_when_one_ends(house: House) -> None:
    agents = [Held() for _ in range(3)]
    runs = [await house.ask(agent) for agent in agents]
    await queued(runs[2])
    assert [run.reply().queued for run in runs] == [False, False, True]
    assert not agents[2].begun.is_set()
    agents[0].go.set()
    assert await runs[0].wait() == "complete"
    await queued(runs[2], waiting=False)
    assert not runs[2].reply().queued
    for agent in agents:
        agent.go.set()
    assert [await run.wait() for run in runs] == ["complete"] * 3


async def test_they_have_their_turn_in_the_order_in_which_they_were_asked(house: House) -> None:
    spoken: list[str] = []
    agents = [Held(str(number), spoken) for number in range(5)]
    runs = [await house.ask(agent) for agent in agents]
    for agent, run in zip(agents, runs, strict=True):
        agent.go.set()
        await run.wait()
    assert spoken == ["0", "1", "2", "3", "4"]


async def test_another_owner_does_not_wait(house: House) -> None:
    for _ in range(3):
        await house.ask(Held())
    other = Held()
    await house.ask(other, "bob")
    await other.begun.wait()


async def test_what_waits_can_be_stopped_and_the_next_keeps_its_place(house: House) -> None:
    agents = [Held() for _ in range(4)]
    runs = [await house.ask(agent) for agent in agents]
    await queued(runs[2])
    await house.runs.of("alice").stop(runs[2].conversation_id)
    assert runs[2].status == "stopped"
    assert not agents[2].begun.is_set()
    await house.runs.of("alice").stop(runs[0].conversation_id)
    await agents[3].begun.wait()
    assert not agents[2].begun.is_set()
    question, reply = await house.talks("alice").thread(runs[2].conversation_id)
    assert (question.status, reply.status, reply.parts) == ("complete", "stopped", ())


async def test_waiting_takes_none_of_the_replys_time(house: House) -> None:
    runs: Any = Runs(stores_over(house.database), limit=2.0, at_once=Slots(1))
    house.runs = runs
    runs._limit = 30.0
    first = Held()
    run = await house.ask(first)
    runs._limit = 2.0
    agent = Held()
    agent.go.set()
    late = await house.ask(agent)
    await queued(late)
    await asyncio.wait({asyncio.create_task(late.wait())}, timeout=2.5)
    first.go.set()
    assert (await run.wait(), await late.wait()) == ("complete", "complete")


async def test_a_queue_that_is_full_takes_no_question_and_stores_nothing(house: House) -> None:
    for _ in range(5):
        await house.ask(Held())
    talk = await house.talks("alice").create()
    with pytest.raises(TooManyRequestsError):
        await house.runs.of("alice").start(
            talk.id, Held(), user=Message("user", "One more"), parent_id=None, history=[Message("user", "x")]
        )
    assert await house.talks("alice").thread(talk.id) == []


async def test_a_question_that_could_not_be_stored_gives_its_place_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*args: Any, **more: Any) -> Any:
        raise StorageError("The database is away.")

    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "create", refuse)
        for _ in range(3):
            with pytest.raises(StorageError):
                await house.ask(Held())
    agents = [Held(), Held()]
    for agent in agents:
        await house.ask(agent)
        await agent.begun.wait()


async def test_what_waits_when_the_house_closes_is_answered_by_the_next_process(house: House) -> None:
    runs = [await house.ask(Held()) for _ in range(3)]
    await queued(runs[2])
    await house.runs.aclose()
    again, answered = house.fresh(), list[Run]()

    async def resume(resumable: ResumableRun) -> None:
        assert (resumable.logged, resumable.may_have_run) == ([], None)
        agent = Held()
        agent.go.set()
        answered.append(
            await again.of(resumable.record.owner_id).resume(resumable, agent, history=[Message("user", "Hello?")])
        )

    assert await again.recover(resume) == 1
    assert [run.conversation_id for run in answered] == [runs[2].conversation_id]
    assert await answered[0].wait() == "complete"
    statuses = [(await house.talks("alice").thread(run.conversation_id))[-1].status for run in runs]
    assert statuses == ["interrupted", "interrupted", "complete"]
    await again.aclose()


async def test_what_waited_when_the_process_was_killed_is_answered_by_the_next_one(house: House) -> None:
    store, talk = AllRuns(house.database).of, await house.talks("alice").create()
    dead = f"{this_worker().rpartition('/')[0]}/999999999@1"
    record, _ = await store("alice").create(talk.id, user=[Message("user", "Hi")], parent_id=None, worker=dead)
    await store("alice").append(record.id, rows_of([LoggedEvent(1, 0.0, Queued())]), epoch=record.epoch)
    agent = Held()
    agent.go.set()

    async def resume(resumable: ResumableRun) -> None:
        await house.runs.of(resumable.record.owner_id).resume(resumable, agent, history=[Message("user", "Hi")])

    assert await house.runs.recover(resume) == 1
    run = house.runs.live(talk.id)
    assert run is not None
    assert (await run.wait(), run.id, run.reply().text) == ("complete", record.id, "Here.")


async def test_a_reply_that_is_given_up_before_it_goes_on_holds_no_place(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, talk = AllRuns(house.database).of, await house.talks("alice").create()
    dead = f"{this_worker().rpartition('/')[0]}/999999999@1"
    record, _ = await store("alice").create(talk.id, user=[Message("user", "Hi")], parent_id=None, worker=dead)
    await store("alice").append(record.id, rows_of([LoggedEvent(1, 0.0, Queued())]), epoch=record.epoch)
    going_on, asked = list[asyncio.Task[Run]](), asyncio.Event()
    slot = type(house.runs.at_once.take("bob"))

    async def for_ever(_slot: object, _run_id: str) -> None:
        asked.set()
        await asyncio.Event().wait()

    async def resume(resumable: ResumableRun) -> None:
        again = house.runs.of("alice").resume(resumable, Held(), history=[Message("user", "Hi")])
        going_on.append(asyncio.create_task(again))
        await asked.wait()

    with monkeypatch.context() as patched:
        patched.setattr(slot, "of_run", for_ever)
        await house.runs.recover(resume)
        going_on[0].cancel()
        await asyncio.wait(going_on)
    assert [house.runs.at_once.take("alice").granted for _ in range(3)] == [True, True, False]
