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
from tests.core.talks import libraries_of, talk_of, world_of

pytestmark = pytest.mark.anyio

TOWER = b"# The tower\n\nThe tower of Brenn is 321 metres tall. It was built in 1889 of iron."
BREAD = b"# Bread\n\nThe baker of Brenn sells rye bread on Tuesdays and plum cake on Fridays."


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home", retrieval="keyword"), model=ScriptedModel()) as running:
        yield running


async def shelved(engine: Engine, library_id: str, content: bytes, name: str = "a.md") -> DocumentRecord:
    return await is_read(engine, (await libraries_of(engine, "alice").add(library_id, content, name)).id)


async def texts(engine: Engine) -> set[str]:
    """What the owner's index holds."""
    return {document.id for document in (await index_of(engine, "alice")).documents()}


def stored(engine: Engine) -> int:
    """How many files lie in the store."""
    return sum(path.is_file() for path in (engine.settings.home / "files").rglob("*"))


async def test_a_question_is_tried_in_a_library_and_finds_only_what_stands_there(tmp_path: Path) -> None:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as engine:  # by words and meaning
        towers, bread = [await libraries_of(engine, "alice").create(name) for name in ("Towers", "Bread")]
        tower = await shelved(engine, towers.id, TOWER, "tower.md")
        await shelved(engine, bread.id, BREAD)
        assert tower.status == "ready"
        assert tower.facts is not None
        assert tower.facts["chunks"] >= 1
        found = await libraries_of(engine, "alice").tried(towers.id, "How tall is the tower of Brenn?")
        assert found[0].score >= found[-1].score > 0
        assert {(one.document, one.document_id) for one in found} == {("tower.md", tower.library_id)}
        assert await libraries_of(engine, "alice").tried(towers.id, "  ") == []
        empty = await libraries_of(engine, "alice").create("Empty")
        assert await libraries_of(engine, "alice").tried(empty.id, "How tall is the tower?") == []


async def test_a_reply_is_found_in_a_library_that_the_conversation_uses_and_only_while_it_does(engine: Engine) -> None:
    library, talk = (
        await libraries_of(engine, "alice").create("Towers"),
        await engine.stores.of("alice").conversations.create(),
    )
    tower = await shelved(engine, library.id, TOWER)

    async def passages() -> list[str]:
        run = await talk_of(engine, "alice", talk.id).ask("How tall is the tower of Brenn?")
        assert await run.wait() == "complete", run.error
        return [str(one["document_id"]) for one in run.reply().passages]

    assert await passages() == []
    changes: list[tuple[str | None, str | None]] = []
    engine.on_change(lambda owner, conversation: changes.append((owner, conversation)))
    await libraries_of(engine, "alice").use(talk.id, library.id, on=True)
    assert changes == [("alice", talk.id)]
    assert set(await passages()) == {tower.library_id}
    await libraries_of(engine, "alice").use(talk.id, library.id, on=False)
    assert await passages() == []


async def left_out(engine: Engine, conversation_id: str) -> dict[str, Any]:
    """The one document of which an answer says that it did not know all of it."""
    run = await talk_of(engine, "alice", conversation_id).ask("What is the deductible for water damage?")
    assert await run.wait() == "complete", run.error
    (result,) = [block.result for block in run.reply().blocks if block.kind == "call"]
    assert result is not None
    (told,) = (result.extra or {})["left_out"]
    return told


async def test_an_answer_says_which_of_its_librarys_documents_are_still_being_read_or_were_stopped(
    engine: Engine,
) -> None:
    gate = Gate(await index_of(engine, "alice"))
    library, talk = (
        await libraries_of(engine, "alice").create("Policies"),
        await engine.stores.of("alice").conversations.create(),
    )
    await libraries_of(engine, "alice").use(talk.id, library.id, on=True)
    record = await libraries_of(engine, "alice").add(library.id, long_pdf(), "policy.pdf")
    change = asyncio.Event()
    engine.on_change(lambda _owner, _talk: change.set())
    async with asyncio.timeout(180):
        while not await engine.stores.of("alice").documents.within_reach(talk.id):
            await change.wait()
            change.clear()
    told = await left_out(engine, talk.id)
    assert (told["name"], told["status"], told["total"]) == ("policy.pdf", "reading", PAGES)
    await libraries_of(engine, "alice").cancel(record.id)
    told = await left_out(engine, talk.id)
    assert (told["name"], told["status"], told["found"], told["total"]) == ("policy.pdf", "cancelled", True, PAGES)
    gate.opened.set()
    await libraries_of(engine, "alice").read_again(record.id)
    assert (await is_read(engine, record.id)).status == "ready"


