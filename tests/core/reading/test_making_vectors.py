"""Several Parlours on one PostgreSQL part the making of vectors: one that serves pages leaves it to the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from core.engine import Engine
from core.rag.grown import making
from core.reading import making as opening
from core.runs.lease import Sharing
from core.settings import Settings
from core.storage.base import DocumentRecord
from core.testing.scripted_model import ScriptedModel
from tests.contract.test_vector_jobs import Held, Model
from tests.core.reading.held_reading import CLAUSE, index_of, pdf
from tests.core.talks import world_of

pytestmark = pytest.mark.anyio


class Houses:
    """Parlours on one database, each with a model of its own."""

    def __init__(self, opened: AsyncExitStack, database: str, home: Path, patch: pytest.MonkeyPatch) -> None:
        self._opened, self._database, self._home, self._patch = opened, database, home, patch
        self.models: dict[str, Model] = {}

    async def open(self, name: str, role: str) -> Engine:
        given: Any = {"home": self._home, "retrieval": "hybrid", "code": "off", "secret": "the same for all"}
        self._patch.setattr("core.workspace.answering.this_worker", lambda: f"{name}/1@1")
        engine = Engine(Settings.load(database=self._database, role=role, **given), model=ScriptedModel())
        self.models.setdefault(name, Model())
        engine = await self._opened.enter_async_context(engine)
        jobs = jobs_of(engine)
        assert jobs.worker == f"{name}/1@1"
        return engine

    async def index(self, name: str, engine: Engine) -> Any:
        """Alice's index there, which has the model of that Parlour."""
        self._patch.setattr("core.rag.embedding.catalog.embedders", lambda _: [self.models[name]])
        return await index_of(engine, "alice")


def jobs_of(engine: Engine) -> making.VectorJobs:
    shelves: Any = engine.workspaces._shelves  # pyright: ignore[reportPrivateUsage]
    return shelves.jobs


@pytest.fixture
async def houses(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Houses]:
    monkeypatch.setattr(making, "_LOOKS", 0.02)
    monkeypatch.setattr(making, "_FREE", making._FREE.replace(f"- {making._GRACE}", ""))  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(opening, "_EVERY", 0.05)
    monkeypatch.setattr(
        "core.workspace.answering._sharing",
        lambda settings: Sharing(beat=0.1, writes=settings.role != "web", each=2),
    )
    async with AsyncExitStack() as opened:
        yield Houses(opened, postgres, tmp_path / "home", monkeypatch)


async def added(engine: Engine, owner: str = "alice") -> DocumentRecord:
    mine = engine.stores.of(owner)
    talk, file = await mine.conversations.create(), await mine.files.put("policy.pdf", pdf(CLAUSE, "A second page."))
    intake = world_of(engine, owner).intake
    record = await intake.add(talk.id, file)
    async with asyncio.timeout(60):
        return await intake.wait_for_end(record.id)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)  # between two looks


async def jobs(engine: Engine) -> list[Any]:
    query = text("SELECT owner, worker FROM libraries.vector_jobs")
    return list(await engine.stores.database.read(lambda c: c.execute(query).all()))


async def made(index: Any) -> bool:
    return await asyncio.to_thread(index.wait_for_vectors, 30)


async def test_what_one_that_serves_pages_shows_is_made_by_a_worker_and_words_find_it_meanwhile(houses: Any) -> None:
    web, worker = await houses.open("web", "web"), await houses.open("worker", "worker")
    here = await houses.index("web", web)
    there = await houses.index("worker", worker)
    held = Held(houses.models["worker"])
    record = await added(web)
    assert record.status == "ready"
    await asyncio.to_thread(held.wait)
    (found, *_) = await here.afind("deductible for water damage")
    assert CLAUSE in found.text
    behind = here.retriever.vector_progress([record.library_id])
    assert behind[record.library_id][0] < behind[record.library_id][1], "and what was not searched is told"
    assert await jobs(web) == [("alice", "worker/1@1")]
    held.go_on.set()
    assert await made(there)
    here.retriever.changed()
    assert await made(here)
    whole = here.retriever.vector_progress([record.library_id])[record.library_id]
    assert whole[0] == whole[1] == len(houses.models["worker"].made)
    assert houses.models["web"].made == []
    assert await jobs(web) == []


async def test_a_library_that_nobody_has_open_is_opened_for_its_vectors(houses: Any) -> None:
    web = await houses.open("web", "web")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.reading.shared._GRACE", 0.0)
        index = await houses.index("web", web)
        record = await added(web)  # it reads, for nobody else does
    assert record.status == "ready"
    assert houses.models["web"].made == []
    assert await jobs(web) == [("alice", None)]
    model = houses.models["worker"] = Model()
    houses._patch.setattr("core.rag.embedding.catalog.embedders", lambda _: [model])
    worker = await houses.open("worker", "worker")
    assert await made(index)
    assert houses.models["worker"].made
    assert houses.models["web"].made == []
    assert await jobs(worker) == []


async def test_what_a_parlour_holds_that_ends_another_goes_on_with(houses: Any) -> None:
    async with AsyncExitStack() as ending:
        first = Houses(ending, houses._database, houses._home, houses._patch)
        one = await first.open("one", "all")
        await first.index("one", one)
        held = Held(first.models["one"])
        record = await added(one)
        await asyncio.to_thread(held.wait)
        other = await houses.open("other", "all")
        index = await houses.index("other", other)
        assert await jobs(other) == [("alice", "one/1@1")]
        threading.Timer(0.0, held.go_on.set).start()
    assert await made(index)
    counts = (len(first.models["one"].made), len(houses.models["other"].made))
    whole = index.retriever.vector_progress([record.library_id])[record.library_id]
    assert whole[0] == whole[1] == sum(counts)
    assert await jobs(other) == []
