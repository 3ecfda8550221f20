"""What is chosen for a conversation that is not there yet is told to the page, which gives it back with the draft."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.models.model_name import INSTALLED, ModelName
from core.reading.attachments import untaken
from core.settings import Settings
from core.storage.conversations import TEMPORARY
from core.testing.scripted_model import ScriptedModel
from core.workspace.levels import Level
from core.workspace.personas import Persona
from tests.webui.server.tabs_of_engine import Tabs
from webui.handlers.send import start
from webui.panels.chosen import chosen_before
from webui.uploads import Uploads
from webui.views import View

pytestmark = pytest.mark.anyio


@pytest.fixture
async def tabs(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Tabs]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword")
    async with Engine(settings, model=ScriptedModel(*("Yes." for _ in range(5)))) as engine:
        await engine.stores.of(Tabs.owner).conversations.ensure_owner()
        yield Tabs(engine, Uploads(tmp_path / "tmp", 1_000_000))


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr("gradio.Warning", lambda text, duration: texts.append(text))
    return texts


async def told(tabs: Tabs, view: View) -> dict[str, Any]:
    """What the page of a tab is told to keep."""
    found = re.search(r'data-chosen="([^"]*)"', (await tabs.over(view)).panels["status"])
    return json.loads(unescape(found[1])) if found else {}


async def pirate(tabs: Tabs) -> str:
    async with tabs.engine.workspaces.open(tabs.owner) as workspace:
        level = Level("Speak as a pirate.")
        return (await workspace.steering.personas.save(Persona("", "Pirate", "P", level))).id


async def library(tabs: Tabs, name: str) -> str:
    async with tabs.engine.workspaces.open(tabs.owner) as workspace:
        return (await workspace.libraries.create(name)).id


async def folder_with(tabs: Tabs, *libraries: str) -> str:
    async with tabs.engine.workspaces.open(tabs.owner) as workspace:
        folder = (await workspace.folders.create("Harbour")).id
        await workspace.steering.change_folder(folder, {"libraries": libraries})
        return folder


async def all_chosen(tabs: Tabs, view: View) -> dict[str, Any]:
    """Everything that can be chosen before the first question, and what the page keeps of it."""
    await tabs.act(view, do="new", folder=await folder_with(tabs, await library(tabs, "Of the folder")))
    await tabs.act(view, do="persona", id=await pirate(tabs))
    await tabs.act(view, do="temporary", on=True)
    await tabs.act(view, do="switch", what="web", on=True)
    await tabs.act(view, do="steer", change={"instructions": "Be brief.", "parameters": {"temperature": 0.5}})
    await tabs.act(view, do="use", id=await library(tabs, "Charts"), on=True)
    await tabs.act(view, do="model", service="", model="")
    await tabs.act(view, do="compare", service="", model="", on=True)
    await tabs.act(view, do="untaken", names=["040.txt", "041.txt"], more=3)
    return await told(tabs, view)


def everything_of(view: View) -> tuple[Any, ...]:
    return view.draft, view.model, view.libraries, view.folder


async def test_all_that_was_chosen_is_there_again_when_the_page_was_loaded_again(tabs: Tabs, said: list[str]) -> None:
    before = tabs.tab()
    kept = await all_chosen(tabs, before)
    again = tabs.tab("loaded again")
    await tabs.act(again, do="chosen", chosen=kept)
    assert everything_of(again) == everything_of(before)
    assert again.draft[TEMPORARY] is True
    assert await told(tabs, again) == kept
    assert said == []


async def test_all_of_it_is_there_again_on_coming_back_to_the_new_chat_but_for_the_folder_that_was_left(
    tabs: Tabs,
) -> None:
    view, other = tabs.tab(), tabs.tab("other")
    await start(tabs.desk, other, "Another talk", [])
    kept = await all_chosen(tabs, view)
    draft, model, libraries, folder = everything_of(view)
    await tabs.act(view, do="open", id=other.conversation_id)
    await tabs.act(view, do="new", chosen=kept)
    assert everything_of(view) == (draft, model, libraries[1:], "")
    await tabs.act(view, do="open", id=other.conversation_id)
    await tabs.act(view, do="new", folder=folder, chosen=kept)
    assert everything_of(view) == (draft, model, libraries, folder)


async def test_which_files_were_too_many_is_known_after_a_reload_and_forgotten_with_them(tabs: Tabs) -> None:
    before = tabs.tab()
    await tabs.act(before, do="untaken", names=["040.txt", "041.txt"], more=3)
    kept = await told(tabs, before)
    assert kept["untaken"] == {"names": ["040.txt", "041.txt"], "more": 3}
    again = tabs.tab("loaded again")
    await tabs.act(again, do="chosen", chosen=kept)
    left = untaken(again.draft)
    assert left is not None
    assert (left.name, left.total) == ("040.txt, 041.txt, …", 5)
    await tabs.act(again, do="untaken", names=[])
    assert "untaken" not in await told(tabs, again)
    odd_ones: tuple[object, ...] = (1, {"names": 1}, {"names": [1], "more": -1}, {"names": ["a"] * 90_000, "more": "x"})
    for wrong in (*odd_ones, {"names": ["a"], "more": True}):
        odd = tabs.tab(f"odd {wrong!s:.20}")
        await tabs.act(odd, do="chosen", chosen={**kept, "untaken": wrong})
        some = untaken(odd.draft)
        assert some is None or some.total == 1


async def test_a_new_chat_of_which_nothing_was_kept_is_as_any_other(tabs: Tabs) -> None:
    view = tabs.tab()
    kept = await all_chosen(tabs, view)
    await tabs.act(view, do="new")
    assert everything_of(view) == ({}, None, (), "")
    assert set(await told(tabs, view)) == {"of"}
    assert (await told(tabs, view))["of"] != kept["of"]


async def test_a_question_that_is_sent_right_after_a_reload_goes_into_a_temporary_conversation(tabs: Tabs) -> None:
    before = tabs.tab()
    await tabs.act(before, do="temporary", on=True)
    again = tabs.tab("loaded again")
    await tabs.act(again, do="chosen", chosen=await told(tabs, before))
    await start(tabs.desk, again, "A secret", [])
    assert await tabs.engine.stores.of(tabs.owner).conversations.list() == []


async def test_what_cannot_be_had_any_more_is_said_and_the_rest_is_chosen_all_the_same(
    tabs: Tabs, said: list[str]
) -> None:
    kept = {
        "of": "page",
        "temporary": True,
        "persona": "gone",
        "change": {"instructions": "Be brief.", "parameters": {"temperature": 900}},
        "second": {"service": "gone", "model": "x"},
        "libraries": ["gone", 7],
        "folder": "gone",
    }
    view = tabs.tab()
    await tabs.act(view, do="chosen", chosen=kept)
    assert everything_of(view) == ({TEMPORARY: True, "instructions": "Be brief."}, None, (), "")
    assert len(said) == 3
    assert await told(tabs, view) == {"of": "page", "temporary": True, "change": {"instructions": "Be brief."}}


async def test_a_model_that_is_gone_stays_chosen_so_that_no_other_is_sent_what_was_written_for_it(tabs: Tabs) -> None:
    view = tabs.tab()
    await tabs.act(view, do="chosen", chosen={"of": "page", "model": {"service": "gone", "model": "x"}})
    assert view.model == ModelName("gone", "x")


async def test_what_was_chosen_here_before_the_page_said_what_it_kept_holds_too(tabs: Tabs) -> None:
    view = tabs.tab()
    await tabs.act(view, do="temporary", on=True)
    await tabs.act(view, do="model", service="", model="")
    await tabs.act(view, do="chosen", chosen={"of": "page", "change": {"instructions": "Be brief."}})
    assert view.draft == {TEMPORARY: True, "instructions": "Be brief."}
    assert view.model == INSTALLED


async def test_what_is_said_once_more_or_beside_a_conversation_changes_nothing(tabs: Tabs) -> None:
    view = tabs.tab()
    await tabs.act(view, do="chosen", chosen={"of": "page", "temporary": True})
    await tabs.act(view, do="temporary", on=False)
    await tabs.act(view, do="chosen", chosen={"of": "page", "temporary": True})
    assert view.draft == {}
    await start(tabs.desk, view, "A question", [])
    shown = view.conversation_id
    await tabs.act(view, do="chosen", chosen={"of": "page", "temporary": True})
    assert view.conversation_id == shown
    assert chosen_before(view) == ""
