"""Named libraries: made, used by conversations, deleted with what only they need."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert

from core.errors import ConflictError, NotFoundError
from core.storage.base import DocumentRecord, FileRecord
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.documents import AllDocuments, DocumentStore
from core.storage.files import AllFiles, FileStore
from core.storage.libraries import LibraryStore
from core.storage.migrations import steps
from core.storage.tables import documents as document_table
from tests.stored_files import stored

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Stores:
    """The stores of one database."""

    talks: Callable[[str], ConversationStore]
    files: Callable[[str], FileStore]
    documents: Callable[[str], DocumentStore]
    libraries: Callable[[str], LibraryStore]

    async def filed(self, content: bytes, *, talk: str | None = None, library: str | None = None) -> DocumentRecord:
        """A document of alice's that was read."""
        file = await self.files("alice").put("a.txt", content)
        record = await self.documents("alice").add(talk, file.id, file.name, collection_id=library)
        return await self.documents("alice").update(record.id, "ready", library_id=file.sha256, facts={"chunks": 1})

    async def file_of(self, record: DocumentRecord) -> FileRecord:
        return await self.files("alice").record(record.file_id)


@pytest.fixture
def stores(database: Database, tmp_path: Path) -> Stores:
    """The stores."""
    files = AllFiles(database, tmp_path / "files").of
    return Stores(
        partial(ConversationStore, database), files, partial(DocumentStore, database), partial(LibraryStore, database)
    )


async def test_libraries_stand_in_the_order_of_their_names_and_know_how_much_they_hold(stores: Stores) -> None:
    later, first = await stores.libraries("alice").create("b"), await stores.libraries("alice").create("A")
    await stores.filed(b"one", library=later.id)
    unread = await stores.files("alice").put("b.txt", b"two")
    await stores.documents("alice").add(None, unread.id, "b.txt", collection_id=later.id)
    listed = await stores.libraries("alice").list()
    assert [(one.id, one.name, one.documents, one.reading) for one in listed] == [
        (first.id, "A", 0, 0),
        (later.id, "b", 2, 1),
    ]
    assert await stores.libraries("bob").list() == []


async def test_two_libraries_of_an_owner_do_not_share_a_name(stores: Stores) -> None:
    one, other = await stores.libraries("alice").create("one"), await stores.libraries("alice").create("other")
    for asked in (stores.libraries("alice").create("one"), stores.libraries("alice").rename(other.id, "one")):
        with pytest.raises(ConflictError) as caught:
            await asked
        assert caught.value.words_key == "library_name_taken"
    await stores.libraries("alice").rename(one.id, "one")
    await stores.libraries("bob").create("one")


async def test_the_same_bytes_are_one_document_of_a_library(stores: Stores) -> None:
    library = await stores.libraries("alice").create("papers")
    record = await stores.filed(b"same", library=library.id)
    again = await stores.files("alice").put("other name.txt", b"same")
    assert await stores.documents("alice").add(None, again.id, again.name, collection_id=library.id) == record
    elsewhere = await stores.libraries("alice").create("elsewhere")
    assert (await stores.documents("alice").add(None, again.id, "x", collection_id=elsewhere.id)).id != record.id


