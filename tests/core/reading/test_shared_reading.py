"""Several Parlours on one PostgreSQL part the reading of documents: one that serves pages reads none while another may,
and what a reader leaves another one goes on with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import text

from core.engine import Engine
from core.reading import shared
from core.reading.shared import SharedReading
from core.runs.lease import Sharing
from core.settings import Settings
from core.storage.base import DocumentRecord
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import CLAUSE, Gate, index_of, long_pdf, pdf
from tests.core.talks import talk_of, world_of

pytestmark = pytest.mark.anyio
ELSEWHERE = "another-machine/7@7"


@pytest.fixture
async def house(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., Any]]:
    """Opens Parlours on one database, that share their files: `await house("web")`."""
    monkeypatch.setattr(
        "core.workspace.answering._sharing",
        lambda settings: Sharing(lease=0.6, beat=0.1, writes=settings.role != "web", each=2),
    )
    async with AsyncExitStack() as opened:
        opened.callback(GATES.clear)
        numbers = count(1)

        async def open_one(role: str) -> Engine:
            given: Any = {"home": tmp_path / "home", "retrieval": "keyword", "code": "off", "secret": "all the same"}
            settings = Settings.load(database=postgres, role=role, **given)
            number = next(numbers)
            monkeypatch.setattr("core.workspace.answering.this_worker", lambda: f"{role}/{number}@1")
            engine = await opened.enter_async_context(Engine(settings, model=ScriptedModel()))
            own: Any = SharedReading
            own._open.discard(engine.intake.shared)  # as if it were a process of its own
            opened.callback(open_gates)
            return engine

        yield open_one


GATES: list[Gate] = []


def open_gates() -> None:
    """Whatever became of the test: what is held would hold up its end."""
    for gate in GATES:
        gate.opened.set()


async def held(engine: Engine, *, early: bool = False) -> Gate:
    GATES.append(Gate(await index_of(engine, "alice"), early=early))
    return GATES[-1]


async def added(engine: Engine, data: bytes, name: str = "policy.pdf") -> DocumentRecord:
    talk = await engine.stores.of("alice").conversations.create()
    file = await engine.stores.of("alice").files.put(name, data)
    return await world_of(engine, "alice").intake.add(talk.id, file)


async def settled(engine: Engine, record: DocumentRecord) -> DocumentRecord:
    with anyio.fail_after(30):
        return await world_of(engine, "alice").intake.wait_for_end(record.id)


async def until(holds: Callable[[], Any]) -> None:
    with anyio.fail_after(30):
        while not holds():
            await anyio.sleep(0.01)  # between two looks


async def readings(engine: Engine) -> str:
    return await engine.stores.database.read(lambda c: str(c.execute(text("SELECT * FROM readings")).all()))


async def test_what_comes_to_one_that_serves_pages_is_read_by_a_worker_and_seen_there(house: Any) -> None:
    web, worker = await house("web"), await house("worker")
    gate = await held(worker)
    record = await added(web, long_pdf())
    intake = world_of(web, "alice").intake
    await until(lambda: (progress := intake.progress(record.id)) is not None and progress.pages)
    assert (record.id in web.intake.jobs, record.id in worker.intake.jobs) == (False, True)
    assert [one.id for one in intake.being_read(str(record.conversation_id))] == [record.id]
    first = await intake.wait_for_first_pages(record.id, 10)
    assert first.status == "reading"
    gate.opened.set()
    assert (await settled(web, record)).status == "ready"
    (found, *_) = await (await index_of(web, "alice")).afind("deductible for water damage")
    assert CLAUSE in found.text
    assert await readings(web) == "[]"


async def test_where_nobody_else_reads_one_that_serves_pages_does(house: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_GRACE", 0.0)
    web = await house("web")
    assert (await settled(web, await added(web, pdf(CLAUSE)))).status == "ready"


async def test_a_reading_is_called_off_from_any_parlour_and_what_waits_for_it_at_once(house: Any) -> None:
    web, worker = await house("web"), await house("worker")
    gate = await held(worker, early=True)
    record = await added(web, long_pdf())
    await until(gate.held.is_set)
    with anyio.fail_after(20):
        called_off = await world_of(web, "alice").intake.cancel(record.id)
    assert called_off.status == "cancelled"
    gate.opened.set()
    await until(lambda: not worker.intake.jobs)
    await worker.intake.shared.aclose()
    waits = await added(web, pdf("Something else."))
    assert (await world_of(web, "alice").intake.cancel(waits.id)).status == "cancelled"


async def test_a_reading_ends_where_its_conversation_is_deleted_elsewhere(house: Any) -> None:
    web, worker = await house("web"), await house("worker")
    gate = await held(worker, early=True)
    record = await added(web, long_pdf())
    await until(gate.held.is_set)
    with anyio.fail_after(20):
        await talk_of(web, "alice", str(record.conversation_id)).delete()
    await until(lambda: not worker.intake.jobs)
    gate.opened.set()
    assert (await readings(web), await web.stores.documents.unread()) == ("[]", [])


async def test_what_a_reader_left_is_read_by_another_and_the_late_one_writes_nothing(house: Any) -> None:
    first = await house("worker")
    gate = await held(first, early=True)
    record = await added(first, pdf(CLAUSE))
    await until(gate.held.is_set)
    job = first.intake.jobs[record.id]
    await first.intake.shared.aclose()  # held up: it renews nothing, and hears nothing
    other = await house("all")
    assert (await settled(other, record)).status == "ready"
    now = await other.stores.of("alice").documents.get(record.id)
    gate.opened.set()
    assert job.task is not None
    await asyncio.wait({job.task})
    assert await other.stores.of("alice").documents.get(record.id) == now
    assert len(await (await index_of(other, "alice")).afind("deductible")) == 1


async def test_a_document_that_each_reader_dies_of_is_left_unread_and_says_so(house: Any) -> None:
    web = await house("web")
    mine = web.stores.of("alice")
    file, talk = await mine.files.put("heavy.pdf", pdf(CLAUSE)), await mine.conversations.create()
    hold = web.intake.shared.hold(mine)
    record, _ = await mine.documents.add_to_read(talk.id, file.id, file.name, hold)
    for died in range(3):
        (waits,) = await web.stores.readings.waiting(1)
        assert waits.lost == died
        await web.stores.readings.take(waits, ELSEWHERE, lasts=-1.0)
        await until(lambda: web.intake.shared.known.get(record.id) is not None)
        with anyio.fail_after(20):
            while (await web.stores.readings.unread(1) or [waits])[0].lease.worker == ELSEWHERE:
                await anyio.sleep(0.05)  # between two looks
    failed = await settled(web, record)
    assert (failed.status, (failed.error or {})["key"]) == ("failed", "document_too_heavy")
    assert await readings(web) == "[]"


async def test_a_password_is_kept_sealed_until_the_document_is_read_and_no_longer(house: Any) -> None:
    web = await house("web")
    record = await added(web, pdf(CLAUSE, password="open sesame"))
    worker = await house("worker")
    locked = await settled(web, record)
    assert (locked.error or {})["key"] == "document_password_asked"
    gate = await held(worker, early=True)
    await world_of(web, "alice").intake.retry(record.id, "open sesame")
    await until(gate.held.is_set)
    kept = await readings(web)
    assert ("open sesame" in kept, record.id in kept, "'1." in kept) == (False, True, True)
    gate.opened.set()
    assert (await settled(web, record)).status == "ready"
    assert await readings(web) == "[]"


async def test_a_parlour_that_stops_gives_up_what_it_reads_and_another_goes_on_at_once(
    house: Any, postgres: str, tmp_path: Path
) -> None:
    web = await house("web")
    given: Any = {"home": tmp_path / "home", "retrieval": "keyword", "code": "off", "secret": "all the same"}
    async with Engine(Settings.load(database=postgres, role="worker", **given), model=ScriptedModel()) as first:
        gate = await held(first, early=True)
        record = await added(web, pdf(CLAUSE))
        await until(gate.held.is_set)
    (waits,) = await web.stores.readings.waiting(1)
    assert (waits.id, waits.lost) == (record.id, 0)
    await house("worker")
    assert (await settled(web, record)).status == "ready"


async def test_a_reading_whose_hold_the_database_ended_is_read_again_and_does_not_fail(house: Any) -> None:
    only = await house("all")
    gate = await held(only, early=True)
    record = await added(only, pdf(CLAUSE))
    await until(gate.held.is_set)
    ending = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'parlour-reader%'"
    )
    assert await only.stores.database.read(lambda c: c.execute(text(ending)).scalar_one())
    gate.opened.set()
    ended = await settled(only, record)
    assert (ended.status, ended.error) == ("ready", None)


async def test_bytes_that_are_not_here_are_left_to_whoever_has_them(
    house: Any, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "_GRACE", 1000.0)
    web = await house("web")
    given: Any = {"home": tmp_path / "away", "retrieval": "keyword", "code": "off", "secret": "all the same"}
    async with Engine(Settings.load(database=postgres, role="worker", **given), model=ScriptedModel()) as worker:
        record = await added(web, pdf(CLAUSE))
        assert (await settled(web, record)).status == "ready"
        assert worker.intake.jobs == {}
