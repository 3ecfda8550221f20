"""What somebody shares with a group: its people use it as long as it is shared, and reach nothing else by that."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path

import pytest

from core.engine import Engine
from core.errors import NotFoundError, ParlourError
from core.llm.request import ChatRequest
from core.models.model_name import ModelName
from core.models.own_models import Draft
from core.people.people import checked_role, new_person
from core.rag.joined import JoinedLibrary, Lot
from core.rag.library import Library
from core.settings import Settings
from core.storage.base import DocumentRecord, NamedLibrary
from core.testing.scripted_model import Reply, ScriptedModel
from core.workspace.levels import Level
from core.workspace.personas import Persona
from webui.panels.toolbar import switched, toolbar_html
from webui.words import Words

pytestmark = pytest.mark.anyio

TOWER = b"# The tower\n\nThe tower of Brenn is 321 metres tall. It was built in 1889 of iron."
BREAD = b"# Bread\n\nThe baker of Brenn sells rye bread on Tuesdays and plum cake on Fridays."
SECRET = b"# Diary\n\nMara hid the golden key of Brenn under the third stair."


@dataclass
class Group:
    """A house with a group of two, Mara who shares and Jan who gets it, and Eve, who is in none."""

    engine: Engine
    model: ScriptedModel
    id: str
    mara: str
    jan: str
    eve: str

    async def library(self, who: str, content: bytes, name: str) -> tuple[NamedLibrary, DocumentRecord]:
        """A library of somebody's with one document, which is read."""
        async with self.engine.workspaces.open(who) as workspace:
            library = await workspace.libraries.create(name)
            record = await workspace.libraries.add(library.id, content, f"{name}.md")
            job = self.engine.services.intake.jobs.get(record.id)
            if job is not None and job.task is not None:
                await asyncio.wait({job.task})
            return library, await workspace.documents.get(record.id)

    async def lend(self, kind: str, thing: str, *, writes: bool = False) -> None:
        assert kind in {"library", "persona", "model"}
        await self.engine.stores.of(self.mara).lending.lend(self.id, kind, thing, writes=writes)  # pyright: ignore[reportArgumentType]

    async def asked(self, who: str, talk: str, question: str) -> str:
        """What becomes of a question: the error's key, or "complete"."""
        async with self.engine.workspaces.open(who) as workspace:
            run = await workspace.conversation(talk).ask(question)
            await run.wait()
            reply = (await workspace.conversations.thread(talk))[-1]
            error = (await workspace.runs.reply(reply)).error or {}
            return str(error.get("key") or reply.status)

    def told(self) -> str:
        """All that the model was given for its last reply."""
        return "\n".join(str(message) for message in self.model.requests[-1].messages)


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[Group]:
    model = ScriptedModel("So it is.")
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", titles=False, check_claims=False)
    async with Engine(settings, model=model) as engine:
        ids: list[str] = []
        for name, role in (("Mara", "owner"), ("Jan", "member"), ("Eve", "owner")):
            ids.append((await engine.people.store.add(new_person(name, checked_role(role)), "terminal")).id)
        made = await engine.groups.make(None, "Research")
        for one in ids[:2]:
            await engine.groups.add(None, made.id, one)
        yield Group(engine, model, made.id, *ids)


async def test_a_lent_library_answers_who_is_in_the_group_and_nobody_else(group: Group) -> None:
    library, _ = await group.library(group.mara, TOWER, "Towers")
    await group.library(group.mara, SECRET, "Diary")
    await group.library(group.jan, BREAD, "Bread")
    await group.lend("library", library.id)
    async with group.engine.workspaces.open(group.jan) as jan:
        talk = (await jan.conversations.create("")).id
        await jan.libraries.use(talk, library.id, on=True)
        assert [one.name for one in await jan.libraries.used_by(talk)] == ["Towers"]
    assert (
        await group.asked(group.jan, talk, "How tall is the tower of Brenn, and where is the golden key?") == "complete"
    )
    assert "321 metres" in group.told()
    assert "third stair" not in group.told()
    async with group.engine.workspaces.open(group.eve) as eve:
        theirs = (await eve.conversations.create("")).id
        with pytest.raises(NotFoundError):
            await eve.libraries.use(theirs, library.id, on=True)
        assert await eve.libraries.lent() == []