async def test_a_conversation_is_answered_from_its_own_documents_and_those_of_the_libraries_it_uses(
    stores: Stores,
) -> None:
    talk, library = await stores.talks("alice").create(), await stores.libraries("alice").create("papers")
    own = await stores.filed(b"own", talk=talk.id)
    shelved, same = await stores.filed(b"shelved", library=library.id), await stores.filed(b"own", library=library.id)
    assert await stores.documents("alice").within_reach(talk.id) == [own.library_id]
    for _ in range(2):
        await stores.libraries("alice").use(talk.id, library.id, on=True)
    assert await stores.documents("alice").within_reach(talk.id) == [own.library_id, shelved.library_id]
    assert same.library_id == own.library_id
    assert await stores.libraries("alice").users(library.id) == [talk.id]
    assert [one.name for one in await stores.libraries("alice").used_by(talk.id)] == ["papers"]
    opened = await stores.documents("alice").opened(talk.id)
    assert [one.name for one in opened.libraries] == ["papers"]
    assert opened.documents == [own]
    file = await stores.files("alice").put("c.txt", b"unread")
    unread = await stores.documents("alice").add(None, file.id, file.name, collection_id=library.id)
    assert await stores.documents("alice").known_in_part(talk.id, 3) == [unread]
    own = await stores.documents("alice").update(own.id, "cancelled", library_id=own.library_id)
    stopped = await stores.documents("alice").update(unread.id, "cancelled", library_id="begun")
    assert await stores.documents("alice").known_in_part(talk.id, 3) == [own, stopped]
    assert await stores.documents("alice").known_in_part(talk.id, 1) == [own]
    await stores.documents("alice").update(own.id, "ready", library_id=own.library_id)
    await stores.documents("alice").update(unread.id, "cancelled")  # called off before anything of it was found
    assert await stores.documents("alice").known_in_part(talk.id, 3) == []
    await stores.documents("alice").update(unread.id, "cancelled", library_id="begun")
    await stores.libraries("alice").use(talk.id, library.id, on=False)
    assert await stores.documents("alice").known_in_part(talk.id, 3) == []
    assert await stores.documents("alice").within_reach(talk.id) == [own.library_id]


async def test_deleting_takes_along_only_what_no_conversation_and_no_library_needs(stores: Stores) -> None:
    talk = await stores.talks("alice").create()
    gone, stays = await stores.libraries("alice").create("gone"), await stores.libraries("alice").create("stays")
    await stores.libraries("alice").use(talk.id, gone.id, on=True)
    alone = await stores.filed(b"alone", library=gone.id)
    for content, place in ((b"talk", {"talk": talk.id}), (b"shelf", {"library": stays.id})):
        await stores.filed(content, **place)
    needed = [await stores.filed(content, library=gone.id) for content in (b"talk", b"shelf")]
    expected = [await stores.file_of(record) for record in (alone, *needed)]
    freed, unneeded = await stores.libraries("alice").delete(gone.id)
    assert sorted(file.id for file in freed) == sorted(file.id for file in expected)
    assert unneeded == [alone.library_id]
    assert await stores.libraries("alice").used_by(talk.id) == []
    assert (await stores.talks("alice").delete(talk.id))[1] == [needed[0].library_id]


async def test_a_text_that_another_document_is_being_read_for_stays(stores: Stores) -> None:
    talk, library = await stores.talks("alice").create(), await stores.libraries("alice").create("papers")
    await stores.filed(b"same", talk=talk.id)
    file = await stores.files("alice").put("b.txt", b"same")
    await stores.documents("alice").add(None, file.id, "b.txt", collection_id=library.id)
    assert (await stores.talks("alice").delete(talk.id))[1] == []


async def test_a_document_leaves_its_library_with_its_file(stores: Stores) -> None:
    talk, library = await stores.talks("alice").create(), await stores.libraries("alice").create("papers")
    own, shelved = await stores.filed(b"own", talk=talk.id), await stores.filed(b"shelved", library=library.id)
    file = await stores.file_of(shelved)
    assert await stores.libraries("alice").remove_document(shelved.id) == ([file], [shelved.library_id])
    for document_id in (shelved.id, own.id):  # gone, and one that stands in no library
        with pytest.raises(NotFoundError):
            await stores.libraries("alice").remove_document(document_id)
    assert await stores.documents("alice").list(talk.id) == [own]


async def test_files_of_libraries_are_not_left_over(stores: Stores, database: Database, tmp_path: Path) -> None:
    library = await stores.libraries("alice").create("papers")
    record = await stores.filed(b"kept", library=library.id)
    assert await AllFiles(database, tmp_path / "files").delete_unused(older_than=4e9) == 0
    assert (await stored(stores.files("alice"), record.file_id))[1].is_file()


