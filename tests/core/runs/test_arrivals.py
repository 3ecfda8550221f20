"""Where many questions come at the same moment, each is shown before replies are begun."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core import limits
from core.limits import FEW_ARRIVALS as FEW
from core.limits import Arrivals
from core.messages.events import Event, MessageStarted, TextDelta
from core.messages.message import Message
from core.runs.manager import Runs
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio


class Answering:
    """An agent that says when it is asked."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        self.asked.set()
        yield MessageStarted()
        yield TextDelta("Here.")


class House:
    """Runs, and pages that have sent something."""

    def __init__(self, database: Database) -> None:
        self.talks = ConversationStore(database, "alice")
        self.runs = Runs(stores_over(database))

    async def ask(self, agent: Answering) -> Any:
        talk = await self.talks.create()
        question = Message("user", "Hello?")
        return await self.runs.of("alice").start(talk.id, agent, user=question, parent_id=None, history=[question])


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    database = await Database.open(tmp_path / "parlour.db")
    house = House(database)
    yield house
    await house.runs.aclose()
    await database.aclose()


async def test_beside_a_few_pages_that_show_nothing_yet_a_reply_begins_at_once(house: House) -> None:
    for page in range(FEW):
        house.runs.arrivals.expect("alice", page)
    run = await house.ask(Answering())
    await run.wait()
    assert run.status == "complete"
    assert not house.runs.arrivals.are_many


async def test_beside_many_it_begins_when_few_are_left(house: House) -> None:
    for page in range(FEW + 2):
        house.runs.arrivals.expect("alice", page)
    agent = Answering()
    run = await house.ask(agent)
    house.runs.arrivals.shown("alice", 0)
    house.runs.arrivals.shown("alice", "a page that nobody knows")
    for _ in range(20):
        await asyncio.sleep(0)
    assert not agent.asked.is_set()
    house.runs.arrivals.shown("alice", 1)
    await run.wait()
    assert run.status == "complete"


async def test_whoever_stops_it_meanwhile_has_it_stopped_unasked(house: House) -> None:
    for page in range(FEW + 1):
        house.runs.arrivals.expect("alice", page)
    agent = Answering()
    run = await house.ask(agent)
    await run.stop()
    assert (run.status, agent.asked.is_set()) == ("stopped", False)


async def test_a_page_that_nobody_looks_at_is_not_waited_for_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ARRIVES_WITHIN", 0.02)
    waited = Arrivals()
    for page in range(FEW + 1):
        waited.expect("alice", page)
    await waited.settled()
    monkeypatch.setattr(limits, "ARRIVES_WITHIN", 60.0)
    for page in range(FEW + 1):
        waited.expect("alice", page)
        waited.expect("alice", page)  # the same page once more counts once
    assert waited.are_many
    waited.shown("alice", FEW)
    await waited.settled()


async def test_nobody_holds_up_all_others_by_pages_that_show_nothing() -> None:
    waited = Arrivals(of_each=2)
    for page in range(50):
        waited.expect("alice", page)
    assert not waited.are_many
    for owner in ("bob", "carol"):
        waited.expect(owner, 1)
        waited.expect(owner, 2)
    assert waited.are_many
    waited.shown("bob", 1)
    waited.shown("bob", 2)
    assert not waited.are_many
    await waited.settled()
