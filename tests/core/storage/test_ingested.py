"""The ledger of what was taken into libraries: one line for each place, as long as there is what it tells of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.errors import NotFoundError
from core.storage.base import DocumentRecord, NamedLibrary
from core.storage.database import Database
from core.storage.ingested import Ingested
from core.storage.moving import move_conversations
from core.storage.sealing import Sealer
from core.storage.stores import OwnerStores, Stores
from tests.grown_postgres import FORMS, opened_form

pytestmark = pytest.mark.anyio

FAILED: dict[str, Any] = {"key": "document_broken", "message": "It is damaged.", "hint": "", "details": {"name": "a"}}


@pytest.fixture(params=FORMS)
async def database(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str):
    opened = await opened_form(request, tmp_path)
    yield opened
    await opened.aclose()


@pytest.fixture
def stores(database: Database, tmp_path: Path) -> Stores:
    return Stores(database, tmp_path / "files", Sealer("secret"))


async def shelved(mine: OwnerStores, text: bytes = b"a lamp") -> tuple[NamedLibrary, DocumentRecord]:
    library = await mine.libraries.create("Lamps")
    file = await mine.files.put("lamp.md", text)
    record = await mine.documents.add(None, file.id, file.name, collection_id=library.id)
    return library, await mine.documents.update(record.id, "ready", library_id=file.sha256)


async def test_a_place_has_one_line_the_latest(stores: Stores) -> None:
    mine = stores.of("alice")
    library, record = await shelved(mine)
    long = "s3://bucket/" + "灯塔/" * 1000
    await mine.ingested.note(library.id, long, "6 1", error=FAILED)
    await mine.ingested.note(library.id, "/b.md", "6 2", document_id=record.id)
    assert await mine.ingested.known(library.id, [long, "/b.md", "/c.md"]) == {
        long: Ingested(long, "6 1", None, FAILED),
        "/b.md": Ingested("/b.md", "6 2", "ready", None),
    }
    await mine.ingested.note(library.id, long, "7 1", document_id=record.id)
    assert await mine.ingested.known(library.id, [long]) == {long: Ingested(long, "7 1", "ready", None)}
    every = [f"/{number}" for number in range(1_200)]
    assert await mine.ingested.known(library.id, [*every, "/b.md"]) == {
        "/b.md": Ingested("/b.md", "6 2", "ready", None)
    }


async def test_a_line_goes_with_its_document_and_all_with_their_library(stores: Stores) -> None:
    mine = stores.of("alice")
    library, record = await shelved(mine)
    await mine.ingested.note(library.id, "/a.md", "6 1", document_id=record.id)
    await mine.ingested.note(library.id, "/b.md", "6 2", error=FAILED)
    await mine.libraries.remove_document(record.id)
    assert set(await mine.ingested.known(library.id, ["/a.md", "/b.md"])) == {"/b.md"}
    await mine.libraries.delete(library.id)
    assert await mine.ingested.known(library.id, ["/a.md", "/b.md"]) == {}
    with pytest.raises(NotFoundError):
        await mine.ingested.note(library.id, "/a.md", "6 1", error=FAILED)


async def test_it_is_its_owners_alone_and_goes_with_her_when_she_signs_in(stores: Stores, database: Database) -> None:
    mine, other = stores.of("guest"), stores.of("bob")
    library, record = await shelved(mine)
    await mine.ingested.note(library.id, "/a.md", "6 1", document_id=record.id)
    assert await other.ingested.known(library.id, ["/a.md"]) == {}
    with pytest.raises(NotFoundError):
        await other.ingested.note(library.id, "/a.md", "6 1", error=FAILED)
    with pytest.raises(NotFoundError):
        await other.documents.add(None, record.file_id, "lamp.md", collection_id=library.id)
    await move_conversations(database, stores.blobs, "guest", "alice")
    assert set(await stores.of("alice").ingested.known(library.id, ["/a.md"])) == {"/a.md"}


async def test_the_same_bytes_are_one_document_of_a_library_and_another_of_another(stores: Stores) -> None:
    mine = stores.of("alice")
    library, record = await shelved(mine)
    again = await mine.files.put("other name.md", b"a lamp")
    assert (await mine.documents.add(None, again.id, again.name, collection_id=library.id)).id == record.id
    second = await mine.libraries.create("Other lamps")
    assert (await mine.documents.add(None, again.id, again.name, collection_id=second.id)).id != record.id
