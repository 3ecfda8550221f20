"""What assistants keep for their owners, in every kind of database, and what an older Parlour kept in files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from core.errors import BadArgumentsError, NotFoundError, StorageError, ToolError
from core.storage.base import folder_name
from core.storage.database import Database
from core.storage.owner_notes import NoteStore
from core.storage.people import PeopleStore
from core.tools import owner_notes
from core.tools.builtin.storage import KeyNotExistsError, OwnerStorage, Storage
from core.tools.owner_notes import OwnerNotes, take_in_notes
from tests.grown_postgres import FORMS, opened_form

pytestmark = pytest.mark.anyio
ALICE, BOB = "alice", "bob smith"  # whose folder is called otherwise


@pytest.fixture(params=FORMS)
async def database(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Database]:
    opened = await opened_form(request, tmp_path)
    yield opened
    await opened.aclose()


@pytest.fixture
def stores(database: Database) -> Callable[..., NoteStore]:
    return partial(NoteStore, database)


async def told(store: NoteStore) -> dict[str, str]:
    return {note.key: note.text for note in await OwnerNotes(store).list()}


async def test_what_one_owner_keeps_no_other_reads_changes_or_deletes(stores: Callable[..., NoteStore]) -> None:
    alice, bob = stores(ALICE), stores(BOB)
    await alice.put("trips/plan", "By boat.")
    assert (await bob.get("trips/plan"), await bob.below("", 9), await bob.delete("trips/plan")) == (None, [], False)
    with pytest.raises(NotFoundError):
        await OwnerNotes(bob).change("trips/plan", "mine")
    await bob.put("trips/plan", "By train.")
    assert (await told(alice), await told(bob)) == ({"trips/plan": "By boat."}, {"trips/plan": "By train."})


async def test_a_note_goes_with_its_owner(database: Database, stores: Callable[..., NoteStore]) -> None:
    await stores(ALICE).put("a", "1")
    await stores(BOB).put("a", "2")
    await PeopleStore(database).forget(ALICE)
    assert (await told(stores(ALICE)), await told(stores(BOB))) == ({}, {"a": "2"})


async def test_a_model_is_told_the_same_as_of_files(stores: Callable[..., NoteStore], tmp_path: Path) -> None:
    kept, files = OwnerStorage({"notes": stores(ALICE)}), Storage({"storage_root_path": str(tmp_path / "kept")})

    async def both(operate: str, key: str = "/", value: str | None = None) -> tuple[object, object]:
        said: list[object] = []
        arguments = {"operate": operate, "key": key} | ({} if value is None else {"value": value})
        for tool in (files.call, kept.call):
            try:
                answer = tool(arguments)
                said.append(answer if isinstance(answer, str) else await answer)
            except (BadArgumentsError, ToolError) as error:
                said.append((type(error), str(error)))
        return said[0], said[1]

    steps = [
        *[("scan",), ("get", "a"), ("delete", "a"), ("put", "a/b/c", "1\r\n"), ("put", "/a/ä 键/", "你好 \ud800")],
        *[("put", "a.b", "2"), ("put", "a/b", "x"), ("put", "a/b/c/d", "x"), ("put", "", "x"), ("put", "a")],
        *[("scan",), ("scan", "a"), ("scan", "a/b/c"), ("scan", "a/"), ("scan", "a/b/")],
        *[("put", "../x", "x"), ("put", "long", "x" * (2**20 + 1)), ("get", "a/b"), ("get", "/a/b/c")],
        *[("put", "a.b", "3"), ("delete", "a/b/c"), ("get", "a/b/c"), ("put", "a/b", "4"), ("scan",)],
    ]
    for step in steps:
        of_files, of_rows = await both(*step)
        assert of_rows == of_files, step
    with pytest.raises(KeyNotExistsError):
        await kept.call({"operate": "get", "key": "a"})


async def test_no_more_is_kept_than_there_is_room_for(stores: Callable[..., NoteStore]) -> None:
    store = stores(ALICE, most_bytes=5, most_keys=2)
    await store.put("a", "123")
    with pytest.raises(ToolError, match="5 bytes are the most"):
        await store.put("b", "ää")
    await store.put("a", "1")
    await store.put("b", "ää")
    with pytest.raises(ToolError, match="2 values are kept"):
        await store.put("c", "")
    await stores(BOB, most_bytes=5, most_keys=2).put("c", "12345")


async def test_of_very_many_the_first_are_told(stores: Callable[..., NoteStore]) -> None:
    await stores(ALICE).take({f"n{number:03}": "x" * 9000 for number in range(201)})
    shown = await OwnerNotes(stores(ALICE)).list()
    assert [one.key for one in shown] == [f"n{number:03}" for number in range(200)]
    assert {(len(one.text), one.whole) for one in shown} == {(8000, False)}
    assert (await OwnerStorage({"notes": stores(ALICE)}).call({"operate": "scan"})).endswith("scan a longer key.")


def written(folder: Path, owner: str, **texts: str) -> Path:
    place = folder / folder_name(owner)
    for key, text in texts.items():
        file = place / key.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return place


async def test_notes_in_files_are_brought_in_once_each_to_its_owner(
    database: Database, stores: Callable[..., NoteStore], tmp_path: Path
) -> None:
    for owner in (ALICE, BOB):
        await stores(owner).put("known", "1")
    folder = tmp_path / "notes"
    written(folder, "local", plan="Tea.")
    written(folder, ALICE, trips__plan="By boat.", known="2")
    written(folder, BOB, trips__plan="By train.", known="1")
    stranger = written(folder, "nobody", plan="Whose?")
    odd = folder / ALICE / ".half-written-x"
    odd.write_text("hal")
    for _ in range(2):
        await take_in_notes(database, folder)
        assert await told(stores("local")) == {"plan": "Tea."}
        assert await told(stores(ALICE)) == {"trips/plan": "By boat.", "known": "1", "known (2)": "2"}
        assert await told(stores(BOB)) == {"trips/plan": "By train.", "known": "1"}
        assert [one for one in sorted(folder.rglob("*")) if one.is_file()] == [odd, stranger / "plan"]


async def test_cut_short_at_any_moment_no_note_is_lost_and_none_comes_twice(
    database: Database, stores: Callable[..., NoteStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "notes"
    place = written(folder, "local", a="1", b__c="2")
    with monkeypatch.context() as broken:
        broken.setattr(NoteStore, "take", failing)
        with pytest.raises(StorageError):
            await take_in_notes(database, folder)
    assert sorted(one.name for one in place.rglob("*")) == ["a", "b", "c"]
    with monkeypatch.context() as killed:  # what is stored, and not deleted
        killed.setattr(owner_notes, "_forget", lambda *_: None)
        await take_in_notes(database, folder)
    (place / "a").unlink()
    await take_in_notes(database, folder)
    assert await told(stores("local")) == {"a": "1", "b/c": "2"}
    assert not place.exists()


async def failing(*_: object) -> None:
    raise StorageError("The database failed.")
