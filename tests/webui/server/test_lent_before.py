"""What others share is chosen for a new chat as one's own is, and its first question is answered with it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.models.model_name import ModelName
from core.models.own_models import Draft
from core.people.people import checked_role, new_person
from core.settings import Settings
from core.storage.lending import Kind
from core.testing.scripted_model import ScriptedModel
from core.workspace.judging import OwnerJudging
from core.workspace.levels import Level
from core.workspace.personas import Persona
from tests.webui.server.tabs_of_engine import Tabs
from webui.frames import Frame
from webui.handlers.send import start
from webui.uploads import Uploads
from webui.views import View

pytestmark = pytest.mark.anyio

CONTRACT = b"# Contract\n\nThe harbour of Brenn pays 740 crowns for each crane."


@dataclass
class Lent:
    """Mara, who shares with the group in which Jan is, and the tabs of both."""

    tabs: Tabs
    model: ScriptedModel
    group: str
    mara: str
    jan: str

    async def lend(self, kind: Kind, thing: str) -> None:
        await self.tabs.engine.stores.of(self.mara).lending.lend(self.group, kind, thing, writes=False)

    async def take_back(self, kind: Kind, thing: str) -> None:
        await self.tabs.engine.stores.of(self.mara).lending.take_back(self.group, kind, thing)

    async def end(self, how: str, library: str) -> None:
        """The lender takes a library back, deletes it, or does one after the other."""
        if how != "deleted":
            await self.take_back("library", library)
        if how != "taken back":
            async with self.tabs.engine.workspaces.open(self.mara) as mara:
                await mara.libraries.delete(library)

    async def library(self, who: str, name: str = "Contracts") -> str:
        """One with a document that is read."""
        async with self.tabs.engine.workspaces.open(who) as workspace:
            library = await workspace.libraries.create(name)
            record = await workspace.libraries.add(library.id, CONTRACT, "crane.md")
            job = self.tabs.engine.services.intake.jobs.get(record.id)
            if job is not None and job.task is not None:
                await asyncio.wait({job.task})
            return library.id

    def tab(self, session: str = "one") -> View:
        return self.tabs.tab(session, self.jan)

    async def ask(self, view: View, question: str) -> str:
        """What the model was given for the answer."""
        before = len(self.model.requests)
        await start(self.tabs.desk, view, question, [])
        live = self.tabs.engine.runs.of(self.jan).live(view.conversation_id)
        if live is not None:
            await live.wait()
        return "\n".join(str(message) for one in self.model.requests[before:] for message in one.messages)


@pytest.fixture
async def lent(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Lent]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", titles=False, check_claims=False)
    model = ScriptedModel(*("So it is." for _ in range(5)))
    async with Engine(settings, model=model) as engine:
        ids: list[str] = []
        for name, role in (("Mara", "owner"), ("Jan", "member")):
            ids.append((await engine.people.store.add(new_person(name, checked_role(role)), "terminal")).id)
        group = await engine.groups.make(None, "Research")
        for one in ids:
            await engine.groups.add(None, group.id, one)
        yield Lent(Tabs(engine, Uploads(tmp_path / "tmp", 1_000_000)), model, group.id, *ids)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr("gradio.Warning", lambda text, duration: texts.append(text))
    return texts


def kept(frame: Frame) -> dict[str, Any]:
    """What the page of a tab is told to keep with the draft."""
    found = re.search(r'data-chosen="([^"]*)"', frame.panels["status"])
    return json.loads(unescape(found[1])) if found else {}


async def test_a_library_that_somebody_shares_is_switched_on_in_a_new_chat_and_answers_its_first_question(
    lent: Lent,
) -> None:
    library = await lent.library(lent.mara)
    await lent.lend("library", library)
    view = lent.tab()
    await lent.tabs.act(view, do="use", id=library, on=True)
    frame = await lent.tabs.over(view)
    assert f'data-uses="{library}"' in unescape(frame.panels["top"])
    again = lent.tab("loaded again")
    await lent.tabs.act(again, do="chosen", chosen=kept(frame))
    assert again.libraries == (library,)
    assert "740 crowns" in await lent.ask(again, "What does the harbour of Brenn pay for each crane?")


async def test_one_that_was_taken_back_meanwhile_can_be_switched_off_in_a_new_chat(lent: Lent) -> None:
    library = await lent.library(lent.mara)
    await lent.lend("library", library)
    view = lent.tab()
    await lent.tabs.act(view, do="use", id=library, on=True)
    await lent.take_back("library", library)
    await lent.tabs.act(view, do="use", id=library, on=False)
    assert view.libraries == ()


async def test_a_persona_and_a_model_that_somebody_shares_are_chosen_for_a_new_chat(
    lent: Lent, said: list[str]
) -> None:
    async with lent.tabs.engine.workspaces.open(lent.mara) as mara:
        persona = await mara.steering.personas.save(Persona("", "Pirate", "P", Level("Speak as a pirate.")))
        await mara.models.save(Draft("compatible", "http://127.0.0.1:9/v1", "big-one", "sk-1234"), use=False)
    await lent.lend("persona", persona.id)
    await lent.lend("model", "compatible")
    (model,) = await lent.tabs.engine.stores.of(lent.jan).lent.models()
    view = lent.tab()
    await lent.tabs.act(view, do="persona", id=persona.id)
    await lent.tabs.act(view, do="model", service=model.name, model=model.service.model)
    again = lent.tab("loaded again")
    await lent.tabs.act(again, do="chosen", chosen=kept(await lent.tabs.over(view)))
    assert (again.model, said) == (ModelName(model.name, "big-one"), [])
    async with lent.tabs.engine.workspaces.open(lent.jan) as jan:
        steering = await jan.steering.of_draft(again.draft, None)
    assert steering.persona is not None
    assert steering.persona.name == "Pirate"


async def test_libraries_of_one_name_are_told_apart_by_who_shares_them(lent: Lent) -> None:
    own, theirs = await lent.library(lent.jan), await lent.library(lent.mara)
    await lent.lend("library", theirs)
    view = lent.tab()
    await lent.tabs.act(view, do="use", id=theirs, on=True)
    for _ in ("new", "with a message"):
        panels = {name: unescape(one) for name, one in (await lent.tabs.over(view)).panels.items()}
        offered = re.findall(r"<li data-id=\"([\w-]+)\" data-on=\"(\w+)\">(.*?)</li>", panels["toolbar"])
        assert offered == [(own, "false", "Contracts"), (theirs, "true", "Contracts · Mara")]
        assert 'title="Contracts · Mara"' in panels["toolbar"]
        assert "Answers also from: Contracts · Mara" in panels["top"]
        await lent.ask(view, "What does the harbour of Brenn pay for each crane?")


@pytest.mark.parametrize(
    ("how", "began"),
    [
        ("taken back", False),
        ("taken back", True),
        ("deleted", False),
        ("deleted", True),
        ("taken back, then deleted", True),
    ],
)
async def test_a_library_that_is_taken_back_or_deleted_says_so_on_the_page_until_it_is_switched_off(
    lent: Lent, how: str, began: bool
) -> None:
    library = await lent.library(lent.mara)
    await lent.lend("library", library)
    view = lent.tab()
    await lent.tabs.act(view, do="use", id=library, on=True)
    if began:
        await lent.ask(view, "What does the harbour of Brenn pay for each crane?")
    told = "A library of this conversation is not shared with you any more"
    assert told not in unescape((await lent.tabs.over(view)).panels["toolbar"])
    await lent.end(how, library)
    view.wake_up(stale=True)
    frame = await lent.tabs.over(view)
    assert f'data-gone="{told}; ' in unescape(frame.panels["toolbar"])
    if not began:
        again = lent.tab("loaded again")
        await lent.tabs.act(again, do="chosen", chosen=kept(frame))
        assert told in unescape((await lent.tabs.over(again)).panels["toolbar"])
    chinese = lent.tabs.tab("chinese", lent.jan, view.conversation_id, "zh")
    chinese.libraries = view.libraries
    assert "不再与你共享" in unescape((await lent.tabs.over(chinese)).panels["toolbar"])
    await lent.tabs.act(view, do="use", id=library, on=False)
    assert told not in unescape((await lent.tabs.over(view)).panels["toolbar"])
    assert "740 crowns" not in (await lent.ask(view, "And for each crane?")).rpartition("And for each crane?")[2]


async def test_one_of_the_folder_that_is_taken_back_is_switched_off_for_the_conversation_alone(lent: Lent) -> None:
    library = await lent.library(lent.mara)
    await lent.lend("library", library)
    view = lent.tab()
    async with lent.tabs.engine.workspaces.open(lent.jan) as jan:
        folder = await jan.folders.create("Harbours")
        await jan.steering.change_folder(folder.id, {"libraries": [library]})
        await lent.tabs.act(view, do="new", folder=folder.id)
        await lent.ask(view, "What does the harbour of Brenn pay for each crane?")
        await lent.take_back("library", library)
        assert list(await jan.libraries.lost_by(view.conversation_id)) == [library]
        await lent.tabs.act(view, do="use", id=library, on=False)
        assert list(await jan.libraries.lost_by(view.conversation_id)) == []
        await lent.lend("library", library)
        assert list(await jan.libraries.used_by(view.conversation_id)) == []


async def test_a_conversation_that_is_deleted_while_its_page_is_read_is_no_error(
    lent: Lent, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = lent.tab()
    await lent.ask(view, "What does the harbour of Brenn pay for each crane?")
    conversations = lent.tabs.engine.stores.of(lent.jan).conversations

    async def then_gone(*_: Any) -> None:
        await conversations.delete(view.conversation_id)

    monkeypatch.setattr(OwnerJudging, "states", then_gone)  # the last that is read of it
    assert "crane" in str((await lent.tabs.over(view)).chat)


async def test_ones_own_library_that_is_deleted_is_missed_by_nobody(lent: Lent) -> None:
    library = await lent.library(lent.jan)
    view, kept_open = lent.tab(), lent.tab("new chat")
    for one in (view, kept_open):
        await lent.tabs.act(one, do="use", id=library, on=True)
    await lent.ask(view, "What does the harbour of Brenn pay for each crane?")
    async with lent.tabs.engine.workspaces.open(lent.jan) as jan:
        await jan.libraries.delete(library)
    for one in (view, kept_open):
        one.wake_up(stale=True)
        assert "data-gone" not in (await lent.tabs.over(one)).panels["toolbar"]


async def test_the_page_of_a_document_whose_library_is_taken_back_says_that_it_is_not_shared_any_longer(
    lent: Lent,
) -> None:
    library = await lent.library(lent.mara)
    await lent.lend("library", library)
    view = lent.tab()
    await lent.tabs.act(view, do="use", id=library, on=True)
    await lent.ask(view, "What does the harbour of Brenn pay for each crane?")
    reply = (await lent.tabs.engine.stores.of(lent.jan).conversations.thread(view.conversation_id))[-1]
    await lent.take_back("library", library)
    await lent.tabs.act(view, do="cite", message=reply.id, n=1)
    assert "is not shared with you any longer" in unescape(view.evidence), view.evidence