async def test_a_document_stands_in_exactly_one_place(database: Database, stores: Stores) -> None:
    talk, library = await stores.talks("alice").create(), await stores.libraries("alice").create("papers")
    file = await stores.files("alice").put("a.txt", b"a")
    row = {"id": "x", "owner_id": "alice", "file_id": file.id, "name": "a", "status": "reading", "created_at": 1.0}

    def put(connection: Connection, talk_id: str | None, library_id: str | None) -> None:
        places = {"conversation_id": talk_id, "collection_id": library_id}
        connection.execute(insert(document_table).values({**row, **places}))

    for places in ((None, None), (talk.id, library.id)):
        with pytest.raises(ConflictError):
            await database.write(lambda c, places=places: put(c, *places))


async def test_what_reading_found_is_kept_and_cleared_by_the_next_reading(stores: Stores) -> None:
    library = await stores.libraries("alice").create("papers")
    record = await stores.filed(b"one", library=library.id)
    assert (await stores.documents("alice").get(record.id)).facts == {"chunks": 1}
    assert (await stores.documents("alice").update(record.id, "cancelled")).facts is None


async def test_a_database_of_before_keeps_its_documents(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    await asyncio.to_thread(steps.run_steps, path, "0002")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("""
            INSERT INTO owners VALUES ('alice', 1.0);
            INSERT INTO conversations VALUES ('talk', 'alice', 'A talk', NULL, 2.0, 3.0);
            INSERT INTO files VALUES ('file', 'alice', 'a.pdf', 'application/pdf', 9, 'abc', 4.0);
            INSERT INTO file_uses VALUES ('file', 'talk', 'alice');
            INSERT INTO documents VALUES
                ('one', 'alice', 'talk', 'file', 'a.pdf', 'abc', 'ready', '{"key":"document_damaged"}', 7, 5.0),
                ('two', 'alice', 'talk', 'file', 'b.pdf', NULL, 'reading', NULL, NULL, 6.0);
        """)
    database = await Database.open(path)
    store, talks = partial(DocumentStore, database), partial(ConversationStore, database)
    damaged = {"key": "document_damaged"}
    one = DocumentRecord("one", "alice", "talk", "file", "a.pdf", "abc", "ready", damaged, 7, 5.0)
    two = DocumentRecord("two", "alice", "talk", "file", "b.pdf", None, "reading", None, None, 6.0)
    assert await store("alice").list("talk") == [one, two]
    freed, unneeded = await talks("alice").delete("talk")
    assert ([file.id for file in freed], unneeded) == (["file"], ["abc"])
    assert await AllDocuments(database).unread() == []
    await database.aclose()
    assert [copy.name.startswith("old-0002-") for copy in (tmp_path / "backups").iterdir()] == [True]


async def test_a_text_is_needed_by_whoever_has_it_and_by_whoever_still_reads_its_bytes(stores: Stores) -> None:
    library = await stores.libraries("alice").create("papers")
    record = await stores.filed(b"read", library=library.id)
    coming = await stores.files("alice").put("coming.txt", b"coming")
    waiting = await stores.documents("alice").add(None, coming.id, coming.name, collection_id=library.id)
    nobodys = [f"{n}" for n in range(1_001)]
    asked = [*nobodys, str(record.library_id), coming.sha256]
    assert await stores.documents("alice").unneeded(asked) == nobodys
    assert await stores.documents("bob").unneeded(asked) == asked
    await stores.documents("alice").update(waiting.id, "cancelled")
    assert await stores.documents("alice").unneeded(asked) == [*nobodys, coming.sha256]


async def test_a_state_changes_only_from_those_that_it_may_change_from(stores: Stores) -> None:
    library = await stores.libraries("alice").create("papers")
    record = await stores.filed(b"read", library=library.id)
    assert await stores.documents("alice").update(record.id, "cancelled", only_if=("reading", "failed")) == record
    assert (await stores.documents("alice").update(record.id, "cancelled", only_if=("ready",))).status == "cancelled"