async def test_deleting_a_library_leaves_what_a_conversation_still_needs(engine: Engine) -> None:
    library, talk = (
        await libraries_of(engine, "alice").create("Both"),
        await engine.stores.of("alice").conversations.create(),
    )
    tower, bread = await shelved(engine, library.id, TOWER), await shelved(engine, library.id, BREAD)
    own = await engine.stores.of("alice").files.put("own.md", TOWER)
    await is_read(engine, (await world_of(engine, "alice").intake.add(talk.id, own)).id)
    assert await texts(engine) == {tower.library_id, bread.library_id}
    await libraries_of(engine, "alice").delete(library.id)
    assert await texts(engine) == {tower.library_id}
    assert stored(engine) == 1
    await talk_of(engine, "alice", talk.id).delete()
    assert await texts(engine) == set()
    assert stored(engine) == 0


async def test_deleting_a_conversation_leaves_what_a_library_still_needs(engine: Engine) -> None:
    library, talk = (
        await libraries_of(engine, "alice").create("Towers"),
        await engine.stores.of("alice").conversations.create(),
    )
    own = await engine.stores.of("alice").files.put("own.md", TOWER)
    await is_read(engine, (await world_of(engine, "alice").intake.add(talk.id, own)).id)
    tower = await shelved(engine, library.id, TOWER)
    await libraries_of(engine, "alice").use(talk.id, library.id, on=True)
    await talk_of(engine, "alice", talk.id).delete()
    assert await texts(engine) == {tower.library_id}
    assert await libraries_of(engine, "alice").tried(library.id, "How tall is the tower?")
    await libraries_of(engine, "alice").remove(tower.id)
    assert await texts(engine) == set()
    assert stored(engine) == 0


async def test_the_same_bytes_are_kept_once_in_a_library(engine: Engine) -> None:
    library = await libraries_of(engine, "alice").create("Towers")
    tower = await shelved(engine, library.id, TOWER, "tower.md")
    again = await shelved(engine, library.id, TOWER, "the same.md")
    assert again == tower
    assert stored(engine) == 1


async def test_a_document_is_read_again_from_its_file(engine: Engine) -> None:
    library = await libraries_of(engine, "alice").create("Towers")
    tower = await shelved(engine, library.id, TOWER)
    index = await index_of(engine, "alice")
    await index.aremove(str(tower.library_id))  # whatever may have happened to it
    assert await libraries_of(engine, "alice").tried(library.id, "How tall is the tower?") == []
    await libraries_of(engine, "alice").read_again(tower.id)
    again = await is_read(engine, tower.id)
    assert (again.status, again.library_id) == ("ready", tower.library_id)
    assert await libraries_of(engine, "alice").tried(library.id, "How tall is the tower?")


async def test_the_same_bytes_elsewhere_are_read_again_with_it(engine: Engine) -> None:
    library, talk = (
        await libraries_of(engine, "alice").create("Towers"),
        await engine.stores.of("alice").conversations.create(),
    )
    tower = await shelved(engine, library.id, TOWER)
    own = await engine.stores.of("alice").files.put("own.md", TOWER)
    record = await is_read(engine, (await world_of(engine, "alice").intake.add(talk.id, own)).id)
    await libraries_of(engine, "alice").read_again(tower.id)
    assert await engine.stores.of("alice").documents.get(record.id) == record
    await libraries_of(engine, "alice").cancel(tower.id)  # whatever becomes of this one
    assert await engine.stores.of("alice").documents.get(tower.id) == tower
    assert await texts(engine) == {record.library_id}
    assert await engine.stores.of("alice").documents.within_reach(talk.id) == [record.library_id]


async def test_what_reading_again_found_is_told_of_the_same_bytes_elsewhere(engine: Engine) -> None:
    library, talk = (
        await libraries_of(engine, "alice").create("Towers"),
        await engine.stores.of("alice").conversations.create(),
    )
    tower = await shelved(engine, library.id, TOWER)
    own = await engine.stores.of("alice").files.put("own.md", TOWER)
    record = await is_read(engine, (await world_of(engine, "alice").intake.add(talk.id, own)).id)
    for one in (tower, record):  # as an earlier version had read it
        old = {**(one.facts or {}), "chunks": 99}
        await engine.stores.of("alice").documents.update(one.id, "ready", library_id=one.library_id, facts=old)
    told, change = set[str | None](), asyncio.Event()

    def changed(_owner: str | None, conversation_id: str | None) -> None:
        told.add(conversation_id)
        change.set()

    leave = engine.on_change(changed)
    await libraries_of(engine, "alice").read_again(tower.id)
    async with asyncio.timeout(180):
        while ((await engine.stores.of("alice").documents.get(record.id)).facts or {})[
            "chunks"
        ] == 99 or talk.id not in told:
            await change.wait()
            change.clear()
    leave()
    again = await engine.stores.of("alice").documents.get(record.id)
    fresh = (await engine.stores.of("alice").documents.get(tower.id)).facts or {}
    assert again.facts == {**fresh, "known": True}
    assert (again.name, again.status, again.error) == ("own.md", "ready", None)


