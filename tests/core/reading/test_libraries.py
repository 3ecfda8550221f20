"""Named libraries: filled in the background, asked, used by conversations, and left without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.errors import ConflictError, NoSpaceError, NotFoundError, ParlourError, StorageError
from core.settings import Settings
from core.storage.base import DocumentRecord
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import CLAUSE, PAGES, Gate, index_of, is_read, long_pdf, pdf

pytestmark = pytest.mark.anyio

TOWER = b"# The tower\n\nThe tower of Brenn is 321 metres tall. It was built in 1889 of iron."
BREAD = b"# Bread\n\nThe baker of Brenn sells rye bread on Tuesdays and plum cake on Fridays."


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as running:
        yield running


async def shelved(engine: Engine, library_id: str, content: bytes, name: str = "a.md") -> DocumentRecord:
    return await is_read(engine, (await engine.libraries.add("alice", library_id, content, name)).id)


async def texts(engine: Engine) -> set[str]:
    """What the owner's index holds."""
    return {document.id for document in (await index_of(engine, "alice")).documents()}


def stored(engine: Engine) -> int:
    """How many files lie in the store."""
    return sum(path.is_file() for path in (engine.settings.home / "files").rglob("*"))


async def test_a_question_is_tried_in_a_library_and_finds_only_what_stands_there(engine: Engine) -> None:
    towers, bread = [await engine.libraries.create("alice", name) for name in ("Towers", "Bread")]
    tower = await shelved(engine, towers.id, TOWER, "tower.md")
    await shelved(engine, bread.id, BREAD)
    assert tower.status == "ready"
    assert tower.facts is not None
    assert tower.facts["chunks"] >= 1
    found = await engine.libraries.tried("alice", towers.id, "How tall is the tower of Brenn?")
    assert found[0].score >= found[-1].score > 0
    assert {(one.document, one.document_id) for one in found} == {("tower.md", tower.library_id)}
    assert await engine.libraries.tried("alice", towers.id, "  ") == []
    empty = await engine.libraries.create("alice", "Empty")
    assert await engine.libraries.tried("alice", empty.id, "How tall is the tower?") == []


async def test_a_reply_is_found_in_a_library_that_the_conversation_uses_and_only_while_it_does(engine: Engine) -> None:
    library, talk = await engine.libraries.create("alice", "Towers"), await engine.conversations.create("alice")
    tower = await shelved(engine, library.id, TOWER)

    async def passages() -> list[str]:
        run = await engine.send("alice", talk.id, "How tall is the tower of Brenn?")
        assert await run.wait() == "complete", run.error
        return [str(one["document_id"]) for one in run.reply().passages]

    assert await passages() == []
    changes: list[tuple[str | None, str | None]] = []
    engine.on_change(lambda owner, conversation: changes.append((owner, conversation)))
    await engine.libraries.use("alice", talk.id, library.id, on=True)
    assert changes == [("alice", talk.id)]
    assert set(await passages()) == {tower.library_id}
    await engine.libraries.use("alice", talk.id, library.id, on=False)
    assert await passages() == []


async def left_out(engine: Engine, conversation_id: str) -> dict[str, Any]:
    """The one document of which an answer says that it did not know all of it."""
    run = await engine.send("alice", conversation_id, "What is the deductible for water damage?")
    assert await run.wait() == "complete", run.error
    (result,) = [block.result for block in run.reply().blocks if block.kind == "call"]
    assert result is not None
    (told,) = (result.extra or {})["left_out"]
    return told


async def test_an_answer_says_which_of_its_librarys_documents_are_still_being_read_or_were_stopped(
    engine: Engine,
) -> None:
    gate = Gate(await index_of(engine, "alice"))
    library, talk = await engine.libraries.create("alice", "Policies"), await engine.conversations.create("alice")
    await engine.libraries.use("alice", talk.id, library.id, on=True)
    record = await engine.libraries.add("alice", library.id, long_pdf(), "policy.pdf")
    change = asyncio.Event()
    engine.on_change(lambda _owner, _talk: change.set())
    async with asyncio.timeout(60):
        while not await engine.documents.within_reach("alice", talk.id):
            await change.wait()
            change.clear()
    told = await left_out(engine, talk.id)
    assert (told["name"], told["status"], told["total"]) == ("policy.pdf", "reading", PAGES)
    await engine.libraries.cancel("alice", record.id)
    told = await left_out(engine, talk.id)
    assert (told["name"], told["status"], told["found"], told["total"]) == ("policy.pdf", "cancelled", True, PAGES)
    gate.opened.set()
    await engine.libraries.read_again("alice", record.id)
    assert (await is_read(engine, record.id)).status == "ready"