async def test_all_of_a_lent_library_is_found_by_who_has_a_document_of_it_too(group: Group) -> None:
    library, _ = await group.library(group.mara, TOWER, "Towers")
    async with group.engine.workspaces.open(group.mara) as mara:
        record = await mara.libraries.add(library.id, BREAD, "Bread.md")
        await mara.intake.wait_for_first_pages(record.id, 20.0)
    await group.library(group.jan, TOWER, "My tower")
    await group.lend("library", library.id)
    async with group.engine.workspaces.open(group.jan) as jan:
        found = (await jan.document_search.find("rye bread")).passages
        assert [(one.place.name, one.place.within) for one in found] == [("Bread.md", "Towers")]
        both = (await jan.document_search.find("metres")).passages
        assert {one.place.name for one in both} == {"Towers.md", "My tower.md"}


async def test_own_and_lent_libraries_answer_one_question_together(group: Group) -> None:
    towers, _ = await group.library(group.mara, TOWER, "Towers")
    bread, _ = await group.library(group.jan, BREAD, "Bread")
    await group.lend("library", towers.id)
    async with group.engine.workspaces.open(group.jan) as jan:
        talk = (await jan.conversations.create("")).id
        for one in (towers, bread):
            await jan.libraries.use(talk, one.id, on=True)
        found = await jan.conversation(talk).find("When is rye bread sold in Brenn?")
        assert found[0].document == "Bread.md"
        assert {one.document for one in found} == {"Bread.md", "Towers.md"}
    assert await group.asked(group.jan, talk, "How tall is the tower, and when is rye bread sold?") == "complete"
    assert "321 metres" in group.told()
    assert "Tuesdays" in group.told()


async def test_what_is_taken_back_is_gone_for_the_next_question_and_for_its_pages(group: Group) -> None:
    library, record = await group.library(group.mara, TOWER, "Towers")
    await group.lend("library", library.id)
    text = record.library_id or ""
    async with group.engine.workspaces.open(group.jan) as jan:
        talk = (await jan.conversations.create("")).id
        await jan.libraries.use(talk, library.id, on=True)
        async with jan.holding(text) as index:
            assert index.document(text).name == "Towers.md"
    for end in (
        group.engine.stores.of(group.mara).lending.take_back(group.id, "library", library.id),
        group.engine.groups.take_out(None, group.id, group.jan),
        group.engine.groups.delete(None, group.id),
    ):
        await end
        async with group.engine.workspaces.open(group.jan) as jan:
            with pytest.raises(NotFoundError):
                async with jan.holding(text):
                    pass
            assert await jan.documents.within_reach(talk) == []
            assert await jan.libraries.used_by(talk) == []
        assert await group.asked(group.jan, talk, "How tall is the tower?") == "complete"
        assert "321 metres" not in str(group.model.requests[-1].messages[-1])


@pytest.mark.parametrize("how", ["taken back", "library deleted", "lender deleted"])
async def test_what_a_folder_has_and_its_lender_takes_away_is_missed_until_a_conversation_leaves_it_out(
    group: Group, how: str
) -> None:
    library, _ = await group.library(group.mara, TOWER, "Towers")
    await group.lend("library", library.id)
    async with group.engine.workspaces.open(group.jan) as jan:
        folder = await jan.folders.create("Work")
        await jan.folders.configure(folder.id, lambda kept: {**kept, "libraries": [library.id]})
        talk = (await jan.conversations.create("")).id
        await jan.folders.put([talk], folder.id)
        assert [one.id for one in await jan.libraries.used_by(talk)] == [library.id]
        assert await jan.libraries.lost_by(talk) == []
    match how:
        case "taken back":
            await group.engine.stores.of(group.mara).lending.take_back(group.id, "library", library.id)
        case "library deleted":
            async with group.engine.workspaces.open(group.mara) as mara:
                await mara.libraries.delete(library.id)
        case _:
            await group.engine.people.remove(None, group.mara)
    async with group.engine.workspaces.open(group.jan) as jan:
        assert await jan.libraries.lost_by(talk) == [library.id]
        assert await jan.libraries.lost_among([library.id]) == [library.id]
        await jan.libraries.use(talk, library.id, on=False)
        assert await jan.libraries.lost_by(talk) == []
    async with group.engine.workspaces.open(group.eve) as eve:
        assert await eve.libraries.lost_among([library.id]) == (
            [] if how == "library deleted" else [library.id]
        )  # of what is deleted, those alone are told who had it