async def test_what_is_asked_to_be_read_again_twice_at_once_is_there_afterwards(engine: Engine) -> None:
    library = await libraries_of(engine, "alice").create("Towers")
    tower = await shelved(engine, library.id, TOWER)
    await asyncio.gather(*(libraries_of(engine, "alice").read_again(tower.id) for _ in range(2)))
    assert (await is_read(engine, tower.id)).library_id == tower.library_id
    assert await libraries_of(engine, "alice").tried(library.id, "How tall is the tower?")


async def test_a_document_that_was_opened_is_read_again_without_its_password(engine: Engine) -> None:
    library = await libraries_of(engine, "alice").create("Policies")
    locked = await shelved(engine, library.id, pdf(CLAUSE, password="sesame"), "policy.pdf")
    assert (locked.error or {})["key"] == "document_password_asked"
    await libraries_of(engine, "alice").read_again(locked.id, "sesame")
    assert (await is_read(engine, locked.id)).status == "ready"
    await libraries_of(engine, "alice").read_again(locked.id)
    again = await is_read(engine, locked.id)
    assert (again.status, again.error) == ("ready", None)
    assert await libraries_of(engine, "alice").tried(library.id, "water damage")


async def test_what_is_read_again_in_vain_stays_as_it_was_and_says_why(engine: Engine) -> None:
    library = await libraries_of(engine, "alice").create("Towers")
    tower = await shelved(engine, library.id, TOWER)
    index = await index_of(engine, "alice")

    async def broken(*_: Any, **__: Any) -> Any:
        raise NoSpaceError("The disk is full.")

    index.aadd = broken  # type: ignore[method-assign]
    await libraries_of(engine, "alice").read_again(tower.id)
    again = await is_read(engine, tower.id)
    assert (again.status, again.library_id, again.facts) == ("ready", tower.library_id, tower.facts)
    assert again.error is not None
    assert await libraries_of(engine, "alice").tried(library.id, "How tall is the tower?")


async def test_a_document_without_text_leaves_nothing_in_the_index(engine: Engine) -> None:
    library = await libraries_of(engine, "alice").create("Empty")
    assert (await shelved(engine, library.id, pdf(""), "empty.pdf")).status == "failed"
    assert await texts(engine) == set()


async def test_what_is_called_off_too_late_is_read(engine: Engine) -> None:
    index, library = await index_of(engine, "alice"), await libraries_of(engine, "alice").create("Towers")
    add, was_read = index.aadd, asyncio.Event()

    async def late(*args: Any, **options: Any) -> Any:
        document = await add(*args, **options)
        was_read.set()
        await asyncio.to_thread(options["enough"].wait, 60)
        return document

    index.aadd = late  # type: ignore[method-assign]
    record = await libraries_of(engine, "alice").add(library.id, TOWER, "tower.md")
    async with asyncio.timeout(180):
        await was_read.wait()
    await libraries_of(engine, "alice").cancel(record.id)
    assert (await engine.stores.of("alice").documents.get(record.id)).status == "ready"
    await libraries_of(engine, "alice").remove(record.id)
    assert await texts(engine) == set()


