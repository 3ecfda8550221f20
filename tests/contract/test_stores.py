"""Every store, for every kind of database: what is somebody else's does not exist."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConflictError, NotFoundError
from core.messages.message import Message
from core.storage.base import AgentThought, DocumentRecord, EventRow, FileRecord, RunRecord, StoredMessage
from core.storage.conversations import ConversationStore
from core.storage.documents import AllDocuments, DocumentStore
from core.storage.files import AllFiles, FileStore
from core.storage.libraries import LibraryStore
from core.storage.mcp_servers import McpServerStore
from core.storage.runs import AllRuns, RunStore
from core.storage.sealing import Sealer
from core.storage.summaries import SummaryStore
from core.storage.thoughts import ThoughtStore
from tests.grown_postgres import FORMS, opened_form

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class House:
    """The stores over one database, and something of alice's in each."""

    talks: Callable[[str], ConversationStore]
    runs: Callable[[str], RunStore]
    files: Callable[[str], FileStore]
    documents: Callable[[str], DocumentStore]
    libraries: Callable[[str], LibraryStore]
    servers: Callable[[str], McpServerStore]
    thoughts: Callable[[str], ThoughtStore]
    summaries: Callable[[str], SummaryStore]
    talk_id: str
    turn: StoredMessage
    run: RunRecord
    file: FileRecord
    document: DocumentRecord
    library_id: str
    shelved: DocumentRecord
    server_id: str
    unread: Callable[[], Awaitable[list[DocumentRecord]]]


