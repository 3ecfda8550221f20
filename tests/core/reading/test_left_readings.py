"""What processes leave unread is taken up whole: many at once, at a bad moment, and nothing of before is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from core.engine import Engine
from core.errors import StorageError
from core.reading import shared
from core.reading.shared import SharedReading
from core.runs.lease import Sharing, this_worker
from core.settings import Settings
from core.storage.base import DocumentRecord
from core.storage.documents import DocumentStore
from core.storage.reading_rows import Hold
from core.storage.readings import Taken
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import CLAUSE, pdf
from tests.core.talks import world_of

pytestmark = pytest.mark.anyio
DEAD = f"{this_worker().rpartition('/')[0]}/1@0"  # no process with that number began then


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home", retrieval="keyword"), model=ScriptedModel()) as running:
        yield running


async def left(
    engine: Engine, name: str, data: bytes = b"some text", lasts: float = 20.0
) -> tuple[DocumentRecord, int]:
    mine = engine.stores.of("alice")
    talk, file = await mine.conversations.create(), await mine.files.put(name, data)
    return await mine.documents.add_to_read(talk.id, file.id, file.name, Hold(DEAD, lasts))


def reader(
    engine: Engine, sharing: Sharing | None = None, go_on: asyncio.Event | None = None
) -> tuple[SharedReading, list[str]]:
    """One that reads in no time what it takes up, once it may go on, and the names of that."""
    jobs: dict[str, Any] = {}
    names: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def read(taken: Taken) -> None:
        if go_on is not None:
            await go_on.wait()
        await engine.stores.of("alice").documents.update(taken.unread.id, "ready", epoch=taken.unread.epoch)
        del jobs[taken.unread.id]

    def begin(taken: Taken) -> None:
        names.append(taken.unread.record.name)
        jobs[taken.unread.id] = SimpleNamespace(epoch=taken.unread.epoch, hears=False, record=taken.unread.record)
        tasks.append(asyncio.create_task(read(taken)))

    return SharedReading(engine.stores, jobs, begin, lambda _owner, _talk: None, sharing=sharing, worker="me"), names


async def test_more_than_are_looked_at_in_one_go_are_all_read(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await engine.intake.shared.aclose()
    monkeypatch.setattr(shared, "_MOST_KNOWN", 2)
    monkeypatch.setattr(shared, "BEAT", 0.01)
    every = [(await left(engine, f"{number}.txt"))[0].name for number in range(5)]
    go_on = asyncio.Event()
    mine, names = reader(engine, go_on=go_on)
    await mine.watch()
    with anyio.fail_after(20):
        while mine.known:  # until it has looked at what is read here, and at nothing else
            await anyio.sleep(0.01)
        go_on.set()
        while len(names) < len(every):
            await anyio.sleep(0.01)  # between two looks
    await mine.aclose()
    assert sorted(names) == every


async def test_what_cannot_be_taken_up_now_ends_no_start(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    await engine.intake.shared.aclose()
    record, _ = await left(engine, "a.txt")
    mine, names = reader(engine)

    async def full(*_: Any, **__: Any) -> Taken:
        raise StorageError("The disk is full.")

    with monkeypatch.context() as away:
        away.setattr(engine.stores.readings, "take", full)
        await mine.look(first=True)
    assert (names, list(mine.known)) == ([], [record.id])
    await mine.look(first=True)
    assert names == ["a.txt"]


async def test_what_each_reader_dies_of_anew_stays_as_it_was_and_says_so(engine: Engine) -> None:
    await engine.intake.shared.aclose()
    documents = engine.stores.of("alice").documents
    record, _ = await left(engine, "a.pdf")
    was = await documents.update(record.id, "ready", library_id="abc", pages=7, facts={"chunks": 3})
    await documents.begin(was.id, Hold(DEAD, -1.0), ("ready",), library_id="abc", facts=was.facts, anew=True)
    for _ in range(2):
        found = await engine.stores.readings.of(was.id)
        assert found is not None
        await engine.stores.readings.put_back(found, died=True)
        (waits,) = await engine.stores.readings.waiting(1)
        await engine.stores.readings.take(waits, DEAD, lasts=-1.0)
    mine, names = reader(engine, Sharing())
    await mine.look(first=True)
    now = await documents.get(was.id)
    assert (names, now.status, now.library_id, now.pages, now.facts) == ([], "ready", "abc", 7, {"chunks": 3})
    assert (now.error or {})["key"] == "document_too_heavy"


async def test_what_is_taken_up_while_a_house_closes_is_left_to_others_at_once(engine: Engine) -> None:
    record, _ = await left(engine, "a.txt")
    engine.intake.is_closing = True
    await engine.intake.shared.look(first=True)
    await engine.intake.aclose()
    found = await engine.stores.readings.of(record.id)
    assert found is not None
    assert (found.lease.worker, found.lease.until) == (this_worker(), None)


async def test_what_is_read_anew_in_the_moment_of_its_end_is_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, intake = engine.stores.of("alice"), world_of(engine, "alice").intake
    ended, go_on, noted = asyncio.Event(), asyncio.Event(), DocumentStore.renewed

    async def held(store: DocumentStore, record: DocumentRecord) -> list[str | None]:
        ended.set()
        await go_on.wait()
        return await noted(store, record)

    monkeypatch.setattr(DocumentStore, "renewed", held)
    talk, file = await mine.conversations.create(), await mine.files.put("a.pdf", pdf(CLAUSE))
    record = await intake.add(talk.id, file)
    with anyio.fail_after(30):
        await ended.wait()
        again = asyncio.create_task(intake.renew(record.id))
        while (await mine.documents.get(record.id)).status != "reading":
            await anyio.sleep(0.01)  # between two looks
        go_on.set()
        await again
    job = engine.intake.jobs[record.id]
    assert job.before is not None
    assert (await intake.wait_for_end(record.id)).status == "ready"
