"""Several Parlours on one PostgreSQL part the making of vectors: one that serves pages leaves it to the others."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import text

from core.engine import Engine
from core.errors import ModelServiceError, StorageError
from core.rag.grown import makers, making
from core.reading import making as opening
from core.reading.preparing import Preparing
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

    async def open(self, name: str, role: str, **more: Any) -> Engine:
        given: Any = {"home": self._home, "retrieval": "hybrid", "code": "off", "secret": "the same for all", **more}
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
    monkeypatch.setattr(makers, "_EVERY", 0.0)
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
    async with asyncio.timeout(180):
        return await intake.wait_for_end(record.id)


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)  # between two looks


async def jobs(engine: Engine) -> list[Any]:
    query = text("SELECT owner, worker FROM libraries.vector_jobs")
    return list(await engine.stores.database.read(lambda c: c.execute(query).all()))


async def until_none(engine: Engine) -> None:
    async with asyncio.timeout(30):
        while await jobs(engine):
            await asyncio.sleep(0.02)  # between two looks


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


async def test_what_a_worker_read_and_prepares_is_shown_by_a_page_that_never_searched_it(houses: Any) -> None:
    web, worker = await houses.open("web", "web"), await houses.open("worker", "worker")
    await houses.index("worker", worker)
    held = Held(houses.models["worker"])
    record, shown = await added(web), world_of(web, "alice").intake
    await asyncio.to_thread(held.wait)
    await until(lambda: record.id in shown.preparing())
    assert shown.held_up() == ""
    held.go_on.set()
    await until(lambda: not shown.preparing())
    assert await jobs(web) == []


async def test_what_waits_for_a_worker_since_before_this_process_is_shown_with_why(
    houses: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "_TOLD_AFTER", 0.0)
    monkeypatch.setattr("core.reading.shared._GRACE", 0.0)
    one = await houses.open("one", "web")
    await houses.index("one", one)
    record = await added(one)
    shown = world_of(await houses.open("other", "web"), "alice").intake
    await until(lambda: record.id in shown.preparing() and shown.held_up() == "nobody")


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
    await asyncio.to_thread(index.wait_for_vectors, 30)
    worker = await houses.open("worker", "worker")
    await until_none(worker)
    index.retriever.changed()
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


@pytest.mark.parametrize("way", ["retry", "renew"])
async def test_what_failed_is_told_and_made_at_once_when_its_owner_asks_for_it(
    houses: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(making, "_AGAIN", 3600.0)
    monkeypatch.setattr(making, "_LONGEST", 3600.0)
    one = await houses.open("one", "all")

    def away() -> None:
        raise ModelServiceError("The service is away.")

    model = houses.models["one"]
    model.before = away
    await houses.index("one", one)
    record, here = await added(one), world_of(one, "alice")
    await until(lambda: here.intake.held_up() == "failed")
    assert record.id in here.intake.preparing()
    model.before = lambda: None
    await getattr(here.intake, way)(record.id)
    await until(lambda: not here.intake.preparing())
    assert here.intake.held_up() == ""
    assert model.made
    assert await jobs(one) == []


async def test_where_no_worker_runs_that_is_told_until_one_comes(houses: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "_TOLD_AFTER", 0.0)
    monkeypatch.setattr("core.reading.shared._GRACE", 0.0)
    web = await houses.open("web", "web")
    await houses.index("web", web)
    record = await added(web)
    here = world_of(web, "alice")
    await until(lambda: here.intake.held_up() == "nobody")
    assert record.id in here.intake.preparing()
    houses._patch.setattr("core.rag.embedding.catalog.embedders", lambda _: [Model()])
    await houses.open("worker", "worker")
    await until(lambda: not here.intake.preparing())
    assert here.intake.held_up() == ""


async def test_parlours_that_are_set_to_different_models_know_it_of_each_other(houses: Any) -> None:
    old, new = await houses.open("old", "all"), await houses.open("new", "all", embedding_model="use")
    await until(lambda: old.intake.differing[1])
    await until(lambda: new.intake.differing[1])
    (here, (there,)), (there_too, (here_too,)) = old.intake.differing, new.intake.differing
    assert (here, there) == (here_too, there_too)
    assert here != there
    assert (jobs_of(old).makers.differs, jobs_of(new).makers.differs) == (True, False)


class LateJobs:
    """Jobs whose look goes on in its thread until it is let go, and fails then; what it finds cannot be opened."""

    makes = True

    def __init__(self, *found: Any) -> None:
        self.makers: Any = self
        self.found = list(found)
        self.begun, self.closed, self.go_on = threading.Event(), threading.Event(), threading.Event()

    def begin(self) -> None:
        """Be there."""

    def look(self) -> None:
        if not self.found:
            self.fail_late()

    def take_waiting(self) -> list[Any]:
        return [self.found.pop()]

    def fail_late(self, **_: Any) -> None:
        self.begun.set()
        assert self.go_on.wait(30)
        raise StorageError("The pool is closed.")

    def close(self) -> None:
        self.closed.set()


@pytest.mark.parametrize("is_found", [False, True], ids=["a look", "a job that is given up"])
async def test_closing_waits_for_what_is_done_in_a_thread_and_its_failure_is_not_reported_as_forgotten(
    is_found: bool,
) -> None:
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))
    jobs = LateJobs()
    if is_found:
        jobs.found = [SimpleNamespace(owner="alice", is_held=True, is_begun=False, give_up=jobs.fail_late)]

    def no_index(_: str) -> Any:
        raise StorageError("It cannot be opened.")

    given: Any = (jobs, no_index, Preparing(no_index, reported.append), no_index)
    vectors = opening.MakingVectors(*given)
    vectors.begin()
    await until(jobs.begun.is_set)
    closing = asyncio.create_task(vectors.aclose())
    await until(jobs.closed.is_set)
    for _ in range(200):
        await asyncio.sleep(0)
    was_open = not closing.done()
    jobs.go_on.set()
    await closing
    del vectors
    gc.collect()
    assert was_open, "what it takes from here on would be nobody's"
    assert reported == []
