"""How many documents of an owner may wait: what is too much is refused before anything of it is kept, in both forms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import TooManyRequestsError
from core.ingesting.ingestion import Told, Wanted, ingest
from core.reading.attachments import LONGEST_SHOWN
from core.settings import Settings
from core.storage.base import LOCAL_OWNER, QUEUED
from core.storage.database import Database
from core.storage.reading_rows import Hold
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import CLAUSE, Gate, index_of, is_read, pdf
from tests.core.talks import libraries_of, talk_of, world_of

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["sqlite", "postgresql"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    """Two documents of an owner may wait."""
    grown = {"database": request.getfixturevalue("postgres")} if request.param == "postgresql" else {}
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", documents_waiting=2, **grown)
    async with Engine(settings, model=ScriptedModel("It is 420 euros.", "Again.")) as running:
        yield running


@pytest.fixture
async def gate(engine: Engine) -> AsyncIterator[Gate]:
    """Two documents of alice's library are being read, and come to no end before it is opened."""
    gate = Gate(await index_of(engine, "alice"), early=True)
    shelf = await libraries_of(engine, "alice").create("Many")
    for number in range(2):
        await libraries_of(engine, "alice").add(shelf.id, f"Lamp {number}.".encode(), f"{number}.md")
    yield gate
    gate.opened.set()


def stored(engine: Engine) -> int:
    return sum(path.is_file() for path in (engine.settings.home / "files").rglob("*"))


async def test_a_document_of_a_library_beyond_them_is_refused_and_its_bytes_are_not_kept(
    engine: Engine, gate: Gate
) -> None:
    shelf, before = libraries_of(engine, "alice"), stored(engine)
    library = (await shelf.list())[0]
    with pytest.raises(
        TooManyRequestsError, match="No more than 2 of your documents may wait to be read at once; now waiting: 2"
    ):
        await shelf.add(library.id, pdf(CLAUSE), "policy.pdf")
    assert (stored(engine), len((await shelf.opened(library.id)).documents)) == (before, 2)
    again = await shelf.add(library.id, b"Lamp 0.", "the same.md")
    assert again.name == "0.md", "what is there already waits no second time"
    other = libraries_of(engine, "bob")
    assert (await other.add((await other.create("One")).id, pdf(CLAUSE), "his.pdf")).status == "reading"
    gate.opened.set()
    for one in (await shelf.opened(library.id)).documents:
        await is_read(engine, one.id)
    record = await shelf.add(library.id, pdf(CLAUSE), "policy.pdf")
    assert (await is_read(engine, record.id)).status == "ready"


@pytest.mark.usefixtures("gate")
@pytest.mark.parametrize("text", ["What is the deductible?", "word " * LONGEST_SHOWN], ids=["a file", "a long text"])
async def test_a_question_with_a_document_beyond_them_is_refused_whole_and_one_without_is_answered(
    engine: Engine, text: str
) -> None:
    mine = world_of(engine, "alice").stores
    talk = await mine.conversations.create()
    files = [(await mine.files.put("policy.pdf", pdf(CLAUSE))).id] if len(text) < LONGEST_SHOWN else []
    before = stored(engine)
    with pytest.raises(TooManyRequestsError):
        await talk_of(engine, "alice", talk.id).ask(text, files)
    assert await talk_of(engine, "alice", talk.id).messages() == []
    assert (stored(engine), await mine.documents.waiting()) == (before, 2)
    with pytest.raises(TooManyRequestsError):
        await world_of(engine, "alice").queue(talk.id).add("And later?", files or [(await shelved(engine)).file_id])
    run = await talk_of(engine, "alice", talk.id).ask("What do you know?")
    assert await run.wait() == "complete", run.error


async def shelved(engine: Engine) -> Any:
    """One of the documents that wait."""
    shelf = libraries_of(engine, "alice")
    return (await shelf.opened((await shelf.list())[0].id)).documents[0]


async def test_a_question_that_was_let_in_is_answered_when_more_wait_by_then(engine: Engine, gate: Gate) -> None:
    mine = world_of(engine, "alice").stores
    talk = await mine.conversations.create()
    file = await mine.files.put("policy.pdf", pdf(CLAUSE))
    record = await world_of(engine, "alice").intake.add(talk.id, file, is_let_in=True)
    assert (record.status, await mine.documents.waiting()) == ("reading", 3)
    gate.opened.set()
    assert (await is_read(engine, record.id)).status == "ready"


async def test_reading_once_more_waits_for_room_as_well(engine: Engine, gate: Gate) -> None:
    mine, intake = world_of(engine, "alice").stores, world_of(engine, "alice").intake
    stopped = await intake.cancel((await shelved(engine)).id)
    assert stopped.status == "cancelled"
    talk = await mine.conversations.create()
    await intake.add(talk.id, await mine.files.put("policy.pdf", pdf(CLAUSE)))
    for again in (intake.retry, intake.renew):
        with pytest.raises(TooManyRequestsError):
            await again(stopped.id)
    assert (await mine.documents.get(stopped.id)).status == "cancelled"
    gate.opened.set()
    for one in await mine.documents.list(talk.id):
        await is_read(engine, one.id)
    assert (await intake.retry(stopped.id)).status == "reading"


async def test_a_run_over_many_files_is_refused_nothing_it_keeps_a_few_on_their_way(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", documents_waiting=2)
    folder = tmp_path / "papers"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.md").write_text(f"Lamp {number} stands beside door {number}.")
    database = await Database.open(settings.database_in(settings.make_home()))
    mine = Stores(database, tmp_path / "files", Sealer("secret")).of(LOCAL_OWNER)
    talk = await mine.conversations.create()
    for name in ("a.txt", "b.txt"):
        file = await mine.files.put(name, name.encode())
        await mine.documents.add_to_read(talk.id, file.id, name, Hold(QUEUED))
    tally, _ = await ingest(settings, Wanted(str(folder), "Papers", LOCAL_OWNER), Told(quiet, quiet))
    assert (tally.read, tally.failed, await mine.documents.waiting()) == (5, 0, 2)
    await database.aclose()


def quiet(*_: object) -> None:
    """Nobody watches."""
