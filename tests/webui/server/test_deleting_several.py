"""Several conversations deleted at once: gone after a moment, kept when that is taken back, and nobody else's."""

from __future__ import annotations

import asyncio
from json import dumps
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from webui.handlers.act import act
from webui.handlers.deleting import Deletions
from webui.handlers.desk import Desk
from webui.views import View, Views
from webui.words import Words

pytestmark = pytest.mark.anyio


async def test_they_are_away_at_once_gone_after_a_moment_and_come_back_where_that_is_wanted(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home", code="off")
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine:
        stores = engine.stores.of("alice").conversations
        kept, gone, archived = [(await stores.create(name)).id for name in ("kept", "gone", "archived")]
        theirs = (await engine.stores.of("bob").conversations.create("theirs")).id
        await stores.archive([archived])
        changed = asyncio.Event()
        engine.on_change(lambda _owner, _talk: changed.set())
        uploads = cast("Any", SimpleNamespace())
        desk = Desk(engine, uploads, Views(Words.of), Deletions(0.3))
        mine, other = View("alice", Words("en")), View("bob", Words("en"))
        await desk_acts(desk, mine, "delete_all", [kept, gone, archived, theirs, "nothing"])
        assert (await stores.get(gone)).archived_at is not None
        assert (await engine.stores.of("bob").conversations.get(theirs)).archived_at is None
        await desk_acts(desk, other, "keep", [gone])
        await desk_acts(desk, mine, "keep", [kept, archived])
        assert (await stores.get(kept)).archived_at is None
        assert (await stores.get(archived)).archived_at is not None, "it was in the archive before"
        async with asyncio.timeout(30):
            while len(await stores.list()) > 2:
                await changed.wait()
                changed.clear()
        assert {one.id for one in await stores.list()} == {kept, archived}
        for odd in (None, "x", {"a": 1}, [3, None]):
            await act(desk, mine, dumps({"do": "delete_all", "ids": odd}))
        assert len(await stores.list()) == 2


async def desk_acts(desk: Desk, view: View, what: str, ids: list[str]) -> None:
    await act(desk, view, dumps({"do": what, "ids": ids}))