async def test_deleting_a_library_leaves_what_a_conversation_still_needs(engine: Engine) -> None:
    library, talk = await engine.libraries.create("alice", "Both"), await engine.conversations.create("alice")
    tower, bread = await shelved(engine, library.id, TOWER), await shelved(engine, library.id, BREAD)
    own = await engine.files.put("alice", "own.md", TOWER)
    await is_read(engine, (await engine.add_document("alice", talk.id, own)).id)
    assert await texts(engine) == {tower.library_id, bread.library_id}
    await engine.libraries.delete("alice", library.id)
    assert await texts(engine) == {tower.library_id}
    assert stored(engine) == 1
    await engine.delete_conversation("alice", talk.id)
    assert await texts(engine) == set()
    assert stored(engine) == 0


async def test_deleting_a_conversation_leaves_what_a_library_still_needs(engine: Engine) -> None:
    library, talk = await engine.libraries.create("alice", "Towers"), await engine.conversations.create("alice")
    own = await engine.files.put("alice", "own.md", TOWER)
    await is_read(engine, (await engine.add_document("alice", talk.id, own)).id)
    tower = await shelved(engine, library.id, TOWER)
    await engine.libraries.use("alice", talk.id, library.id, on=True)
    await engine.delete_conversation("alice", talk.id)
    assert await texts(engine) == {tower.library_id}
    assert await engine.libraries.tried("alice", library.id, "How tall is the tower?")
    await engine.libraries.remove("alice", tower.id)
    assert await texts(engine) == set()
    assert stored(engine) == 0


async def test_the_same_bytes_are_kept_once_in_a_library(engine: Engine) -> None:
    library = await engine.libraries.create("alice", "Towers")
    tower = await shelved(engine, library.id, TOWER, "tower.md")
    again = await shelved(engine, library.id, TOWER, "the same.md")
    assert again == tower
    assert stored(engine) == 1


async def test_a_document_is_read_again_from_its_file(engine: Engine) -> None:
    library = await engine.libraries.create("alice", "Towers")
    tower = await shelved(engine, library.id, TOWER)
    index = await index_of(engine, "alice")
    await index.aremove(str(tower.library_id))  # whatever may have happened to it
    assert await engine.libraries.tried("alice", library.id, "How tall is the tower?") == []
    await engine.libraries.read_again("alice", tower.id)
    again = await is_read(engine, tower.id)
    assert (again.status, again.library_id) == ("ready", tower.library_id)
    assert await engine.libraries.tried("alice", library.id, "How tall is the tower?")


async def test_the_same_bytes_elsewhere_are_read_again_with_it(engine: Engine) -> None:
    library, talk = await engine.libraries.create("alice", "Towers"), await engine.conversations.create("alice")
    tower = await shelved(engine, library.id, TOWER)
    own = await engine.files.put("alice", "own.md", TOWER)
    record = await is_read(engine, (await engine.add_document("alice", talk.id, own)).id)
    await engine.libraries.read_again("alice", tower.id)
    assert await engine.documents.get("alice", record.id) == record
    await engine.libraries.cancel("alice", tower.id)  # whatever becomes of this one
    assert await engine.documents.get("alice", tower.id) == tower
    assert await texts(engine) == {record.library_id}
    assert await engine.documents.within_reach("alice", talk.id) == [record.library_id]


async def test_what_reading_again_found_is_told_of_the_same_bytes_elsewhere(engine: Engine) -> None:
    library, talk = await engine.libraries.create("alice", "Towers"), await engine.conversations.create("alice")
    tower = await shelved(engine, library.id, TOWER)
    own = await engine.files.put("alice", "own.md", TOWER)
    record = await is_read(engine, (await engine.add_document("alice", talk.id, own)).id)
    for one in (tower, record):  # as an earlier version had read it
        old = {**(one.facts or {}), "chunks": 99}
        await engine.documents.update("alice", one.id, "ready", library_id=one.library_id, facts=old)
    told, change = set[str | None](), asyncio.Event()

    def changed(_owner: str | None, conversation_id: str | None) -> None:
        told.add(conversation_id)
        change.set()

    leave = engine.on_change(changed)
    await engine.libraries.read_again("alice", tower.id)
    async with asyncio.timeout(60):
        while ((await engine.documents.get("alice", record.id)).facts or {})["chunks"] == 99 or talk.id not in told:
            await change.wait()
            change.clear()
    leave()
    again = await engine.documents.get("alice", record.id)
    fresh = (await engine.documents.get("alice", tower.id)).facts or {}
    assert again.facts == {**fresh, "known": True}
    assert (again.name, again.status, again.error) == ("own.md", "ready", None)