async def test_what_a_new_chat_is_to_use_is_missed_also_once_all_of_its_lender_is_deleted(group: Group) -> None:
    library, _ = await group.library(group.mara, TOWER, "Towers")
    await group.lend("library", library.id)
    await group.engine.people.remove(None, group.mara)
    async with group.engine.workspaces.open(group.mara) as mara:
        await mara.libraries.delete(library.id)
    async with group.engine.workspaces.open(group.jan) as jan:
        assert await jan.libraries.lost_among([library.id]) == [library.id]


@pytest.mark.parametrize("how", ["taken back", "group deleted", "member removed", "lender deleted"])
async def test_what_ends_while_a_reply_is_being_written_is_refused_at_its_next_look(group: Group, how: str) -> None:
    library, _ = await group.library(group.mara, TOWER, "Towers")
    await group.lend("library", library.id)
    engine = group.engine
    async with engine.workspaces.open(group.jan) as jan:
        talk = (await jan.conversations.create("")).id
        await jan.libraries.use(talk, library.id, on=True)
        async with jan.services.within_reach(talk) as (index, documents):
            assert index is not None
            assert await index.afind("How tall is the tower?", documents=documents)
            match how:
                case "taken back":
                    await engine.stores.of(group.mara).lending.take_back(group.id, "library", library.id)
                case "group deleted":
                    await engine.groups.delete(None, group.id)
                case "member removed":
                    await engine.groups.take_out(None, group.id, group.jan)
                case _:
                    await engine.people.remove(None, group.mara)
            with pytest.raises(NotFoundError) as gone:
                await index.afind("How tall is the tower?", documents=documents)
            assert gone.value.words_key == "library_taken_back"
            with pytest.raises(NotFoundError):
                await asyncio.to_thread(index.context.whole, documents)


async def test_a_reply_whose_library_is_taken_back_ends_with_a_sentence_or_goes_on_without(group: Group) -> None:
    library, _ = await group.library(group.mara, TOWER, "Towers")
    await group.lend("library", library.id)
    engine = group.engine

    def takes_back(request: ChatRequest) -> Reply:
        del request
        with closing(sqlite3.connect(engine.stores.database.place)) as elsewhere, elsewhere:
            elsewhere.execute("DELETE FROM lent")  # another process did it
        return Reply(calls=[("ask_documents", {"query": "How tall is the tower?"})])

    group.model._turns[:] = [takes_back, "I cannot say."]  # pyright: ignore[reportPrivateUsage]
    async with engine.workspaces.open(group.jan) as jan:
        talk = (await jan.conversations.create("")).id
        await jan.libraries.use(talk, library.id, on=True)
    await group.asked(group.jan, talk, "Hello, who are you?")
    async with engine.workspaces.open(group.jan) as jan:
        said = str((await jan.conversations.thread(talk))[-1].parts)
        assert "not shared with you any more" in said
        assert "321 metres" not in said[said.index("not shared with you any more") :]


async def test_a_persona_that_is_lent_steers_and_its_words_stay_with_who_made_it(group: Group) -> None:
    async with group.engine.workspaces.open(group.mara) as mara:
        kept = await mara.steering.personas.save(Persona("", "Pirate", level=Level("Speak like a pirate.")))
    await group.lend("persona", kept.id)
    async with group.engine.workspaces.open(group.jan) as jan:
        (lent,) = await jan.steering.lent_personas()
        assert (lent.name, lent.lender, lent.writes) == ("Pirate", "Mara", False)
        assert await jan.steering.personas.list() == []
        talk = (await jan.conversations.create("")).id
        await jan.steering.choose(talk, kept.id)
        assert "pirate." not in str(await jan.conversations.settings(talk))
    assert await group.asked(group.jan, talk, "Hello!") == "complete"
    assert "Speak like a pirate." in group.told()
    async with group.engine.workspaces.open(group.mara) as mara:  # changed at its owner's, it is changed here
        await mara.steering.personas.save(replace(kept, level=Level("Speak like a poet.")))
    assert await group.asked(group.jan, talk, "Hello!") == "complete"
    assert "Speak like a poet." in group.told()
    await group.engine.stores.of(group.mara).lending.take_back(group.id, "persona", kept.id)
    assert await group.asked(group.jan, talk, "Hello!") == "complete"
    assert "poet" not in group.told()
    async with group.engine.workspaces.open(group.jan) as jan:
        assert (await jan.steering.of(talk)).gone == "Pirate"
        chips = await switched(jan, await jan.conversations.settings(talk), None, ())
        assert "The persona “Pirate” is not shared with you any more" in unescape(toolbar_html(chips, (), Words("en")))
        with pytest.raises(NotFoundError):
            await jan.steering.choose(talk, kept.id)
        await jan.steering.choose(talk, "")
        assert (await jan.steering.of(talk)).gone == ""


