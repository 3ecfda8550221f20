"""From a question to the open quotation: the web is searched by an owner's engine, and the mark leads to the result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from core.engine import Engine
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from webui.handlers.act import act
from webui.handlers.desk import Desk
from webui.handlers.send import start
from webui.uploads import Uploads
from webui.views import View, Views
from webui.words import Words

pytestmark = pytest.mark.anyio

SODIUM = "Sodium boils at 883 degrees."
RESULTS = [
    {
        "url": "https://water.example/",
        "title": "Water",
        "content": "Water boils at 100 degrees. ![x](http://evil/?q=1)",
    },
    {"url": "https://metals.example/sodium", "title": "Sodium", "content": SODIUM},
]


@pytest.fixture
async def searching(anyio_backend: str) -> AsyncIterator[str]:
    """The address of a server that speaks as SearXNG does."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps({"results": RESULTS}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    await server.wait_closed()


async def asked(engine: Engine, owner: str, address: str, folder: Path) -> tuple[Desk, View, str]:
    """The desk, the tab and the reply, after a question was asked with web search switched on."""
    request: Any = SimpleNamespace(session_hash="one", username=owner, headers={})
    views = Views(Words.of)
    view, desk = views.of(request), Desk(engine, Uploads(folder, 1_000_000), views)
    await engine.toolbox.of(owner).choices.switch("web_search", on=True)
    await engine.toolbox.of(owner).choices.choose_engine("searxng", address, None)
    await start(desk, view, "When does sodium boil?", [])
    async with asyncio.timeout(30):
        if run := engine.runs.live(view.conversation_id):
            async for _ in run.log.follow():
                pass
    thread = await engine.stores.of(owner).conversations.thread(view.conversation_id)
    return desk, view, thread[-1].id


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    model = ScriptedModel(Reply(calls=[("web_search", {"query": "sodium"})]), SODIUM)
    async with Engine(Settings.load(home=tmp_path / "home", retrieval="keyword"), model=model) as opened:
        yield opened


async def replied(engine: Engine, owner: str, message_id: str) -> Any:
    return await engine.runs.of(owner).reply(await engine.stores.of(owner).conversations.message(message_id))


async def test_a_mark_leads_to_the_words_of_a_search_result_and_its_host(
    engine: Engine, searching: str, tmp_path: Path
) -> None:
    desk, view, message_id = await asked(engine, LOCAL_OWNER, searching, tmp_path / "up")
    assert (await replied(engine, LOCAL_OWNER, message_id)).blocks[-1].text == f"{SODIUM} [2]"
    panel = LexborHTMLParser(await act(desk, view, json.dumps({"do": "cite", "message": message_id, "n": 2})))
    assert SODIUM in panel.css(".p-here .p-quote")[0].text()
    (link,) = panel.css(".p-web a")
    assert link.attributes["href"] == "https://metals.example/sodium"
    assert "metals.example" in panel.css(".p-here .p-where")[0].text()
    assert not panel.css("img")  # P1: what a result says is never loaded


async def test_s9_who_does_not_own_the_machine_reaches_nothing_on_its_network(
    engine: Engine, searching: str, tmp_path: Path
) -> None:
    _, _, message_id = await asked(engine, "bob", searching, tmp_path / "up")
    reply = await replied(engine, "bob", message_id)
    (result,) = [block.result for block in reply.blocks if getattr(block, "result", None)]
    assert "may not be called" in result.get_text_content()
    assert reply.passages == []