@pytest.fixture(params=FORMS)
async def house(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    database = await opened_form(request, tmp_path)
    talks, runs = partial(ConversationStore, database), AllRuns(database).of
    files, documents = AllFiles(database, tmp_path / "files").of, partial(DocumentStore, database)
    talk = await talks("alice").create("alice's")
    run, turn = await runs("alice").create(talk.id, user=[Message("user", "q")], parent_id=None)
    file = await files("alice").put("a.txt", b"a")
    document = await documents("alice").add(talk.id, file.id, file.name)
    libraries = partial(LibraryStore, database)
    library = await libraries("alice").create("alice's")
    shelved = await documents("alice").add(None, file.id, file.name, collection_id=library.id)
    servers = partial(McpServerStore, database, Sealer("secret"))
    (server,) = await servers("alice").add({"alice's": {"command": "notes"}})
    await talks("bob").ensure_owner()
    stores = (
        talks,
        runs,
        files,
        documents,
        libraries,
        servers,
        partial(ThoughtStore, database),
        partial(SummaryStore, database),
    )
    yield House(
        *stores, talk.id, turn, run, file, document, library.id, shelved, server.id, AllDocuments(database).unread
    )
    await database.aclose()


async def key_of_bytes(house: House) -> str:
    """What bob's store looks for the bytes of alice's file under."""
    return house.files("bob").key(house.file)


ASKS: dict[str, Callable[[House], Awaitable[Any]]] = {
    "conversation": lambda h: h.talks("bob").get(h.talk_id),
    "rename": lambda h: h.talks("bob").rename(h.talk_id, "mine"),
    "set_leaf": lambda h: h.talks("bob").set_leaf(h.talk_id, None),
    "turn to": lambda h: h.talks("bob").turn_to(h.talk_id, h.turn.id),
    "delete": lambda h: h.talks("bob").delete(h.talk_id),
    "add_message": lambda h: h.talks("bob").add_message(h.talk_id, "user", [Message("user", "me")], None),
    "update_message": lambda h: h.talks("bob").update_message(h.turn.id, [], "complete"),
    "message": lambda h: h.talks("bob").message(h.turn.id),
    "thread": lambda h: h.talks("bob").thread(h.talk_id),
    "siblings": lambda h: h.talks("bob").siblings(h.turn.id),
    "start a run": lambda h: h.runs("bob").create(h.talk_id, user=None, parent_id=None),
    "run": lambda h: h.runs("bob").get(h.run.id),
    "events": lambda h: h.runs("bob").events(h.run.id),
    "finish": lambda h: h.runs("bob").finish(h.run.id, "complete", epoch=1, parts=[]),
    "append": lambda h: h.runs("bob").append(h.run.id, [EventRow(1, 0.1, "text_delta", {"text": "me"})], epoch=1),
    "append for good": lambda h: h.runs("bob").append(h.run.id, [], epoch=1, durable=True),
    "give up": lambda h: h.runs("bob").append(h.run.id, [], epoch=1, leave=True),
    "place": lambda h: h.runs("bob").place(h.run.id),
    "file": lambda h: h.files("bob").read(h.file.id),
    "place of a file": key_of_bytes,
    "file record": lambda h: h.files("bob").record(h.file.id),
    "delete file": lambda h: h.files("bob").delete(h.file.id),
    "documents": lambda h: h.documents("bob").list(h.talk_id),
    "document": lambda h: h.documents("bob").get(h.document.id),
    "add document": lambda h: h.documents("bob").add(h.talk_id, h.file.id, "mine"),
    "update document": lambda h: h.documents("bob").update(h.document.id, "ready"),
    "within reach": lambda h: h.documents("bob").within_reach(h.talk_id),
    "known in part": lambda h: h.documents("bob").known_in_part(h.talk_id, 1),
    "library": lambda h: h.libraries("bob").get(h.library_id),
    "documents of a library": lambda h: h.documents("bob").list_shelved(h.library_id),
    "add to a library": lambda h: h.documents("bob").add(None, h.file.id, "mine", collection_id=h.library_id),
    "rename library": lambda h: h.libraries("bob").rename(h.library_id, "mine"),
    "delete library": lambda h: h.libraries("bob").delete(h.library_id),
    "take out of a library": lambda h: h.libraries("bob").remove_document(h.shelved.id),
    "used libraries": lambda h: h.libraries("bob").used_by(h.talk_id),
    "users of library": lambda h: h.libraries("bob").users(h.library_id),
    "server": lambda h: h.servers("bob").get(h.server_id),
    "change server": lambda h: h.servers("bob").change(h.server_id, "mine", lambda old: old),
    "trust server": lambda h: h.servers("bob").set(h.server_id, trusted=True),
    "switch tools": lambda h: h.servers("bob").switch(h.server_id, ["a"], on=False),
    "delete server": lambda h: h.servers("bob").delete(h.server_id),
    "thoughts": lambda h: h.thoughts("bob").list(h.turn.id),
    "thoughts of a conversation": lambda h: h.thoughts("bob").of_conversation(h.talk_id),
    "add thoughts": lambda h: h.thoughts("bob").add(
        h.turn.id, [AgentThought("t", h.turn.id, "mine", None, None, None, 1)]
    ),
    "summaries": lambda h: h.summaries("bob").list(h.talk_id),
    "keep summary": lambda h: h.summaries("bob").keep(h.talk_id, h.turn.id, "mine"),
    "use library": lambda h: h.libraries("bob").use(h.talk_id, h.library_id, on=True),
}


async def all_of_alices(house: House) -> list[Any]:
    """What is in her stores now."""
    return [
        (await house.talks("alice").get(house.talk_id)).title,
        (await house.runs("alice").get(house.run.id)).status,
        await house.runs("alice").events(house.run.id),
        (await house.documents("alice").list(house.talk_id))[0].status,
        await house.files("alice").read(house.file.id),
        await house.documents("alice").list_shelved(house.library_id),
        await house.libraries("alice").used_by(house.talk_id),
        await house.thoughts("alice").list(house.turn.id),
        await house.summaries("alice").list(house.talk_id),
    ]


async def test_what_is_somebody_elses_does_not_exist(house: House) -> None:
    before = await all_of_alices(house)
    assert before == ["alice's", "running", [], "reading", b"a", [house.shelved], [], [], {}]
    wrong: list[str] = []
    for name, ask in ASKS.items():
        try:
            await ask(house)
            wrong.append(f"{name}: it is there")
        except NotFoundError:
            pass
        if await all_of_alices(house) != before:
            wrong.append(f"{name}: something of hers is not as it was")
    assert wrong == []


async def test_bob_cannot_hand_alices_file_to_his_own_conversation(house: House) -> None:
    talk = await house.talks("bob").create()
    with pytest.raises(NotFoundError):
        await house.documents("bob").add(talk.id, house.file.id, "mine")


async def test_bob_cannot_use_alices_library_in_his_own_conversation(house: House) -> None:
    talk = await house.talks("bob").create()
    with pytest.raises(NotFoundError):
        await house.libraries("bob").use(talk.id, house.library_id, on=True)
    own = await house.libraries("bob").create("bob's")
    with pytest.raises(NotFoundError):
        await house.documents("bob").add(None, house.file.id, "mine", collection_id=own.id)


async def test_a_library_document_is_known_by_its_owner_alone(house: House) -> None:
    await house.documents("alice").update(house.document.id, "ready", library_id="abc")
    assert await house.documents("alice").owns_library_document("abc")
    assert not await house.documents("bob").owns_library_document("abc")


async def test_the_same_file_is_one_document_of_a_conversation(house: House) -> None:
    again = await house.documents("alice").add(house.talk_id, house.file.id, house.file.name)
    assert again == house.document
    assert await house.documents("alice").list(house.talk_id) == [house.document]
    assert await house.unread() == [house.document, house.shelved]


async def test_events_come_back_in_order_and_each_once(house: House) -> None:
    rows = [EventRow(seq, seq / 10, "text_delta", {"text": str(seq)}) for seq in (1, 4, 9)]
    await house.runs("alice").append(house.run.id, rows[:2], epoch=1)
    await house.runs("alice").append(house.run.id, rows, epoch=1)
    assert await house.runs("alice").events(house.run.id) == rows
    assert await house.runs("alice").events(house.run.id, after=4) == rows[2:]


async def test_the_end_of_a_run_is_stored_with_its_reply(house: House) -> None:
    error = {"key": "no_space", "message": "full", "hint": "", "details": {}}
    reply = [Message("assistant", "so far")]
    rows = [EventRow(1, 0.5, "text_delta", {"text": "so far"})]
    await house.runs("alice").finish(house.run.id, "error", epoch=1, parts=reply, error=error, rows=rows)
    record = await house.runs("alice").get(house.run.id)
    assert (record.status, record.error, record.message_id) == ("error", error, house.turn.id)
    assert record.finished_at is not None
    assert record.finished_at <= time.time()
    stored = await house.talks("alice").message(house.turn.id)
    assert (list(stored.parts), stored.status, stored.run_id) == (reply, "error", house.run.id)
    assert await house.runs("alice").events(house.run.id) == rows


async def test_a_conversation_has_one_live_run(house: House) -> None:
    with pytest.raises(ConflictError) as caught:
        await house.runs("alice").create(house.talk_id, user=[Message("user", "again")], parent_id=None)
    assert caught.value.words_key == "busy"
    assert len(await house.talks("alice").thread(house.talk_id)) == 2
    await house.runs("alice").finish(house.run.id, "complete", epoch=1, parts=[])
    await house.runs("alice").create(house.talk_id, user=None, parent_id=house.turn.parent_id)
