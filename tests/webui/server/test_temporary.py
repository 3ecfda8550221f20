"""A temporary conversation is answered as any other, is neither listed nor found, and is gone after a day."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest

from core.engine import Engine
from core.errors import NotFoundError, StorageError
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from core.workspace.clearing import delete_everything
from core.workspace.conversation import Conversation
from core.workspace.temporary import STAYS
from core.workspace.workspace import Workspace
from tests.webui.server.tabs_of_engine import Tabs
from webui.handlers.send import start
from webui.uploads import Uploads
from webui.views import View

pytestmark = pytest.mark.anyio


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(*("Yes." for _ in range(20)))


@pytest.fixture
async def tabs(model: ScriptedModel, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Tabs]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", titles=True)
    async with Engine(settings, model=model) as engine:
        engine.services.beside._idle = 0.01  # pyright: ignore[reportPrivateUsage]
        await engine.stores.of(Tabs.owner).conversations.ensure_owner()
        await engine.toolbox.of(Tabs.owner).choices.switch("storage", on=True)
        yield Tabs(engine, Uploads(tmp_path / "tmp", 1_000_000))


async def asked(tabs: Tabs, view: View, text: str = "Where is the harbour?", files: tuple[Path, ...] = ()) -> None:
    await start(tabs.desk, view, text, [(file, file.name) for file in files])
    await tabs.over(view)


async def begun(tabs: Tabs, name: str = "one") -> View:
    """A tab with a temporary conversation in which something was said."""
    view = tabs.tab(name)
    await tabs.act(view, do="temporary", on=True)
    await asked(tabs, view)
    return view


async def listed(tabs: Tabs) -> list[str]:
    return [one.id for one in await tabs.engine.stores.of(tabs.owner).conversations.list()]


async def found(tabs: Tabs, text: str) -> list[str]:
    async with tabs.engine.workspaces.open(tabs.owner) as workspace:
        return [one.conversation.id for one in (await workspace.stores.search.find(text)).conversations]


def tools_told(model: ScriptedModel) -> set[str]:
    asked = [one for one in model.requests if one.purpose != "title"]
    return {str(function["name"]) for function in asked[-1].functions}


async def test_it_is_answered_and_comes_back_after_a_reload_but_is_neither_listed_nor_found(tabs: Tabs) -> None:
    view = await begun(tabs)
    usual = tabs.tab("two")
    await asked(tabs, usual)
    assert await listed(tabs) == [usual.conversation_id]
    assert await found(tabs, "harbour") == [usual.conversation_id]
    assert await found(tabs, "") == [usual.conversation_id]
    frame = await tabs.over(tabs.tab("three", conversation=view.conversation_id))
    assert "Where is the harbour?" in unescape(str(frame.chat))
    assert "Keep this chat" in frame.panels["temporary"]
    assert view.conversation_id not in frame.panels["history"]
    assert (await tabs.over(usual)).panels["temporary"] == ""


async def test_no_model_is_asked_for_a_title_and_no_notes_are_offered(tabs: Tabs, model: ScriptedModel) -> None:
    beside = tabs.engine.services.beside
    view = await begun(tabs)
    await asyncio.gather(*beside._tasks)  # pyright: ignore[reportPrivateUsage]
    assert len(model.requests) == 1
    assert "storage" not in tools_told(model)
    assert "calculator" in tools_told(model)
    await tabs.act(view, do="steer", change={"tools": {"storage": True}})
    await asked(tabs, view, "And now?")
    assert "storage" not in tools_told(model)


async def test_before_the_first_question_it_is_switched_on_and_off(tabs: Tabs, model: ScriptedModel) -> None:
    view = tabs.tab()
    assert 'data-do="temporary-on"' in (await tabs.over(view)).panels["top"]
    await tabs.act(view, do="temporary", on=True)
    frame = await tabs.over(view)
    assert 'data-do="temporary-off"' in frame.panels["top"]
    assert "Turn off" in frame.panels["temporary"]
    await tabs.act(view, do="temporary", on=False)
    assert (await tabs.over(view)).panels["temporary"] == ""
    await asked(tabs, view)
    assert await listed(tabs) == [view.conversation_id]
    assert "storage" in tools_told(model)
    assert "temporary-" not in (await tabs.over(view)).panels["top"]


async def test_one_that_is_kept_is_as_any_other(tabs: Tabs, model: ScriptedModel) -> None:
    view = await begun(tabs)
    await tabs.act(view, do="temporary", on=False)
    assert await listed(tabs) == [view.conversation_id]
    assert await found(tabs, "harbour") == [view.conversation_id]
    assert (await tabs.over(view)).panels["temporary"] == ""
    assert await tabs.engine.chores.temporary.sweep(time.time() + 2 * STAYS) == 0
    await asked(tabs, view, "And now?")
    assert "storage" in tools_told(model)


async def test_a_usual_one_cannot_be_made_temporary_any_more(tabs: Tabs) -> None:
    view = tabs.tab()
    await asked(tabs, view)
    await tabs.act(view, do="temporary", on=True)
    assert await listed(tabs) == [view.conversation_id]


async def test_it_goes_a_day_after_its_last_message_with_its_files_and_no_other_goes(
    tabs: Tabs, tmp_path: Path
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("The harbour is in the north.")
    view, usual = tabs.tab(), tabs.tab("two")
    await tabs.act(view, do="temporary", on=True)
    await asked(tabs, view, files=(note,))
    await asked(tabs, usual)
    sweep = tabs.engine.chores.temporary.sweep
    assert await sweep(time.time() + STAYS - 60) == 0
    assert await sweep(time.time() + STAYS + 60) == 1
    stores = tabs.engine.stores.of(tabs.owner)
    with pytest.raises(NotFoundError):
        await stores.conversations.get(view.conversation_id)
    assert [one for one in (tabs.engine.settings.home / "files").rglob("*") if one.is_file()] == []
    assert await listed(tabs) == [usual.conversation_id]
    assert await sweep(time.time() + STAYS + 60) == 0


async def test_one_that_cannot_be_deleted_keeps_no_other_one(tabs: Tabs, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, other = await begun(tabs, "one"), await begun(tabs, "two")
    remove = Conversation.delete

    async def fails(self: Conversation) -> None:
        if self.id == broken.conversation_id:
            raise StorageError("Its folder cannot be used.")
        await remove(self)

    monkeypatch.setattr(Conversation, "delete", fails)
    assert await tabs.engine.chores.temporary.sweep(time.time() + STAYS + 60) == 1
    stores = tabs.engine.stores.of(tabs.owner)
    with pytest.raises(NotFoundError):
        await stores.conversations.get(other.conversation_id)
    monkeypatch.undo()
    assert await tabs.engine.chores.temporary.sweep(time.time() + STAYS + 60) == 1


async def test_a_branch_of_it_is_temporary_too_and_deleting_everything_takes_both(tabs: Tabs) -> None:
    view = await begun(tabs)
    thread = await tabs.engine.stores.of(tabs.owner).conversations.thread(view.conversation_id)
    await tabs.act(view, do="fork", id=thread[-1].id)
    assert await listed(tabs) == []
    async with tabs.engine.workspaces.open(tabs.owner) as workspace:
        assert len(await everything(workspace)) == 2
        await delete_everything(workspace)
        assert await everything(workspace) == []


async def everything(workspace: Workspace) -> list[str]:
    return [one.id for one in await workspace.conversations.list(temporary=True)]


async def test_all_conversations_in_an_archive_are_those_that_stay(tabs: Tabs) -> None:
    view = await begun(tabs)
    usual = tabs.tab("two")
    await asked(tabs, usual)
    async with tabs.engine.workspaces.open(tabs.owner) as workspace:
        assert await workspace.taking.chosen([]) == [usual.conversation_id]
        assert await workspace.taking.chosen([view.conversation_id]) == [view.conversation_id]
