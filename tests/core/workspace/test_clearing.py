"""Everything is deleted: what was said, added and written down, also while a reply is being written."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.engine import Engine
from core.settings import Settings
from core.storage.space import UsedSpace
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.clearing import delete_everything

pytestmark = pytest.mark.anyio


async def test_all_of_one_owner_goes_and_nothing_of_another(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home", code="off")
    slow = ScriptedModel(Reply("Slow. " * 400, pace=0.02))
    async with (
        Engine(settings, model=slow) as engine,
        engine.workspaces.open("alice") as mine,
        engine.workspaces.open("bob") as other,
    ):
        theirs = await other.conversations.create("Theirs")
        await other.libraries.create("Theirs")
        talk = await mine.conversations.create("Mine")
        library = await mine.libraries.create("Papers")
        await mine.libraries.add(library.id, b"# A paper\n\nIt says something.", "paper.md")
        await mine.folders.put([talk.id], (await mine.folders.create("Work")).id)
        await mine.preferences.change("about_me", "Somebody")
        await mine.tools.notes.store.put("dates", "As 22 Nov 2026.")
        run = await mine.conversation(talk.id).ask("Go on", [(await mine.files.put("a.txt", b"All of it.")).id])
        assert await delete_everything(mine) == 1
        assert await run.wait() != "complete"
        assert await mine.conversations.list() == []
        assert await mine.libraries.list() == []
        assert await mine.folders.list() == []
        assert await mine.stores.space.used() == UsedSpace()
        assert [one.key for one in await mine.tools.notes.list()] == ["dates"]
        assert (await mine.preferences.get()).about_me == "Somebody"
        assert await delete_everything(mine, notes=True) == 0
        assert await mine.tools.notes.list() == []
        assert [one.id for one in await other.conversations.list()] == [theirs.id]
        assert len(await other.libraries.list()) == 1
