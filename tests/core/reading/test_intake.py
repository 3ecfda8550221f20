"""Documents on their way into a conversation: watched, called off, tried again, opened, and not waited for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import BrokenDocumentError, NotFoundError, StorageError
from core.rag.document import Document
from core.rag.library import Library
from core.rag.retriever import Retriever
from core.reading.intake import Intake
from core.reading.owner_intake import OwnerIntake
from core.runs.lease import this_worker
from core.runs.run import Run
from core.settings import Settings
from core.storage.base import DocumentRecord, folder_name
from core.storage.documents import DocumentStore
from core.storage.reading_rows import Hold
from core.testing.scripted_model import ScriptedModel
from core.workspace.retrying import Retried
from tests.core.reading.held_reading import CLAUSE, PAGES, Gate, index_of, long_pdf, pdf
from tests.core.talks import read_again, talk_of, unlock, world_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    async with house(tmp_path) as running:
        yield running


def house(tmp_path: Path) -> Engine:
    return Engine(Settings.load(home=tmp_path / "home", retrieval="keyword"), model=ScriptedModel())


async def asked(engine: Engine, **files: bytes) -> tuple[Run, list[DocumentRecord]]:
    """A question with files; its run, and its documents as they are at the beginning."""
    talk = await engine.stores.of("alice").conversations.create()
    ids = [(await engine.stores.of("alice").files.put(name.replace("_", "."), data)).id for name, data in files.items()]
    run = await talk_of(engine, "alice", talk.id).ask("What is the deductible for water damage?", ids)
    assert isinstance(run, Run)
    return run, await engine.stores.of("alice").documents.list(talk.id)


async def until(engine: Engine, holds: Callable[[], Any]) -> None:
    """Wait until something holds that a change of the engine brings about."""
    change = asyncio.Event()
    leave = engine.on_change(lambda _owner, _talk: change.set())
    async with asyncio.timeout(180):
        while not await holds():
            await change.wait()
            change.clear()
    leave()


async def document(engine: Engine, document_id: str) -> DocumentRecord:
    return await engine.stores.of("alice").documents.get(document_id)


async def searchable(engine: Engine, document_id: str) -> None:
    async def found() -> bool:
        return (await document(engine, document_id)).library_id is not None

    await until(engine, found)


async def ended(engine: Engine, document_id: str) -> None:
    """Wait until nothing is done for a document any more."""
    job = engine.intake.jobs.get(document_id)
    if job is not None and job.task is not None:
        await asyncio.wait({job.task})


async def settled(engine: Engine, document_id: str) -> DocumentRecord:
    async def over() -> bool:
        return (await document(engine, document_id)).status != "reading"

    await until(engine, over)
    return await document(engine, document_id)


async def stopped(engine: Engine, **files: bytes) -> tuple[Run, DocumentRecord]:
    """A question whose document was read as far as something of it is found; the run, and the document."""
    gate = Gate(await index_of(engine, "alice"))
    run, (record,) = await asked(engine, **files)
    await searchable(engine, record.id)
    record = await world_of(engine, "alice").intake.cancel(record.id)
    gate.opened.set()
    return run, record


async def found_in(engine: Engine, talk_id: str) -> int:
    """How many passages a search within a conversation's reach finds."""
    reach = await engine.stores.of("alice").documents.within_reach(talk_id)
    return len(await (await index_of(engine, "alice")).afind("Section policy", 1_000, documents=reach))


def left_out(run: Run) -> list[tuple[str, str]]:
    results = [block.result for block in run.reply().blocks if block.kind == "call"]
    told = [one for result in results if result is not None for one in (result.extra or {}).get("left_out") or ()]
    return [(one["name"], one["status"]) for one in told]


def left_in(folder: Path) -> Document:
    """The only document in the index, while nobody has it open."""
    with Library.open(folder / "home" / "libraries" / folder_name("alice"), {"retrieval_type": "keyword"}) as library:
        return library.documents()[0]


async def test_a_damaged_document_can_be_asked_and_says_that_it_is_damaged(engine: Engine) -> None:
    whole = pdf(*(f"Page {n} tells of matter {n}." for n in range(5)))
    run, (record,) = await asked(engine, cut_pdf=whole[: whole.rindex(b"trailer")])
    assert await run.wait() == "complete", run.error
    record = await document(engine, record.id)
    assert record.status == "ready"
    assert record.error is not None
    assert (record.error["key"], record.error["details"]) == ("document_damaged", {"name": "cut.pdf"})