async def test_a_model_that_is_lent_is_asked_by_the_key_of_the_house_which_nobody_sees(group: Group) -> None:
    async with group.engine.workspaces.open(group.mara) as mara:
        address = "http://127.0.0.1:9/v1"
        await mara.models.save(Draft("compatible", address, "big-one", "sk-house-1234"), use=False)
    await group.lend("model", "compatible")
    async with group.engine.workspaces.open(group.jan) as jan:
        (lent,) = await jan.models.others.list()
        name = await jan.models.named(ModelName(lent.name))
        choice = await jan.models.choice_of(name)
        assert (choice.address, choice.model, choice.key) == (address, "big-one", "sk-house-1234")
        assert "sk-house" not in repr(choice)
        assert await jan.models.secrets() == ["sk-house-1234"]
        assert await jan.models.kept() == []
        talk = (await jan.conversations.create("")).id
        await jan.conversation(talk).choose_model(name)
        with pytest.raises(ParlourError):
            await jan.models.choice_of(ModelName(lent.name, "another-one"))
        await jan.models.use_for_all(name)
        assert await jan.models.usual() == name
        loader = await jan.models.loader(name)
        assert "Mara" in loader.label
        with suppress(ParlourError):  # nobody answers there
            await loader.ready()
        assert "Mara" in loader.label, "also when it is there"
    await group.engine.stores.of(group.mara).lending.take_back(group.id, "model", "compatible")
    assert await group.asked(group.jan, talk, "Hello!") == "model_taken_back"
    async with group.engine.workspaces.open(group.jan) as jan:
        assert (await jan.models.loader(name)).label == "big-one", "the page goes on naming what is gone"
    async with group.engine.workspaces.open(group.eve) as eve:
        with pytest.raises(ParlourError):
            await eve.models.named(name)


def test_all_that_reads_a_library_is_joined_too(tmp_path: Path) -> None:
    with Library.open(tmp_path / "own") as own, Library.open(tmp_path / "other") as other:
        mine, theirs = (
            one.add_text(text, name=name)
            for one, text, name in ((own, BREAD.decode(), "Bread.md"), (other, TOWER.decode(), "Tower.md"))
        )
        hidden = other.add_text(SECRET.decode(), name="Diary.md")
        joined = JoinedLibrary(own, [Lot(other, [theirs.id])])
        for part in ("pages", "figures", "tables", "context", "retriever"):
            kind, base = type(getattr(joined, part)), type(getattr(own, part))
            asks = {name for name in vars(base) if not name.startswith("_")}
            left = (
                asks
                - set(vars(kind))
                - {"named", "scored", "holding", "changed", "on_vector_progress", "wait_for_words", "close"}
            )
            assert left == set(), f"{part}: these would look into no library"
        asks = {name for name in vars(Library) if not name.startswith("_")}
        assert asks - set(vars(JoinedLibrary)) == {
            *("open", "aadd", "afind", "abeginnings", "aholding", "aremove", "apage_picture", "apage_image"),
        }
        assert [one.name for one in joined.documents()] == ["Bread.md", "Tower.md"]
        everything = [mine.id, theirs.id, hidden.id]
        assert [one.document for one in joined.find("How tall is the tower of Brenn?", documents=everything)] == [
            *("Tower.md", "Bread.md"),
        ]
        assert [one.document for one in joined.context.whole(everything)] == ["Bread.md", "Tower.md"]
        with pytest.raises(NotFoundError):
            joined.document(hidden.id)
        with pytest.raises(NotFoundError):
            joined.remove(mine.id)