async def test_what_cannot_be_taken_out_keeps_nothing_else_in_and_goes_at_the_next_start(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home")
    async with Engine(settings, model=ScriptedModel()) as first:
        library = await libraries_of(first, "alice").create("Both")
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
        await libraries_of(first, "alice").delete(library.id)
        assert len(asked) == 2
        assert await texts(first) == {asked[0]}
    async with Engine(settings, model=ScriptedModel()) as second:
        assert await texts(second) == set()


async def test_what_was_not_read_before_a_restart_is_read_after_it(tmp_path: Path) -> None:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as first:
        library = await libraries_of(first, "alice").create("Towers")
        file = await first.stores.of("alice").files.put("tower.md", TOWER)
        unread = await first.stores.of("alice").documents.add(None, file.id, file.name, collection_id=library.id)
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as second:
        assert (await is_read(second, unread.id)).status == "ready"
        assert await libraries_of(second, "alice").tried(library.id, "How tall is the tower?")


async def test_what_cannot_be_read_says_so_and_stays_until_it_is_removed(engine: Engine) -> None:
    library = await libraries_of(engine, "alice").create("Broken")
    broken = await shelved(engine, library.id, b"%PDF-1.7\nnothing of a document", "broken.pdf")
    assert broken.status == "failed"
    assert broken.error is not None
    await libraries_of(engine, "alice").read_again(broken.id)
    assert (await is_read(engine, broken.id)).status == "failed"
    await libraries_of(engine, "alice").remove(broken.id)
    assert (await libraries_of(engine, "alice").opened(library.id)).documents == []


async def test_a_library_that_is_being_filled_can_be_deleted(engine: Engine) -> None:
    library = await libraries_of(engine, "alice").create("Many")
    for number in range(5):
        await libraries_of(engine, "alice").add(library.id, b"# Page\n\nA text of its own. %d" % number, f"{number}.md")
    await libraries_of(engine, "alice").delete(library.id)
    assert await libraries_of(engine, "alice").list() == []
    assert await engine.stores.documents.unread() == []
    assert await texts(engine) == set()
    assert stored(engine) == 0


@pytest.mark.parametrize("name", ["", " \n ", "\u200b"])
async def test_a_library_has_a_name(engine: Engine, name: str) -> None:
    with pytest.raises(ParlourError) as caught:
        await libraries_of(engine, "alice").create(name)
    assert caught.value.words_key == "library_unnamed"


async def test_a_name_is_one_line_and_not_too_long_and_not_given_twice(engine: Engine) -> None:
    library = await libraries_of(engine, "alice").create("  two\nlines \ud83d " + "x" * 200)
    assert library.name == "two lines ? " + "x" * 68
    with pytest.raises(ConflictError):
        await libraries_of(engine, "alice").create(library.name)


async def test_a_renamed_library_is_told_to_the_conversations_that_use_it(engine: Engine) -> None:
    library, talk = (
        await libraries_of(engine, "alice").create("old"),
        await engine.stores.of("alice").conversations.create(),
    )
    await libraries_of(engine, "alice").use(talk.id, library.id, on=True)
    changes: list[tuple[str | None, str | None]] = []
    engine.on_change(lambda owner, conversation: changes.append((owner, conversation)))
    await libraries_of(engine, "alice").rename(library.id, "new")
    assert changes == [("alice", talk.id)]
    assert [one.name for one in await libraries_of(engine, "alice").used_by(talk.id)] == ["new"]


ASKS: dict[str, Callable[[Engine, str, str, str], Awaitable[Any]]] = {
    "opened": lambda e, library, _document, _talk: libraries_of(e, "bob").opened(library),
    "rename": lambda e, library, _document, _talk: libraries_of(e, "bob").rename(library, "mine"),
    "delete": lambda e, library, _document, _talk: libraries_of(e, "bob").delete(library),
    "add": lambda e, library, _document, _talk: libraries_of(e, "bob").add(library, b"mine", "mine.md"),
    "remove": lambda e, _library, document, _talk: libraries_of(e, "bob").remove(document),
    "cancel": lambda e, _library, document, _talk: libraries_of(e, "bob").cancel(document),
    "read again": lambda e, _library, document, _talk: libraries_of(e, "bob").read_again(document),
    "tried": lambda e, library, _document, _talk: libraries_of(e, "bob").tried(library, "tall"),
    "used by": lambda e, _library, _document, talk: libraries_of(e, "bob").used_by(talk),
    "use": lambda e, library, _document, talk: libraries_of(e, "bob").use(talk, library, on=True),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
async def test_what_is_somebody_elses_does_not_exist(
    engine: Engine, ask: Callable[[Engine, str, str, str], Awaitable[Any]]
) -> None:
    library, talk = (
        await libraries_of(engine, "alice").create("Towers"),
        await engine.stores.of("alice").conversations.create(),
    )
    tower = await shelved(engine, library.id, TOWER)
    with pytest.raises(NotFoundError):
        await ask(engine, library.id, tower.id, talk.id)
    assert (await libraries_of(engine, "alice").opened(library.id)).documents == [tower]
    assert await libraries_of(engine, "bob").list() == []
    assert stored(engine) == 1
    own = await engine.stores.of("bob").conversations.create()
    with pytest.raises(NotFoundError):
        await libraries_of(engine, "bob").use(own.id, library.id, on=True)


async def test_a_document_of_a_conversation_is_not_in_a_library(engine: Engine) -> None:
    talk = await engine.stores.of("alice").conversations.create()
    file = await engine.stores.of("alice").files.put("own.md", TOWER)
    record = await world_of(engine, "alice").intake.add(talk.id, file)
    libraries = libraries_of(engine, "alice")
    for asked in (libraries.remove, libraries.cancel, libraries.read_again):
        with pytest.raises(NotFoundError):
            await asked(record.id)
