"""A conversation as a file over HTTP, and what no file may hold: a key that its owner typed on the page."""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.agents.assistant import Assistant
from core.engine import Engine
from core.export.schema import read_export
from core.mcp.settings import ServerSettings
from core.messages.message import Message
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from core.tools.from_function import tool
from core.workspace.program import Program
from tests.webui.server.served_app import Served, served

pytestmark = pytest.mark.anyio


@pytest.fixture
async def app(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    settings = Settings(home=tmp_path, code="off", api_key="plain-words-for-a-key")  # type: ignore[arg-type]
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine, served(engine, settings) as app:
        yield app


async def test_the_owner_gets_a_file_and_nobody_else(app: Served) -> None:
    stores = app.engine.stores
    kept = await stores.of("local").conversations.create("去东京的旅行 🗼 / CON\u202e")
    await stores.of("local").conversations.add_message(kept.id, "user", [Message("user", "Hello")], None)
    other = await stores.of("somebody").conversations.create("Theirs")
    async with httpx.AsyncClient(base_url=app.address, timeout=60) as browser:
        for form, kind in (
            ("md", "text/markdown; charset=utf-8"),
            ("html", "text/html; charset=utf-8"),
            ("pdf", "application/pdf"),
            ("json", "application/json"),
        ):
            answer = await browser.get(f"/conversations/{kept.id}/export", params={"as": form})
            assert answer.status_code == 200
            assert answer.headers["content-type"] == kind
            assert answer.headers["content-disposition"] == (
                f"attachment; filename=\"_ _ CON.{form}\"; filename*=UTF-8''"
                f"%E5%8E%BB%E4%B8%9C%E4%BA%AC%E7%9A%84%E6%97%85%E8%A1%8C%20%F0%9F%97%BC%20CON.{form}"
            )
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
        assert read_export(answer.text).turns[0].messages[0].content == "Hello"
        assert (await browser.get(f"/conversations/{other.id}/export")).status_code == 404
        assert (await browser.get("/conversations/none/export?as=md")).status_code == 404
        assert (await browser.get(f"/conversations/{kept.id}/export?as=doc")).status_code == 400
        chinese = await browser.get(f"/conversations/{kept.id}/export", headers={"accept-language": "zh-CN"})
        assert "由 Parlour 导出" in chinese.text


async def test_many_are_handed_out_as_one_archive_and_none_of_somebody_else(app: Served) -> None:
    mine, other = app.engine.stores.of("local"), app.engine.stores.of("somebody")
    folder = await mine.folders.create("Trips")
    ids = [(await mine.conversations.create(f"Talk {number}")).id for number in range(3)]
    theirs = await other.conversations.create("Theirs")
    await mine.folders.put(ids[:1], folder.id)
    async with httpx.AsyncClient(base_url=app.address) as browser:

        async def names(asked: str) -> list[str]:
            answer = await browser.get(f"/conversations/export?{asked}")
            assert answer.headers["content-type"] == "application/zip"
            return sorted(zipfile.ZipFile(BytesIO(answer.content)).namelist())

        assert await names("as=html") == ["Talk 0.html", "Talk 1.html", "Talk 2.html"]
        assert await names(f"as=md&id={ids[1]}&id={theirs.id}") == ["Talk 1.md"]
        assert await names(f"as=json&folder={folder.id}") == ["Talk 0.json"]
        for form in ("json", "bundle"):
            answer = await browser.get(f"/conversations/export?as={form}&folder={folder.id}")
            assert f'filename="{folder.name}.zip"' in answer.headers["content-disposition"]
        assert (await browser.get("/conversations/export?as=html&folder=none")).status_code == 404
        assert (await browser.get("/conversations/export?as=doc")).status_code == 400


async def test_a_bundle_comes_in_over_the_page_with_its_progress(app: Served) -> None:
    stores = app.engine.stores.of("local")
    talk = await stores.conversations.create("Talk")
    await stores.conversations.add_message(talk.id, "user", [Message("user", "Hello")], None)
    async with httpx.AsyncClient(base_url=app.address) as browser:
        answer = await browser.get(f"/conversations/{talk.id}/export?as=bundle")
        assert answer.headers["content-disposition"].endswith("filename*=UTF-8''Talk.zip")
        made = answer.content

        async def brought(data: bytes, **headers: str) -> httpx.Response:
            files = {"files": ("a.zip", data)}
            return await browser.post("/conversations/import", files=files, headers=headers)

        assert (await brought(made)).status_code == 400  # another site's page could send this
        again = json.loads((await brought(made, **{"x-parlour": "1"})).text.splitlines()[-1])
        here = "Nothing new came in: 1 conversation was here already."
        assert again == {"done": here, "left": [], "open": talk.id}
        await stores.conversations.delete(talk.id)
        told = [json.loads(line) for line in (await brought(made, **{"x-parlour": "1"})).text.splitlines()]
        assert [*told[0]] == ["going"]
        assert all(0 < one["share"] <= 1 for one in told[1:-1])
        fresh = told[-1]["open"]
        assert fresh == talk.id
        assert told[-1] == {
            "done": "1 conversation came in from Parlour: 1 message.",
            "left": [],
            "open": fresh,
        }
        assert len(await stores.conversations.thread(fresh)) == 1
        refused = (await brought(made[:-40], **{"x-parlour": "1"})).text.splitlines()
        assert "a.zip is damaged or was changed. Export" in json.loads(refused[-1])["failed"]
        assert len(await stores.conversations.list()) == 1


async def test_a_file_that_is_brought_in_twice_at_once_comes_in_once(app: Served) -> None:
    talks = [{"conversation_id": f"t{one}", "create_time": 7.0 + one, "mapping": said(4)} for one in range(20)]
    data = json.dumps(talks).encode()

    async def bring() -> None:
        async with httpx.AsyncClient(base_url=app.address, timeout=60) as browser:
            files = {"files": ("all.json", data)}
            await browser.post("/conversations/import", files=files, headers={"x-parlour": "1"})

    await asyncio.gather(bring(), bring())
    assert len(await app.engine.stores.of("local").conversations.list()) == len(talks)


async def test_an_import_can_be_called_off_by_its_owner_alone_and_leaves_nothing(app: Served) -> None:
    talks = [{"title": f"Talk {one}", "mapping": said(20)} for one in range(200)]
    stores = app.engine.stores.of("local")
    async with httpx.AsyncClient(base_url=app.address, timeout=60) as browser:
        files = {"files": ("all.json", json.dumps(talks).encode())}
        sent = browser.stream("POST", "/conversations/import", files=files, headers={"x-parlour": "1"})
        async with sent as answer:
            lines = answer.aiter_lines()
            first = json.loads(await anext(lines))
            assert "going" in first, first
            going = first["going"]
            assert (await browser.post("/conversations/import/stop", json={"going": "other"})).status_code == 200
            assert 0 < json.loads(await anext(lines))["share"] < 1
            assert (await browser.post("/conversations/import/stop", json={"going": going})).status_code == 200
            told = [json.loads(line) async for line in lines]
        assert told[-1]["failed"].startswith("all.json was called off.")
        assert (await browser.post("/conversations/import/stop", json={"going": going})).status_code == 200
    assert await stores.conversations.list(temporary=True) == []


def said(turns: int) -> dict[str, Any]:
    """The nodes of a conversation as ChatGPT exports it."""
    return {
        str(at): {
            "id": str(at),
            "parent": str(at - 1) if at else None,
            "message": {
                "author": {"role": ("user", "assistant")[at % 2]},
                "content": {"content_type": "text", "parts": [f"Say {at}."]},
            },
        }
        for at in range(turns)
    }


async def test_a_key_that_the_owner_typed_somewhere_is_in_no_file(app: Served) -> None:
    engine = app.engine
    server = {
        "command": "mail",
        "env": {"MAIL": "words-of-a-server", "MODE": "production"},
        "enabled": False,
        "disabled": True,
    }
    tools = engine.toolbox.of("local")
    await tools.servers.add("mail", server)
    await tools.accounts.choose("amap_weather", "amap", address="", model="", key="words-of-weather")
    kept = await engine.stores.of("local").conversations.create("Keys")
    keys = ("plain-words-for-a-key", "words-of-a-server", "words-of-weather", engine.settings.signing_secret())
    keys += (str(engine.settings.home.absolute()),)  # no key, but nobody's either
    said = [Message("user", f"Mine: {key} in production") for key in keys]
    await engine.stores.of("local").conversations.add_message(kept.id, "user", said, None)
    async with httpx.AsyncClient(base_url=app.address) as browser:
        for form in ("md", "json"):
            text = (await browser.get(f"/conversations/{kept.id}/export", params={"as": form})).text
            assert text.count("Mine: … in production") == len(keys)
            assert not [key for key in keys if key in text or json.dumps(key)[1:-1] in text]


async def test_a_key_that_a_program_gave_its_agents_is_in_no_file(tmp_path: Path, anyio_backend: str) -> None:
    def send(to: str) -> str:
        """Sends a mail."""
        return to

    mail: Any = tool(send)
    mail.cfg["credentials"] = {"bearer": "words-of-a-tool"}
    settings_of_server: Any = {"url": "https://x.org/mcp", "headers": {"Authorization": "Bearer words-of-a-server"}}
    mail.settings = ServerSettings.model_validate(settings_of_server)  # as an MCP server's tool has them
    model = ScriptedModel("Yes.")
    model.cfg["api_key"] = "words-of-a-model"
    settings = Settings(home=tmp_path, code="off")  # type: ignore[call-arg]
    agent = Assistant(llm=model, function_list=[mail])
    async with Engine(settings, program=Program([agent])) as engine, served(engine, settings) as app:
        kept = await engine.stores.of("local").conversations.create("Keys")
        keys = ("words-of-a-tool", "words-of-a-server", "words-of-a-model")
        said = [Message("user", f"Mine: {key}.") for key in keys]
        await engine.stores.of("local").conversations.add_message(kept.id, "user", said, None)
        async with httpx.AsyncClient(base_url=app.address) as browser:
            text = (await browser.get(f"/conversations/{kept.id}/export?as=json")).text
    assert text.count("Mine: ….") == len(keys)
