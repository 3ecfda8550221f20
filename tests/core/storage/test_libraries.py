"""Named libraries: made, used by conversations, deleted with what only they need."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert

from core.errors import ConflictError, NotFoundError
from core.storage.base import DocumentRecord, FileRecord
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.documents import DocumentStore, LibraryStore
from core.storage.files import FileStore
from core.storage.migrations import steps
from core.storage.tables import documents as document_table

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Stores:
    """The stores of one database."""

    talks: ConversationStore
    files: FileStore
    documents: DocumentStore
    libraries: LibraryStore

    async def filed(self, content: bytes, *, talk: str | None = None, library: str | None = None) -> DocumentRecord:
        """A document of alice's that was read."""
        file = await self.files.put("alice", "a.txt", content)
        record = await self.documents.add("alice", talk, file.id, file.name, collection_id=library)
        return await self.documents.update("alice", record.id, "ready", library_id=file.sha256, facts={"chunks": 1})

    async def file_of(self, record: DocumentRecord) -> FileRecord:
        return await self.files.record("alice", record.file_id)


@pytest.fixture
def stores(database: Database, tmp_path: Path) -> Stores:
    """The stores."""
    files = FileStore(database, tmp_path / "files")
    return Stores(ConversationStore(database), files, DocumentStore(database), LibraryStore(database))


async def test_libraries_stand_in_the_order_of_their_names_and_know_how_much_they_hold(stores: Stores) -> None:
    later, first = await stores.libraries.create("alice", "b"), await stores.libraries.create("alice", "A")
    await stores.filed(b"one", library=later.id)
    unread = await stores.files.put("alice", "b.txt", b"two")
    await stores.documents.add("alice", None, unread.id, "b.txt", collection_id=later.id)
    listed = await stores.libraries.list("alice")
    assert [(one.id, one.name, one.documents, one.reading) for one in listed] == [
        (first.id, "A", 0, 0),
        (later.id, "b", 2, 1),
    ]
    assert await stores.libraries.list("bob") == []


async def test_two_libraries_of_an_owner_do_not_share_a_name(stores: Stores) -> None:
    one, other = await stores.libraries.create("alice", "one"), await stores.libraries.create("alice", "other")
    for asked in (stores.libraries.create("alice", "one"), stores.libraries.rename("alice", other.id, "one")):
        with pytest.raises(ConflictError) as caught:
            await asked
        assert caught.value.words_key == "library_name_taken"
    await stores.libraries.rename("alice", one.id, "one")
    await stores.libraries.create("bob", "one")


async def test_the_same_bytes_are_one_document_of_a_library(stores: Stores) -> None:
    library = await stores.libraries.create("alice", "papers")
    record = await stores.filed(b"same", library=library.id)
    again = await stores.files.put("alice", "other name.txt", b"same")
    assert await stores.documents.add("alice", None, again.id, again.name, collection_id=library.id) == record
    elsewhere = await stores.libraries.create("alice", "elsewhere")
    assert (await stores.documents.add("alice", None, again.id, "x", collection_id=elsewhere.id)).id != record.id


async def test_a_conversation_is_answered_from_its_own_documents_and_those_of_the_libraries_it_uses(
    stores: Stores,
) -> None:
    talk, library = await stores.talks.create("alice"), await stores.libraries.create("alice", "papers")
    own = await stores.filed(b"own", talk=talk.id)
    shelved, same = await stores.filed(b"shelved", library=library.id), await stores.filed(b"own", library=library.id)
    assert await stores.documents.within_reach("alice", talk.id) == [own.library_id]
    for _ in range(2):
        await stores.libraries.use("alice", talk.id, library.id, on=True)
    assert await stores.documents.within_reach("alice", talk.id) == [own.library_id, shelved.library_id]
    assert same.library_id == own.library_id
    assert await stores.libraries.users("alice", library.id) == [talk.id]
    assert [one.name for one in await stores.libraries.used_by("alice", talk.id)] == ["papers"]
    opened = await stores.documents.opened("alice", talk.id)
    assert [one.name for one in opened.libraries] == ["papers"]
    assert opened.documents == [own]
    file = await stores.files.put("alice", "c.txt", b"unread")
    unread = await stores.documents.add("alice", None, file.id, file.name, collection_id=library.id)
    assert await stores.documents.known_in_part("alice", talk.id, 3) == [unread]
    own = await stores.documents.update("alice", own.id, "cancelled", library_id=own.library_id)
    stopped = await stores.documents.update("alice", unread.id, "cancelled", library_id="begun")
    assert await stores.documents.known_in_part("alice", talk.id, 3) == [own, stopped]
    assert await stores.documents.known_in_part("alice", talk.id, 1) == [own]
    await stores.documents.update("alice", own.id, "ready", library_id=own.library_id)
    await stores.documents.update("alice", unread.id, "cancelled")  # called off before anything of it was found
    assert await stores.documents.known_in_part("alice", talk.id, 3) == []
    await stores.documents.update("alice", unread.id, "cancelled", library_id="begun")
    await stores.libraries.use("alice", talk.id, library.id, on=False)
    assert await stores.documents.known_in_part("alice", talk.id, 3) == []
    assert await stores.documents.within_reach("alice", talk.id) == [own.library_id]