async def test_what_reading_found_is_kept_and_the_same_bytes_are_known_already(tmp_path: Path) -> None:
    data = long_pdf()
    async with house(tmp_path) as engine:
        run, (record,) = await asked(engine, policy_pdf=data)
        assert await run.wait() == "complete", run.error
        facts = (await document(engine, record.id)).facts or {}
        assert (facts["pages"], facts["total"], facts["scanned"]) == (PAGES, PAGES, 0)
        assert facts["chunks"] >= PAGES
        assert facts["seconds"] > 0
        assert "known" not in facts
    async with house(tmp_path) as engine:
        assert (await document(engine, record.id)).facts == facts
        again, (other,) = await asked(engine, same_pdf=data)
        assert await again.wait() == "complete"
        told = (await document(engine, other.id)).facts or {}
        assert (told["known"], told["chunks"]) == (True, facts["chunks"])


async def test_a_question_goes_on_with_the_pages_that_are_there_when_it_is_told_to(engine: Engine) -> None:
    gate = Gate(await index_of(engine, "alice"))
    run, (record,) = await asked(engine, policy_pdf=long_pdf())
    await searchable(engine, record.id)
    progress = world_of(engine, "alice").intake.progress(record.id)
    assert progress is not None
    assert 0 < progress.pages < PAGES == progress.total
    assert 0 < progress.chunks < PAGES
    assert run.reply().blocks == []
    assert world_of(engine, "bob").intake.progress(record.id) is None
    assert world_of(engine, "bob").intake.being_read(run.conversation_id) == []
    world_of(engine, "bob").intake.stop_waiting(run.conversation_id)  # nothing to her
    world_of(engine, "alice").intake.stop_waiting(run.conversation_id)
    assert await run.wait() == "complete", run.error
    assert next(passage["page"] for passage in run.reply().passages) == 1
    assert left_out(run) == [("policy.pdf", "reading")]
    assert (await document(engine, record.id)).status == "reading"
    gate.opened.set()
    [read] = await world_of(engine, "alice").intake.wait(run.conversation_id, [record.id], 60)
    assert read.status == "ready"
    assert world_of(engine, "alice").intake.progress(record.id) is None


