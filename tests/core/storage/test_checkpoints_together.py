"""Checkpoints of many runs are one transaction, and each has its own outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.errors import LeaseLostError, NoSpaceError, NotFoundError
from core.messages.message import USER, Message
from core.storage.base import EventRow, RunRecord
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.runs import AllRuns

pytestmark = pytest.mark.anyio


class House:
    """A database with runs, which counts the transactions that are written."""

    def __init__(self, database: Database, patched: pytest.MonkeyPatch) -> None:
        self.store, self._conversations = AllRuns(database).of, partial(ConversationStore, database)
        self.writes = 0
        self.fails: list[Exception] = []
        write = database.write

        async def counted(work: Any, **how: Any) -> Any:
            self.writes += 1
            if self.fails:
                raise self.fails.pop()
            return await write(work, **how)

        patched.setattr(database, "write", counted)

    async def run(self) -> RunRecord:
        conversation = await self._conversations("alice").create()
        said = [Message(USER, "Hello")]
        record, _ = await self.store("alice").create(conversation.id, user=said, parent_id=None, worker="w")
        return record

    def append(self, run: RunRecord, *, epoch: int | None = None) -> Any:
        row = EventRow(1, 0.0, "text_delta", {"text": "a"})
        return self.store("alice").append(run.id, [row], epoch=run.epoch if epoch is None else epoch)


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    database = await Database.open(tmp_path / "parlour.db")
    yield House(database, monkeypatch)
    await database.aclose()


async def test_checkpoints_of_one_tick_are_one_transaction(house: House) -> None:
    runs = [await house.run() for _ in range(20)]
    house.writes = 0
    await asyncio.gather(*(house.append(run) for run in runs))
    assert house.writes == 1
    assert [len(await house.store("alice").events(run.id)) for run in runs] == [1] * 20


async def test_something_that_is_no_json_is_one_runs_trouble_alone(house: House) -> None:
    good, bad = await house.run(), await house.run()
    odd = house.store("alice").append(bad.id, [EventRow(1, 0.0, "text_delta", {"text": object()})], epoch=bad.epoch)
    outcomes = await asyncio.gather(odd, house.append(good), return_exceptions=True)
    assert isinstance(outcomes[0], Exception)
    assert outcomes[1] is None
    assert [len(await house.store("alice").events(run.id)) for run in (good, bad)] == [1, 0]


async def test_a_run_that_was_taken_over_or_is_gone_takes_no_other_along(house: House) -> None:
    kept, taken, gone = [await house.run() for _ in range(3)]
    gone = RunRecord(**{**{name: getattr(gone, name) for name in gone.__slots__}, "id": "no-such-run"})
    outcomes = await asyncio.gather(
        house.append(taken, epoch=99), house.append(kept), house.append(gone), return_exceptions=True
    )
    assert [type(one) for one in outcomes] == [LeaseLostError, type(None), NotFoundError]
    assert len(await house.store("alice").events(kept.id)) == 1
    assert not await house.store("alice").events(taken.id)


@pytest.mark.parametrize("failure", [NoSpaceError("full"), ValueError("unforeseen")], ids=["full", "unforeseen"])
async def test_what_fails_for_all_is_told_to_all_and_the_next_one_is_stored(house: House, failure: Exception) -> None:
    runs = [await house.run() for _ in range(3)]
    house.fails.append(failure)
    outcomes = await asyncio.gather(*(house.append(run) for run in runs), return_exceptions=True)
    assert outcomes == [failure] * 3
    await house.append(runs[0])
    assert len(await house.store("alice").events(runs[0].id)) == 1


async def test_one_that_is_cancelled_leaves_the_others_their_answer(house: House) -> None:
    first, second = await house.run(), await house.run()
    leaving, staying = asyncio.create_task(house.append(first)), asyncio.create_task(house.append(second))
    await asyncio.sleep(0)
    leaving.cancel()
    await staying
    assert len(await house.store("alice").events(second.id)) == 1