async def test_deleting_takes_along_only_what_no_conversation_and_no_library_needs(stores: Stores) -> None:
    talk = await stores.talks.create("alice")
    gone, stays = await stores.libraries.create("alice", "gone"), await stores.libraries.create("alice", "stays")
    await stores.libraries.use("alice", talk.id, gone.id, on=True)
    alone = await stores.filed(b"alone", library=gone.id)
    for content, place in ((b"talk", {"talk": talk.id}), (b"shelf", {"library": stays.id})):
        await stores.filed(content, **place)
    needed = [await stores.filed(content, library=gone.id) for content in (b"talk", b"shelf")]
    expected = [await stores.file_of(record) for record in (alone, *needed)]
    freed, unneeded = await stores.libraries.delete("alice", gone.id)
    assert sorted(file.id for file in freed) == sorted(file.id for file in expected)
    assert unneeded == [alone.library_id]
    assert await stores.libraries.used_by("alice", talk.id) == []
    assert (await stores.talks.delete("alice", talk.id))[1] == [needed[0].library_id]


async def test_a_text_that_another_document_is_being_read_for_stays(stores: Stores) -> None:
    talk, library = await stores.talks.create("alice"), await stores.libraries.create("alice", "papers")
    await stores.filed(b"same", talk=talk.id)
    file = await stores.files.put("alice", "b.txt", b"same")
    await stores.documents.add("alice", None, file.id, "b.txt", collection_id=library.id)
    assert (await stores.talks.delete("alice", talk.id))[1] == []


async def test_a_document_leaves_its_library_with_its_file(stores: Stores) -> None:
    talk, library = await stores.talks.create("alice"), await stores.libraries.create("alice", "papers")
    own, shelved = await stores.filed(b"own", talk=talk.id), await stores.filed(b"shelved", library=library.id)
    file = await stores.file_of(shelved)
    assert await stores.libraries.remove_document("alice", shelved.id) == ([file], [shelved.library_id])
    for document_id in (shelved.id, own.id):  # gone, and one that stands in no library
        with pytest.raises(NotFoundError):
            await stores.libraries.remove_document("alice", document_id)
    assert await stores.documents.list("alice", talk.id) == [own]


async def test_files_of_libraries_are_not_left_over(stores: Stores) -> None:
    library = await stores.libraries.create("alice", "papers")
    record = await stores.filed(b"kept", library=library.id)
    assert await stores.files.delete_unused(older_than=4e9) == 0
    assert (await stores.files.get("alice", record.file_id))[1].is_file()


async def test_a_document_stands_in_exactly_one_place(database: Database, stores: Stores) -> None:
    talk, library = await stores.talks.create("alice"), await stores.libraries.create("alice", "papers")
    file = await stores.files.put("alice", "a.txt", b"a")
    row = {"id": "x", "owner_id": "alice", "file_id": file.id, "name": "a", "status": "reading", "created_at": 1.0}

    def put(connection: Connection, talk_id: str | None, library_id: str | None) -> None:
        places = {"conversation_id": talk_id, "collection_id": library_id}
        connection.execute(insert(document_table).values({**row, **places}))

    for places in ((None, None), (talk.id, library.id)):
        with pytest.raises(ConflictError):
            await database.write(lambda c, places=places: put(c, *places))


async def test_what_reading_found_is_kept_and_cleared_by_the_next_reading(stores: Stores) -> None:
    library = await stores.libraries.create("alice", "papers")
    record = await stores.filed(b"one", library=library.id)
    assert (await stores.documents.get("alice", record.id)).facts == {"chunks": 1}
    assert (await stores.documents.update("alice", record.id, "cancelled")).facts is None


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
    store, talks = DocumentStore(database), ConversationStore(database)
    damaged = {"key": "document_damaged"}
    one = DocumentRecord("one", "alice", "talk", "file", "a.pdf", "abc", "ready", damaged, 7, 5.0)
    two = DocumentRecord("two", "alice", "talk", "file", "b.pdf", None, "reading", None, None, 6.0)
    assert await store.list("alice", "talk") == [one, two]
    freed, unneeded = await talks.delete("alice", "talk")
    assert ([file.id for file in freed], unneeded) == (["file"], ["abc"])
    assert await store.unread() == []
    await database.aclose()
    assert [copy.name.startswith("old-0002-") for copy in (tmp_path / "backups").iterdir()] == [True]


async def test_a_text_is_needed_by_whoever_has_it_and_by_whoever_still_reads_its_bytes(stores: Stores) -> None:
    library = await stores.libraries.create("alice", "papers")
    record = await stores.filed(b"read", library=library.id)
    coming = await stores.files.put("alice", "coming.txt", b"coming")
    waiting = await stores.documents.add("alice", None, coming.id, coming.name, collection_id=library.id)
    nobodys = [f"{n}" for n in range(1_001)]
    asked = [*nobodys, str(record.library_id), coming.sha256]
    assert await stores.documents.unneeded("alice", asked) == nobodys
    assert await stores.documents.unneeded("bob", asked) == asked
    await stores.documents.update("alice", waiting.id, "cancelled")
    assert await stores.documents.unneeded("alice", asked) == [*nobodys, coming.sha256]


async def test_a_state_changes_only_from_those_that_it_may_change_from(stores: Stores) -> None:
    library = await stores.libraries.create("alice", "papers")
    record = await stores.filed(b"read", library=library.id)
    assert await stores.documents.update("alice", record.id, "cancelled", only_if=("reading", "failed")) == record
    assert (await stores.documents.update("alice", record.id, "cancelled", only_if=("ready",))).status == "cancelled"