async def test_what_is_asked_to_be_read_again_twice_at_once_is_there_afterwards(engine: Engine) -> None:
    library = await engine.libraries.create("alice", "Towers")
    tower = await shelved(engine, library.id, TOWER)
    await asyncio.gather(*(engine.libraries.read_again("alice", tower.id) for _ in range(2)))
    assert (await is_read(engine, tower.id)).library_id == tower.library_id
    assert await engine.libraries.tried("alice", library.id, "How tall is the tower?")


async def test_a_document_that_was_opened_is_read_again_without_its_password(engine: Engine) -> None:
    library = await engine.libraries.create("alice", "Policies")
    locked = await shelved(engine, library.id, pdf(CLAUSE, password="sesame"), "policy.pdf")
    assert (locked.error or {})["key"] == "document_password_asked"
    await engine.libraries.read_again("alice", locked.id, "sesame")
    assert (await is_read(engine, locked.id)).status == "ready"
    await engine.libraries.read_again("alice", locked.id)
    again = await is_read(engine, locked.id)
    assert (again.status, again.error) == ("ready", None)
    assert await engine.libraries.tried("alice", library.id, "water damage")


async def test_what_is_read_again_in_vain_stays_as_it_was_and_says_why(engine: Engine) -> None:
    library = await engine.libraries.create("alice", "Towers")
    tower = await shelved(engine, library.id, TOWER)
    index = await index_of(engine, "alice")

    async def broken(*_: Any, **__: Any) -> Any:
        raise NoSpaceError("The disk is full.")

    index.aadd = broken  # type: ignore[method-assign]
    await engine.libraries.read_again("alice", tower.id)
    again = await is_read(engine, tower.id)
    assert (again.status, again.library_id, again.facts) == ("ready", tower.library_id, tower.facts)
    assert again.error is not None
    assert await engine.libraries.tried("alice", library.id, "How tall is the tower?")


async def test_a_document_without_text_leaves_nothing_in_the_index(engine: Engine) -> None:
    library = await engine.libraries.create("alice", "Empty")
    assert (await shelved(engine, library.id, pdf(""), "empty.pdf")).status == "failed"
    assert await texts(engine) == set()


async def test_what_is_called_off_too_late_is_read(engine: Engine) -> None:
    index, library = await index_of(engine, "alice"), await engine.libraries.create("alice", "Towers")
    add, was_read = index.aadd, asyncio.Event()

    async def late(*args: Any, **options: Any) -> Any:
        document = await add(*args, **options)
        was_read.set()
        await asyncio.to_thread(options["enough"].wait, 60)
        return document

    index.aadd = late  # type: ignore[method-assign]
    record = await engine.libraries.add("alice", library.id, TOWER, "tower.md")
    async with asyncio.timeout(60):
        await was_read.wait()
    await engine.libraries.cancel("alice", record.id)
    assert (await engine.documents.get("alice", record.id)).status == "ready"
    await engine.libraries.remove("alice", record.id)
    assert await texts(engine) == set()