async def test_reading_goes_on_where_it_cannot_be_noted_that_some_of_it_is_found(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, update, refused = Gate(await index_of(engine, "alice")), DocumentStore.update, asyncio.Event()

    async def busy(documents: DocumentStore, document_id: str, status: Any, **values: Any) -> DocumentRecord:
        if status == "reading" and values.get("library_id"):
            refused.set()
            raise StorageError("The database is busy.")
        return await update(documents, document_id, status, **values)

    monkeypatch.setattr(DocumentStore, "update", busy)
    _, (record,) = await asked(engine, policy_pdf=long_pdf())
    async with asyncio.timeout(180):
        await refused.wait()
    gate.opened.set()
    assert (await settled(engine, record.id)).status == "ready"


async def test_reading_is_called_off_and_begun_again_and_the_question_answered_after_all(engine: Engine) -> None:
    gate = Gate(library := await index_of(engine, "alice"), early=True)
    run, (record,) = await asked(engine, policy_pdf=long_pdf())
    await asyncio.to_thread(gate.held.wait, 60)
    for stranger in (world_of(engine, "bob").intake.cancel(record.id), read_again(engine, "bob", record.id)):
        with pytest.raises(NotFoundError):
            await stranger
    cancelled = await world_of(engine, "alice").intake.cancel(record.id)
    assert (cancelled.status, cancelled.library_id) == ("cancelled", None)
    assert library.documents() == []
    assert await run.wait() == "error"
    assert run.error is not None
    assert (run.error["key"], run.error["details"]) == ("document_cancelled", {"name": "policy.pdf"})
    gate.opened.set()
    assert (await read_again(engine, "alice", record.id)).status == "reading"
    again = engine.runs.live(run.conversation_id)
    assert again is not None
    assert await again.wait() == "complete", again.error
    assert again.reply().passages
    assert (await world_of(engine, "alice").intake.cancel(record.id)).status == "ready"  # too late


@pytest.mark.parametrize("name", ["policy_pdf", "pasted_txt"])
async def test_what_is_called_off_at_the_end_of_its_reading_is_left_out_all_the_same(name: str, engine: Engine) -> None:
    index = await index_of(engine, "alice")
    add, was_read = index.aadd, asyncio.Event()

    async def late(*args: Any, **options: Any) -> Any:
        document = await add(*args, **options)
        was_read.set()
        while not (options["enough"].is_set() or options["cancelled"].is_set()):
            await asyncio.sleep(0)
        return document

    index.aadd = late  # type: ignore[method-assign]
    text = b"The deductible for water damage is 300 dollars. " * 400
    run, (record,) = await asked(engine, **{name: long_pdf() if name == "policy_pdf" else text})
    async with asyncio.timeout(180):
        await was_read.wait()
    cancelled = await world_of(engine, "alice").intake.cancel(record.id)
    index.aadd = add  # type: ignore[method-assign]
    assert (cancelled.status, cancelled.library_id) == ("cancelled", None)
    assert index.documents() == []
    assert await run.wait() == "error"
    assert run.error is not None
    assert run.error["key"] == "document_cancelled"
    await read_again(engine, "alice", record.id)
    assert (await settled(engine, record.id)).status == "ready"
    assert index.documents()


@pytest.mark.parametrize("early", [True, False])
async def test_what_is_called_off_at_another_parlour_stays_so_and_nothing_of_it_stays_in_the_index(
    early: bool, engine: Engine
) -> None:
    gate = Gate(library := await index_of(engine, "alice"), early=early)
    _, (record,) = await asked(engine, policy_pdf=long_pdf())
    await asyncio.to_thread(gate.held.wait, 60)
    stores = engine.stores.of("alice")
    another = OwnerIntake(Intake(engine.stores, engine.workspaces.index, lambda *_: None), stores)
    called_off = await another.cancel(record.id)
    assert (called_off.status, called_off.library_id) == ("cancelled", None)
    gate.opened.set()
    await ended(engine, record.id)
    assert await document(engine, record.id) == called_off
    assert library.documents() == []


async def test_what_was_read_until_reading_was_stopped_answers_and_the_rest_is_read_later(engine: Engine) -> None:
    run, record = await stopped(engine, policy_pdf=long_pdf())
    facts = record.facts or {}
    assert (record.status, facts["total"]) == ("cancelled", PAGES)
    assert 0 < facts["pages"] < PAGES
    assert await run.wait() == "complete", run.error
    assert next(passage["page"] for passage in run.reply().passages) == 1
    (call,) = [block.result for block in run.reply().blocks if block.kind == "call"]
    assert call is not None
    (told,) = (call.extra or {})["left_out"]
    assert (told["status"], told["found"], told["pages"], told["total"]) == ("cancelled", True, facts["pages"], PAGES)
    some = await found_in(engine, run.conversation_id)
    assert 0 < some < PAGES
    gate = Gate(await index_of(engine, "alice"))
    reading = await read_again(engine, "alice", record.id)
    assert (reading.status, reading.library_id) == ("reading", record.library_id)
    assert await found_in(engine, run.conversation_id) >= some  # while the rest is read
    gate.opened.set()
    whole = await settled(engine, record.id)
    assert (whole.status, (whole.facts or {})["pages"]) == ("ready", PAGES)
    assert await found_in(engine, run.conversation_id) >= PAGES


async def test_a_document_that_was_stopped_is_so_after_a_restart_and_can_be_let_go(tmp_path: Path) -> None:
    async with house(tmp_path) as engine:
        run, record = await stopped(engine, policy_pdf=long_pdf())
        await run.wait()
        some = await found_in(engine, run.conversation_id)
    async with house(tmp_path) as engine:
        assert await document(engine, record.id) == record
        assert await found_in(engine, run.conversation_id) == some > 0
        with pytest.raises(NotFoundError):
            await world_of(engine, "bob").intake.forget(record.id)
        gone = await world_of(engine, "alice").intake.forget(record.id)
        assert (gone.status, gone.library_id, gone.facts) == ("cancelled", None, None)
        assert (await index_of(engine, "alice")).documents() == []
        await read_again(engine, "alice", record.id)
        whole = await settled(engine, record.id)
        assert (whole.status, await world_of(engine, "alice").intake.forget(record.id)) == ("ready", whole)


async def test_what_one_conversation_stops_another_reads_to_its_end_for_both(engine: Engine) -> None:
    data = long_pdf()
    run, record = await stopped(engine, policy_pdf=data)
    await run.wait()
    other, (same,) = await asked(engine, same_pdf=data)
    await other.wait()
    assert [(await document(engine, one)).status for one in (record.id, same.id)] == ["ready", "ready"]
    assert ((await document(engine, record.id)).facts or {})["pages"] == PAGES
    assert await found_in(engine, run.conversation_id) >= PAGES


async def test_what_is_let_go_stays_for_whoever_else_has_it(engine: Engine) -> None:
    data = long_pdf()
    run, record = await stopped(engine, policy_pdf=data)
    other, (same,) = await asked(engine, same_pdf=data)
    assert await world_of(engine, "alice").intake.cancel(same.id)
    await asyncio.gather(run.wait(), other.wait())
    if (await document(engine, same.id)).library_id is None:  # it had not begun
        await read_again(engine, "alice", same.id)
        await settled(engine, same.id)
    await world_of(engine, "alice").intake.forget(record.id)
    assert await found_in(engine, other.conversation_id) > 0


async def test_the_rest_that_cannot_be_read_leaves_what_was_and_says_why(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, record = await stopped(engine, policy_pdf=long_pdf())
    await run.wait()
    some = await found_in(engine, run.conversation_id)

    def broken(*_args: Any, **_options: Any) -> Any:
        raise BrokenDocumentError("The file is damaged.")

    monkeypatch.setattr("core.rag.parsers.process.stream", broken)
    await read_again(engine, "alice", record.id)
    after = await settled(engine, record.id)
    assert (after.status, after.library_id, after.facts) == ("cancelled", record.library_id, record.facts)
    assert (after.error or {})["key"] == "document_broken"
    assert await found_in(engine, run.conversation_id) == some


async def test_of_three_files_the_broken_one_does_not_hold_up_the_others(engine: Engine) -> None:
    run, records = await asked(
        engine, one_pdf=pdf(CLAUSE), cut_pdf=b"%PDF-1.7\n1 0 obj", two_md=b"The heron nests in the alder."
    )
    assert await run.wait() == "complete", run.error
    assert [(await document(engine, one.id)).status for one in records] == ["ready", "failed", "ready"]
    assert left_out(run) == [("cut.pdf", "failed")]
    assert {passage["document"] for passage in run.reply().passages} >= {"one.pdf"}


async def test_a_password_opens_a_document_and_its_question_is_answered(engine: Engine, tmp_path: Path) -> None:
    run, (record,) = await asked(engine, locked_pdf=pdf(CLAUSE, password="OPEN-CANARY"))
    assert await run.wait() == "error"
    assert run.error is not None
    assert run.error["key"] == "document_password_asked"
    wrong, _ = await unlock(engine, "alice", record.id, "WRONG-CANARY")
    assert wrong.status == "failed"
    assert (wrong.error or {})["key"] == "document_password_wrong"
    assert engine.runs.live(run.conversation_id) is None
    await unlock(engine, "alice", record.id, "OPEN-CANARY")
    again = engine.runs.live(run.conversation_id)
    if again is not None:
        await again.wait()
    *_, reply = await engine.stores.of("alice").conversations.thread(run.conversation_id)
    assert (reply.status, (await document(engine, record.id)).status) == ("complete", "ready")
    assert (await engine.runs.of("alice").reply(reply)).passages
    kept = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert b"CANARY" not in kept


async def test_a_password_lets_a_question_be_answered_again_from_both_files(
    engine: Engine,
) -> None:
    run, records = await asked(engine, locked_pdf=pdf(CLAUSE, password="OPEN"), other_md=b"The heron nests here.")
    assert await run.wait() == "complete", run.error
    (locked,) = [one for one in records if one.name == "locked.pdf"]
    assert (await unlock(engine, "alice", locked.id, "WRONG"))[1] == Retried()
    conversations = engine.stores.of("alice").conversations
    *_, reply = await conversations.thread(run.conversation_id)
    opened, retried = await unlock(engine, "alice", locked.id, "OPEN")
    assert opened.status != "failed"
    assert retried == Retried(reply=reply.id)
    assert engine.runs.live(run.conversation_id) is None, "it was answered, so its reader alone asks it again"
    assert len(await conversations.siblings(reply.id)) == 1
    assert (await unlock(engine, "alice", locked.id, "OPEN"))[1] == Retried()  # it is open already
    again = await talk_of(engine, "alice", run.conversation_id).regenerate(retried.reply)
    assert isinstance(again, Run)
    assert await again.wait() == "complete", again.error
    assert "locked.pdf" in {passage["document"] for passage in again.reply().passages}
    assert len(await conversations.siblings(reply.id)) == 2  # the first answer stays


async def test_what_is_called_off_while_it_waits_for_its_turn_is_never_begun(engine: Engine) -> None:
    gate = Gate(await index_of(engine, "alice"))
    files = {f"n{n}_pdf": pdf(*(f"Paper {n}, page {page}. {CLAUSE}" for page in range(PAGES))) for n in range(3)}
    run, records = await asked(engine, **files)
    for record in records[:2]:
        await searchable(engine, record.id)
    assert world_of(engine, "alice").intake.progress(records[2].id) is None
    assert (await world_of(engine, "alice").intake.cancel(records[2].id)).status == "cancelled"
    gate.opened.set()
    assert await run.wait() == "complete", run.error
    assert sorted(gate.begun) == ["n0.pdf", "n1.pdf"]
    assert left_out(run) == [("n2.pdf", "cancelled")]


async def test_a_document_whose_conversation_is_deleted_while_it_is_read_is_gone_at_once(engine: Engine) -> None:
    Gate(library := await index_of(engine, "alice"))
    run, (record,) = await asked(engine, policy_pdf=long_pdf())
    await searchable(engine, record.id)
    await talk_of(engine, "alice", run.conversation_id).delete()
    assert library.documents() == []
    with pytest.raises(NotFoundError):
        await document(engine, record.id)


async def test_a_document_that_was_being_read_when_the_house_closed_is_read_at_the_next_start(tmp_path: Path) -> None:
    async with house(tmp_path) as engine:
        Gate(await index_of(engine, "alice"))
        _, (record,) = await asked(engine, policy_pdf=long_pdf())
        await searchable(engine, record.id)
    assert (await asyncio.to_thread(left_in, tmp_path)).status == "stopped"  # what was read is not read again
    async with house(tmp_path) as engine:
        assert (await settled(engine, record.id)).status == "ready"
        assert ((await document(engine, record.id)).facts or {})["pages"] == PAGES


async def test_after_a_restart_vectors_go_on_being_made_and_counted_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    async with house(tmp_path) as engine:
        run, (record,) = await asked(engine, policy_pdf=pdf(CLAUSE))
        assert await run.wait() == "complete", run.error
        text = (await document(engine, record.id)).library_id

    def come(_: Retriever, ids: Collection[str]) -> dict[str, tuple[int, int]]:
        return dict.fromkeys(ids, (8, 8) if over.is_set() else (3, 8))

    monkeypatch.setattr(Retriever, "vector_progress", come)
    told: list[Callable[[], None]] = []
    monkeypatch.setattr(Retriever, "vectors_idle", lambda _: over.is_set())
    monkeypatch.setattr(Retriever, "on_vector_progress", lambda _, callback: told.append(callback) or (lambda: None))
    async with house(tmp_path) as engine:
        assert text is not None

        async def is_counted() -> bool:
            return bool(told) and world_of(engine, "alice").intake.preparing() == {record.id: (3, 8)}

        await until(engine, is_counted)  # nobody asked for her library
        over.set()
        told[-1]()

        async def is_over() -> bool:
            return not world_of(engine, "alice").intake.preparing()

        await until(engine, is_over)


async def test_whoever_agreed_to_a_price_is_not_asked_again_once_something_of_it_is_found(engine: Engine) -> None:
    mine, intake = engine.stores.of("alice"), world_of(engine, "alice").intake
    talk, file = await mine.conversations.create(), await mine.files.put("a.pdf", pdf(CLAUSE, "Another page."))
    record = await mine.documents.add(talk.id, file.id, file.name)
    await mine.documents.update(record.id, "failed", error={"key": "recording_price"})
    gate = Gate(await index_of(engine, "alice"))
    await intake.retry(record.id)
    await searchable(engine, record.id)
    noted = await document(engine, record.id)
    gate.opened.set()
    assert (noted.status, (noted.facts or {}).get("agreed")) == ("reading", True)
    assert (await intake.wait_for_end(record.id)).status == "ready"


async def test_what_a_dead_process_on_the_same_folder_left_unread_is_read_without_a_restart(engine: Engine) -> None:
    mine = engine.stores.of("alice")
    talk, file = await mine.conversations.create(), await mine.files.put("a.pdf", pdf(CLAUSE))
    dead = f"{this_worker().rpartition('/')[0]}/1@0"  # no process with that number began then
    record, _ = await mine.documents.add_to_read(talk.id, file.id, file.name, Hold(dead, 20.0))
    await engine.intake.shared.look()
    assert (await world_of(engine, "alice").intake.wait_for_end(record.id)).status == "ready"
