"""Several who do things with the same documents at once, and disks that fill in the midst of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import NoSpaceError
from core.rag.index_file import IndexFile
from core.rag.parsers import process
from core.settings import Settings
from core.storage.base import DocumentRecord
from core.storage.documents import DocumentStore
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import CLAUSE, Gate, index_of, is_read, long_pdf, pdf
from tests.core.talks import libraries_of, talk_of, world_of
from tests.stored_files import stored as at

pytestmark = pytest.mark.anyio


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword")
    async with Engine(settings, model=ScriptedModel()) as running:
        yield running


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the documents that were given to a reader, in order."""
    names: list[str] = []
    stream = process.stream

    def counted(path: Path, name: str, *args: Any, **options: Any) -> Any:
        names.append(name)
        return stream(path, name, *args, **options)

    monkeypatch.setattr(process, "stream", counted)
    return names


def stored(engine: Engine) -> int:
    return sum(path.is_file() for path in (engine.settings.home / "files").rglob("*"))


async def test_two_tabs_that_give_a_library_the_same_file_at_once_make_one_document(
    engine: Engine, read: list[str]
) -> None:
    library, data = await libraries_of(engine, "alice").create("Policies"), pdf(CLAUSE)
    both = [libraries_of(engine, "alice").add(library.id, data, name) for name in ("one.pdf", "two.pdf")]
    first, second = await asyncio.gather(*both)
    assert first.id == second.id
    assert (await is_read(engine, first.id)).status == "ready"
    assert len(read) == 1
    assert len((await libraries_of(engine, "alice").opened(library.id)).documents) == 1
    assert stored(engine) == 1


async def test_two_conversations_that_are_given_the_same_file_at_once_read_it_once(
    engine: Engine, read: list[str]
) -> None:
    data = long_pdf()
    records: list[DocumentRecord] = []
    for _ in range(2):
        talk = await engine.stores.of("alice").conversations.create()
        file = await engine.stores.of("alice").files.put("policy.pdf", data)
        records.append(await world_of(engine, "alice").intake.add(talk.id, file))
    assert [(await is_read(engine, one.id)).status for one in records] == ["ready", "ready"]
    assert len(read) == 1


async def test_a_small_owners_document_is_read_while_hundreds_of_another_owner_wait(engine: Engine) -> None:
    many, one = libraries_of(engine, "alice"), libraries_of(engine, "bob")
    gate = Gate(await index_of(engine, "alice"), early=True)  # none of hers comes to its end
    shelf, count = await many.create("Many"), 200
    for number in range(count):
        await many.add(shelf.id, f"Lamp {number} stands beside door {number}.".encode(), f"{number}.md")
    record = await one.add((await one.create("One")).id, pdf(CLAUSE), "mine.pdf")
    assert (await world_of(engine, "bob").intake.wait_for_end(record.id)).status == "ready"
    (found,) = await (await index_of(engine, "bob")).afind("What is the deductible?")
    assert found.document == "mine.pdf"
    assert len(gate.begun) <= 2
    assert len(engine.intake.jobs) == count


async def test_a_library_that_is_deleted_while_it_is_asked_ends_no_reply(engine: Engine) -> None:
    library, talk = (
        await libraries_of(engine, "alice").create("Policies"),
        await engine.stores.of("alice").conversations.create(),
    )
    await is_read(engine, (await libraries_of(engine, "alice").add(library.id, pdf(CLAUSE), "policy.pdf")).id)
    await libraries_of(engine, "alice").use(talk.id, library.id, on=True)
    index = await index_of(engine, "alice")
    find, was_asked, is_gone = index.find, threading.Event(), threading.Event()

    def late(*args: Any, **options: Any) -> Any:
        was_asked.set()
        assert is_gone.wait(60)
        return find(*args, **options)

    index.find = late  # type: ignore[method-assign]
    tried = asyncio.create_task(libraries_of(engine, "alice").tried(library.id, "What is the deductible?"))
    assert await asyncio.to_thread(was_asked.wait, 60)
    await libraries_of(engine, "alice").delete(library.id)
    is_gone.set()
    assert await tried == []
    run = await talk_of(engine, "alice", talk.id).ask("What is the deductible for water damage?")
    assert await run.wait() == "complete", run.error
    assert run.reply().passages == []


async def test_a_disk_that_fills_while_a_document_is_read_says_so_and_it_is_read_when_there_is_room(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = await libraries_of(engine, "alice").create("Policies")
    kept = await is_read(engine, (await libraries_of(engine, "alice").add(library.id, pdf(CLAUSE), "policy.pdf")).id)
    gate = Gate(await index_of(engine, "alice"))
    record = await libraries_of(engine, "alice").add(library.id, long_pdf(), "long.pdf")
    await asyncio.to_thread(gate.held.wait, 60)
    with pytest.MonkeyPatch.context() as full:

        def no_room(_file: IndexFile) -> Any:
            raise NoSpaceError("The disk is full.")

        full.setattr(IndexFile, "writing", no_room)
        gate.opened.set()
        failed = await is_read(engine, record.id)
    assert (failed.status, (failed.error or {})["key"]) == ("failed", "no_space")
    assert await libraries_of(engine, "alice").tried(library.id, "deductible for water damage")
    await libraries_of(engine, "alice").read_again(record.id)
    assert (await is_read(engine, record.id)).status == "ready"
    assert (await engine.stores.of("alice").documents.get(kept.id)) == kept


async def test_what_failed_and_is_read_again_at_once_is_not_taken_out_with_what_was_left_of_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = await libraries_of(engine, "alice").create("Policies")
    gate = Gate(await index_of(engine, "alice"))
    asked, go = asyncio.Event(), asyncio.Event()
    unneeded = DocumentStore.unneeded

    async def slowly(documents: DocumentStore, library_ids: Sequence[str]) -> list[str]:
        found = await unneeded(documents, library_ids)
        if not asked.is_set():
            asked.set()
            await go.wait()
        return found

    monkeypatch.setattr(DocumentStore, "unneeded", slowly)
    record = await libraries_of(engine, "alice").add(library.id, b"%PDF-1.7 of which nothing is left", "broken.pdf")
    await asked.wait()
    assert (await engine.stores.of("alice").documents.get(record.id)).status == "failed"
    _, path = await at(engine.stores.of("alice").files, record.file_id)
    path.write_bytes(long_pdf())
    await libraries_of(engine, "alice").read_again(record.id)
    while world_of(engine, "alice").intake.progress(record.id) is None:
        await asyncio.sleep(0)
    begins_before = await asyncio.to_thread(gate.held.wait, 0.5)
    go.set()
    gate.opened.set()
    assert (await is_read(engine, record.id)).status == "ready"
    assert not begins_before


async def test_a_document_that_is_taken_out_while_it_is_read_leaves_nothing(engine: Engine) -> None:
    gate = Gate(index := await index_of(engine, "alice"))
    library = await libraries_of(engine, "alice").create("Policies")
    record = await libraries_of(engine, "alice").add(library.id, long_pdf(), "long.pdf")
    await asyncio.to_thread(gate.held.wait, 60)
    await libraries_of(engine, "alice").remove(record.id)
    assert index.documents() == []
    assert stored(engine) == 0
