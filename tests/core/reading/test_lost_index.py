"""An index that was deleted, emptied or lost a part is made again from what is kept, and nobody is told of nothing."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from core.engine import Engine
from core.rag.library import Library
from core.settings import Settings
from core.storage.base import DocumentRecord, folder_name
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import CLAUSE, index_of, is_read, pdf
from tests.core.talks import libraries_of, talk_of, unlock, world_of
from tests.stored_files import stored

pytestmark = pytest.mark.anyio

QUESTION = "What is the deductible for water damage?"


def house(tmp_path: Path, retrieval: str = "keyword") -> Engine:
    return Engine(Settings.load(home=tmp_path / "home", retrieval=retrieval), model=ScriptedModel())


def index_file(tmp_path: Path) -> Path:
    return tmp_path / "home" / "libraries" / folder_name("alice") / "library.sqlite"


def deleted(file: Path) -> None:
    file.unlink()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def without_tables(file: Path) -> None:
    file.unlink()
    sqlite3.connect(file).close()
    with sqlite3.connect(file) as db:
        db.execute("VACUUM")
    db.close()


def without_rows(file: Path) -> None:
    db = sqlite3.connect(file)
    db.execute("PRAGMA foreign_keys = ON")
    with db:
        db.execute("DELETE FROM documents")
    db.close()


def without_anything(file: Path) -> None:
    shutil.rmtree(file.parent)


def without_one_document(file: Path) -> None:
    db = sqlite3.connect(file)
    db.execute("PRAGMA foreign_keys = ON")
    with db:
        db.execute("DELETE FROM documents WHERE name = 'policy.md'")
    db.close()


async def with_documents(engine: Engine) -> tuple[str, DocumentRecord]:
    """A conversation that knows two documents, and the one that its question is about."""
    talk = await engine.stores.of("alice").conversations.create()
    policy = await engine.stores.of("alice").files.put("policy.md", CLAUSE.encode())
    other = await engine.stores.of("alice").files.put("other.md", b"Bicycles are stored in the cellar.")
    run = await talk_of(engine, "alice", talk.id).ask("Hello.", [policy.id, other.id])
    assert await run.wait() == "complete", run.error
    record = next(one for one in await engine.stores.of("alice").documents.list(talk.id) if one.name == "policy.md")
    return talk.id, record


async def found(engine: Engine, talk_id: str) -> list[str]:
    """The documents that the next question finds passages in."""
    run = await talk_of(engine, "alice", talk_id).ask(QUESTION)
    assert await run.wait() == "complete", run.error
    return [str(passage["document"]) for passage in run.reply().passages]


@pytest.mark.parametrize(
    "harm", [deleted, emptied, without_tables, without_rows, without_anything, without_one_document]
)
async def test_an_index_that_was_lost_between_two_starts_answers_the_first_question(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    async with house(tmp_path) as engine:
        talk_id, record = await with_documents(engine)
        assert "policy.md" in await found(engine, talk_id)
    harm(index_file(tmp_path))
    async with house(tmp_path) as engine:
        assert "policy.md" in await found(engine, talk_id)
        assert (await engine.stores.of("alice").documents.get(record.id)).status == "ready"
        assert len((await index_of(engine, "alice")).documents()) == 2


@pytest.mark.parametrize("harm", [deleted, emptied, without_anything])
async def test_an_index_that_is_lost_while_it_is_open_answers_the_next_question(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    async with house(tmp_path) as engine:
        talk_id, record = await with_documents(engine)
        harm(index_file(tmp_path))
        assert "policy.md" in await found(engine, talk_id)
        assert (await engine.stores.of("alice").documents.get(record.id)).status == "ready"
    async with house(tmp_path) as engine:  # and nothing of it was lost when that one was closed
        assert "policy.md" in await found(engine, talk_id)


async def test_an_index_that_is_lost_while_it_is_open_is_there_after_a_restart(tmp_path: Path) -> None:
    async with house(tmp_path) as engine:
        talk_id, _ = await with_documents(engine)
        deleted(index_file(tmp_path))
    async with house(tmp_path) as engine:
        assert "policy.md" in await found(engine, talk_id)


async def test_a_document_of_a_lost_index_can_be_read_again(tmp_path: Path) -> None:
    async with house(tmp_path) as engine:
        library = await libraries_of(engine, "alice").create("Policies")
        record = await libraries_of(engine, "alice").add(library.id, pdf(CLAUSE), "policy.pdf")
        assert (await is_read(engine, record.id)).status == "ready"
        without_rows(index_file(tmp_path))
        await libraries_of(engine, "alice").read_again(record.id)
        assert (await is_read(engine, record.id)).status == "ready"
        assert len(await libraries_of(engine, "alice").tried(library.id, QUESTION)) == 1


async def test_a_document_whose_file_is_gone_too_says_that_it_cannot_be_read(tmp_path: Path) -> None:
    async with house(tmp_path) as engine:
        talk_id, record = await with_documents(engine)
        _, path = await stored(engine.stores.of("alice").files, record.file_id)
    without_anything(index_file(tmp_path))
    path.unlink()
    async with house(tmp_path) as engine:
        assert "policy.md" not in await found(engine, talk_id)
        assert (await engine.stores.of("alice").documents.get(record.id)).status == "failed"


async def test_a_locked_document_is_restored_without_asking_for_its_password_again(tmp_path: Path) -> None:
    async with house(tmp_path) as engine:
        talk = await engine.stores.of("alice").conversations.create()
        file = await engine.stores.of("alice").files.put("policy.pdf", pdf(CLAUSE, password="sesame"))
        record = await world_of(engine, "alice").intake.add(talk.id, file)
        assert (await is_read(engine, record.id)).status == "failed"
        await unlock(engine, "alice", record.id, "sesame")
        assert (await is_read(engine, record.id)).status == "ready"
    for harm in (deleted, without_rows):
        harm(index_file(tmp_path))
        async with house(tmp_path) as engine:
            assert await found(engine, talk.id) == ["policy.pdf"]


async def test_vectors_that_were_lost_are_made_again(tmp_path: Path) -> None:
    async with house(tmp_path, "hybrid") as engine:
        talk_id, _ = await with_documents(engine)
        assert await asyncio.to_thread((await index_of(engine, "alice")).wait_for_vectors, 120)
    db = sqlite3.connect(index_file(tmp_path))
    with db:
        db.execute("DELETE FROM vectors")
    db.close()
    async with house(tmp_path, "hybrid") as engine:
        assert "policy.md" in await found(engine, talk_id)
        library = await index_of(engine, "alice")
        assert await asyncio.to_thread(library.wait_for_vectors, 120)
        made = library.retriever.vector_progress({one.id for one in library.documents()})
        assert all(done == total for done, total in made.values())


@pytest.mark.parametrize("harm", [deleted, emptied, without_tables, without_rows])
def test_a_library_of_a_program_whose_file_was_lost_is_read_again(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    folder = tmp_path / "library"
    with Library.open(folder) as library:
        library.add_text("The lamp is green.", name="a.txt")
        library.add_text("The lamp was red.", name="note", page=4)
        gone = library.add_text("The lamp is gone.", name="b.txt")
        library.remove(gone.id)
        before = {(one.text, one.document, one.page) for one in library.find("lamp")}
    harm(folder / "library.sqlite")
    with Library.open(folder) as library:
        assert {(one.text, one.document, one.page) for one in library.find("lamp")} == before


def test_a_library_that_is_empty_because_all_was_taken_out_stays_empty(tmp_path: Path) -> None:
    with Library.open(tmp_path) as library:
        library.remove(library.add_text("The lamp is green.", name="a.txt").id)
    (tmp_path / "library.sqlite").unlink()
    with Library.open(tmp_path) as library:
        assert library.documents() == []


def test_a_library_knows_whether_its_file_is_still_the_one_it_opened(tmp_path: Path) -> None:
    library = Library.open(tmp_path)
    assert library.is_intact()
    library.add_text("The lamp is green.", name="a.txt")
    assert library.is_intact()
    (tmp_path / "library.sqlite").rename(tmp_path / "moved.sqlite")
    assert not library.is_intact()
    (tmp_path / "moved.sqlite").rename(tmp_path / "library.sqlite")
    assert library.is_intact()
    library.close()
    assert not library.is_intact()