async def test_what_cannot_be_taken_out_keeps_nothing_else_in_and_goes_at_the_next_start(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home")
    async with Engine(settings, model=ScriptedModel()) as first:
        library = await first.libraries.create("alice", "Both")
        for content in (TOWER, BREAD):
            await shelved(first, library.id, content)
        index, asked = await index_of(first, "alice"), list[str]()
        remove = index.aremove

        async def busy(document_id: str) -> None:
            asked.append(document_id)
            if len(asked) == 1:
                raise StorageError("The library is busy.")
            await remove(document_id)

        index.aremove = busy  # type: ignore[method-assign]
        await first.libraries.delete("alice", library.id)
        assert len(asked) == 2
        assert await texts(first) == {asked[0]}
    async with Engine(settings, model=ScriptedModel()) as second:
        assert await texts(second) == set()


async def test_what_was_not_read_before_a_restart_is_read_after_it(tmp_path: Path) -> None:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as first:
        library = await first.libraries.create("alice", "Towers")
        file = await first.files.put("alice", "tower.md", TOWER)
        unread = await first.documents.add("alice", None, file.id, file.name, collection_id=library.id)
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as second:
        assert (await is_read(second, unread.id)).status == "ready"
        assert await second.libraries.tried("alice", library.id, "How tall is the tower?")


async def test_what_cannot_be_read_says_so_and_stays_until_it_is_removed(engine: Engine) -> None:
    library = await engine.libraries.create("alice", "Broken")
    broken = await shelved(engine, library.id, b"%PDF-1.7\nnothing of a document", "broken.pdf")
    assert broken.status == "failed"
    assert broken.error is not None
    await engine.libraries.read_again("alice", broken.id)
    assert (await is_read(engine, broken.id)).status == "failed"
    await engine.libraries.remove("alice", broken.id)
    assert (await engine.libraries.opened("alice", library.id)).documents == []


async def test_a_library_that_is_being_filled_can_be_deleted(engine: Engine) -> None:
    library = await engine.libraries.create("alice", "Many")
    for number in range(5):
        await engine.libraries.add("alice", library.id, b"# Page\n\nA text of its own. %d" % number, f"{number}.md")
    await engine.libraries.delete("alice", library.id)
    assert await engine.libraries.list("alice") == []
    assert await engine.documents.unread() == []
    assert await texts(engine) == set()
    assert stored(engine) == 0


@pytest.mark.parametrize("name", ["", " \n ", "\u200b"])
async def test_a_library_has_a_name(engine: Engine, name: str) -> None:
    with pytest.raises(ParlourError) as caught:
        await engine.libraries.create("alice", name)
    assert caught.value.words_key == "library_unnamed"


async def test_a_name_is_one_line_and_not_too_long_and_not_given_twice(engine: Engine) -> None:
    library = await engine.libraries.create("alice", "  two\nlines \ud83d " + "x" * 200)
    assert library.name == "two lines ? " + "x" * 68
    with pytest.raises(ConflictError):
        await engine.libraries.create("alice", library.name)


async def test_a_renamed_library_is_told_to_the_conversations_that_use_it(engine: Engine) -> None:
    library, talk = await engine.libraries.create("alice", "old"), await engine.conversations.create("alice")
    await engine.libraries.use("alice", talk.id, library.id, on=True)
    changes: list[tuple[str | None, str | None]] = []
    engine.on_change(lambda owner, conversation: changes.append((owner, conversation)))
    await engine.libraries.rename("alice", library.id, "new")
    assert changes == [("alice", talk.id)]
    assert [one.name for one in await engine.libraries.used_by("alice", talk.id)] == ["new"]


ASKS: dict[str, Callable[[Engine, str, str, str], Awaitable[Any]]] = {
    "opened": lambda e, library, _document, _talk: e.libraries.opened("bob", library),
    "rename": lambda e, library, _document, _talk: e.libraries.rename("bob", library, "mine"),
    "delete": lambda e, library, _document, _talk: e.libraries.delete("bob", library),
    "add": lambda e, library, _document, _talk: e.libraries.add("bob", library, b"mine", "mine.md"),
    "remove": lambda e, _library, document, _talk: e.libraries.remove("bob", document),
    "cancel": lambda e, _library, document, _talk: e.libraries.cancel("bob", document),
    "read again": lambda e, _library, document, _talk: e.libraries.read_again("bob", document),
    "tried": lambda e, library, _document, _talk: e.libraries.tried("bob", library, "tall"),
    "used by": lambda e, _library, _document, talk: e.libraries.used_by("bob", talk),
    "use": lambda e, library, _document, talk: e.libraries.use("bob", talk, library, on=True),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
async def test_what_is_somebody_elses_does_not_exist(
    engine: Engine, ask: Callable[[Engine, str, str, str], Awaitable[Any]]
) -> None:
    library, talk = await engine.libraries.create("alice", "Towers"), await engine.conversations.create("alice")
    tower = await shelved(engine, library.id, TOWER)
    with pytest.raises(NotFoundError):
        await ask(engine, library.id, tower.id, talk.id)
    assert (await engine.libraries.opened("alice", library.id)).documents == [tower]
    assert await engine.libraries.list("bob") == []
    assert stored(engine) == 1
    own = await engine.conversations.create("bob")
    with pytest.raises(NotFoundError):
        await engine.libraries.use("bob", own.id, library.id, on=True)


async def test_a_document_of_a_conversation_is_not_in_a_library(engine: Engine) -> None:
    talk = await engine.conversations.create("alice")
    file = await engine.files.put("alice", "own.md", TOWER)
    record = await engine.add_document("alice", talk.id, file)
    for asked in (engine.libraries.remove, engine.libraries.cancel, engine.libraries.read_again):
        with pytest.raises(NotFoundError):
            await asked("alice", record.id)
