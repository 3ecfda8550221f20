"""Where as many documents of an owner wait to be read as may, the page says how many and what to do; programs go on."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from core.engine import Engine
from core.errors import TooManyRequestsError
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.core.reading.held_reading import Gate, index_of
from tests.core.talks import libraries_of
from tests.doors.house import house_in
from tests.webui.server.tabs_of_engine import Tabs
from webui.context import WebContext
from webui.handlers.send import send, start
from webui.routes import Routes
from webui.uploads import Uploads
from webui.words import Words

pytestmark = pytest.mark.anyio
SAID = {
    "en": "No more than 2 of your documents may wait to be read at once; now waiting: 2. "
    "Wait until some are read, or stop reading those that you do not need; then try again.",
    "zh": "同时等待读取的文档不能超过 2 个，现有 2 个在等待。请等其中一些读完，或停止读取不需要的文档，然后重试。",
}
LEFT_OUT = {
    "en": "No more than 2 of your documents may wait to be read at once; these were left out: {0}, {1}. "
    "Add them once some are read.",
    "zh": "同时等待读取的文档不能超过 2 个，以下文件未添加：{0}、{1}。请等一些文档读完后再添加它们。",
}
ONE_LEFT_OUT = {
    "en": "No more than 2 of your documents may wait to be read at once; this one was left out: {0}. "
    "Add it once some are read.",
    "zh": "同时等待读取的文档不能超过 2 个，这个文件未添加：{0}。请等一些文档读完后再添加。",
}
TOO_MANY = {
    "en": "No more than 2 of your documents may wait to be read at once, and here are 3. "
    "Take some of them out, and add those once the others are read.",
    "zh": "同时等待读取的文档不能超过 2 个，这里有 3 个。请先移除一些，等其余的读完后再添加。",
}


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Tabs]:
    """Two documents may wait, and two do."""
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", code="off", documents_waiting=2)
    async with Engine(settings, model=ScriptedModel("Good.")) as engine:
        gate = Gate(await index_of(engine, LOCAL_OWNER), early=True)
        mine = libraries_of(engine, LOCAL_OWNER)
        library = await mine.create("Many")
        for number in range(2):
            await mine.add(library.id, f"Lamp {number}.".encode(), f"{number}.md")
        yield Tabs(engine, Uploads(tmp_path / "tmp", 2**20))
        gate.opened.set()


def page(house: Tabs, lang: str) -> httpx.AsyncClient:
    uploads = house.desk.uploads
    routes = Routes(WebContext(house.engine, house.engine.settings, Words.of), uploads, house.views).table()
    app = Starlette(routes=routes)

    async def owned(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "owner": LOCAL_OWNER}, receive, send)

    headers = {"accept-language": lang, "x-parlour": "1"}
    return httpx.AsyncClient(transport=httpx.ASGITransport(owned), base_url="http://127.0.0.1", headers=headers)


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_a_library_is_told_how_many_wait_and_when_to_send_it_again(house: Tabs, lang: str) -> None:
    [library] = await libraries_of(house.engine, LOCAL_OWNER).list()
    async with page(house, lang) as client:
        answer = await client.post(f"/libraries/{library.id}/files", files=[("files", ("c.md", b"Lamp 3."))])
    assert (answer.status_code, answer.json()["failed"]) == (429, SAID[lang])
    assert int(answer.json()["again"]) == int(answer.headers["retry-after"]) > 0
    assert len((await libraries_of(house.engine, LOCAL_OWNER).opened(library.id)).documents) == 2


async def test_a_file_that_waits_for_room_is_neither_read_nor_counted_and_room_is_asked_for_without_it(
    house: Tabs, tmp_path: Path
) -> None:
    received: list[str] = []

    class Counting(Uploads):
        """Notes whose files it takes in."""

        async def receive(self, owner: str, *given: Any, **named: Any) -> Any:
            received.append(owner)
            return await super().receive(owner, *given, **named)

    counting = Tabs(house.engine, Counting(tmp_path / "counted", 2**20))
    [library] = await libraries_of(house.engine, LOCAL_OWNER).list()
    async with page(counting, "en") as client:
        tried = await client.post(f"/libraries/{library.id}/files", files=[("files", ("c.md", b"Lamp 3."))])
        asked = await client.get(f"/libraries/{library.id}/room")
        assert [(one.status_code, one.json()["again"]) for one in (tried, asked)] == [(429, "10")] * 2
        assert received == []
        mine = libraries_of(house.engine, LOCAL_OWNER)
        await mine.remove((await mine.opened(library.id)).documents[0].id)
        assert (await client.get(f"/libraries/{library.id}/room")).json() == {}
        assert (await client.get("/libraries/nobody/room")).json()["failed"]
        taken = await client.post(f"/libraries/{library.id}/files", files=[("files", ("c.md", b"Lamp 3."))])
    assert (taken.status_code, received) == (200, [LOCAL_OWNER])


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_a_file_for_a_question_is_refused_before_it_is_sent_and_a_picture_is_not(house: Tabs, lang: str) -> None:
    given = {"notes.txt": b"A lamp.", "lamp.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(60), "more.md": b"Another."}
    files = [{"name": name, "size": len(data), "head": b64encode(data).decode()} for name, data in given.items()]
    async with page(house, lang) as client:
        answer = (await client.post("/uploads/check", json={"files": files})).json()
    assert (answer["refused"], answer["said"], answer["later"]) == (
        [0, 2],
        LEFT_OUT[lang].format("notes.txt", "more.md"),
        True,
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_where_nothing_waits_what_one_question_has_too_many_of_is_named_and_may_be_added_later(
    tmp_path: Path, lang: str
) -> None:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", code="off", documents_waiting=2)
    async with Engine(settings, model=ScriptedModel("Good.")) as engine:
        tabs = Tabs(engine, Uploads(tmp_path / "tmp", 2**20))
        async with page(tabs, lang) as client:
            answers: list[Any] = []
            for many in (4, 3, 2):
                files = [{"name": f"note{n}.txt", "size": 2, "head": b64encode(b"A.").decode()} for n in range(many)]
                answers.append((await client.post("/uploads/check", json={"files": files})).json())
        brought: list[tuple[Path, str]] = []
        for n in range(3):
            path = tmp_path / f"note{n}.txt"
            await asyncio.to_thread(path.write_bytes, b"A.")
            brought.append((path, path.name))
        with pytest.raises(TooManyRequestsError) as refused:
            await start(tabs.desk, tabs.tab(), "What is it?", brought)
    assert [(one["refused"], one["said"], one["later"]) for one in answers] == [
        ([2, 3], LEFT_OUT[lang].format("note2.txt", "note3.txt"), True),
        ([2], ONE_LEFT_OUT[lang].format("note2.txt"), True),
        ([], "", False),
    ]
    assert Words.of(lang).error(refused.value) == TOO_MANY[lang]


async def test_judged_alone_a_file_is_not_refused_for_those_beside_it(house: Tabs) -> None:
    files = [
        {"name": name, "size": 2, "head": b64encode(data).decode()}
        for name, data in (("a.txt", b"A."), ("b.bin", b"\0\1"))
    ]
    async with page(house, "en") as client:
        answer = (await client.post("/uploads/check", json={"files": files, "alone": True})).json()
    assert answer["refused"] == [1]


async def test_a_question_that_is_sent_all_the_same_leaves_no_conversation_and_no_file(house: Tabs) -> None:
    upload = house.desk.uploads.folder / "lamp.txt"
    house.desk.uploads.folder.mkdir(parents=True, exist_ok=True)
    await asyncio.to_thread(upload.write_bytes, b"A lamp.")
    tab = house.tab()
    with pytest.raises(TooManyRequestsError):
        await start(house.desk, tab, "What is it?", [(upload, "lamp.txt")])
    assert await house.engine.stores.of(LOCAL_OWNER).conversations.list() == []
    await send(house.desk, tab, {"text": "Are you there?", "files": []})
    await house.over(tab)


def test_a_program_brings_files_and_asks_about_them_meanwhile_what_it_asks_is_read_at_once(tmp_path: Path) -> None:
    with house_in(tmp_path / "home", documents_waiting=1) as house:

        async def fill(engine: Engine) -> Gate:
            gate = Gate(await index_of(engine, "alice"), early=True)
            mine = libraries_of(engine, "alice")
            await mine.add((await mine.create("One")).id, b"Lamp.", "lamp.md")
            return gate

        gate = house.do(fill)
        headers = {"authorization": f"Bearer {house.key('tests', owner='alice')}"}
        house.says(Reply(text="It is forty-two."))
        with httpx.Client(base_url=house.base_url, headers=headers, timeout=30) as client:
            files = {"file": ("vault.md", b"The code of the vault is forty-two.")}
            made = client.post("/files", files=files, data={"purpose": "user_data"})
            assert made.status_code == 200, made.text
            parts = [
                {"type": "text", "text": "What is the code?"},
                {"type": "file", "file": {"file_id": made.json()["id"]}},
            ]
            asked = {"model": "parlour", "messages": [{"role": "user", "content": parts}]}
            answer = client.post("/chat/completions", json=asked)
        gate.opened.set()
        assert answer.json()["choices"][0]["message"]["content"].startswith("It is forty-two.")
        assert "forty-two" in str(house.model.requests[0].body)
