"""What was always allowed in a chat stands in the dialog about tools, and can be taken back there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from core.engine import Engine
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.tabs_of_engine import Tabs
from webui.context import WebContext
from webui.handlers.send import send
from webui.handlers.tools import ToolRoutes
from webui.uploads import Uploads
from webui.words import Words

pytestmark = pytest.mark.anyio
WRITE = Reply(calls=[("storage", {"operate": "put", "key": "note", "value": "one"})])


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[Tabs]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword")
    async with Engine(settings, model=ScriptedModel(WRITE, "Done.", WRITE, "Done.")) as engine:
        await engine.stores.of(Tabs.owner).conversations.ensure_owner()
        await engine.toolbox.of(Tabs.owner).choices.switch("storage", on=True)
        yield Tabs(engine, Uploads(tmp_path / "tmp", 1_000_000))


def dialog(house: Tabs, owner: str, language: str = "en") -> httpx.AsyncClient:
    """The requests of the dialog, by one reader."""
    routes = Starlette(routes=ToolRoutes(WebContext(house.engine, house.engine.settings, Words.of)).table())

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await routes({**scope, "owner": owner}, receive, send)

    headers = {"accept-language": language}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page", headers=headers)


def allowed(answer: httpx.Response) -> list[Any]:
    return answer.json()["approval"]["allowed"]


async def test_what_is_always_allowed_in_a_chat_is_shown_and_taken_back(house: Tabs) -> None:
    tab = house.tab()
    await send(house.desk, tab, {"text": "Keep a note.", "files": []})
    await house.seen(tab, "p-asks")
    run = house.engine.runs.live(tab.conversation_id)
    assert run is not None
    await house.act(tab, do="allow", call=run.reply().asking[0].call_id, always=True)
    await house.over(tab)
    await house.engine.stores.of("b-mallory").conversations.ensure_owner()
    here = {"conversation": tab.conversation_id}
    async with dialog(house, Tabs.owner) as own, dialog(house, "b-mallory") as other:
        assert allowed(await own.get("/tools/state", params=here)) == [{"id": "storage", "label": "Notes"}]
        assert allowed(await own.get("/tools/state")) == []
        assert allowed(await other.get("/tools/state", params=here)) == []
        stolen = await other.post("/tools/take_back", json={**here, "tool": "storage"})
        assert "failed" in stolen.json()
        assert len(allowed(await own.get("/tools/state", params=here))) == 1
        answer = await own.post("/tools/take_back", json={**here, "tool": "storage"})
        assert (allowed(answer), answer.json()["said"]) == ([], "Parlour asks for this tool again.")
    await send(house.desk, tab, {"text": "Another.", "files": []})
    await house.seen(tab, "p-asks")
