"""Reading seen and steered from a tab: progress in frames, the bus, and the route that takes a password."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import aclosing
from html import unescape
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docx
import httpx
import pptx
import pytest
import xlsxwriter
from msoffcrypto.format.ooxml import OOXMLFile
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from core.engine import Engine
from core.settings import Settings
from core.storage.base import DocumentRecord
from core.testing.scripted_model import ScriptedModel
from core.workspace.workspace import Workspace
from tests.core.reading.held_reading import CLAUSE, PAGES, Gate, index_of, long_pdf, pdf
from webui.context import json_body
from webui.frames import Frame, Frames
from webui.handlers.act import act
from webui.handlers.desk import Desk
from webui.handlers.documents import DocumentRoutes
from webui.handlers.send import start
from webui.uploads import Uploads
from webui.views import View, Views
from webui.words import Words

pytestmark = pytest.mark.anyio
OWNER = "b-alice"


class House:
    """An engine, one tab, and what handlers need."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        views = Views(Words.of)
        self.folder = folder
        self.desk = Desk(engine, Uploads(folder / "tmp", 1_000_000), views)
        self.frames = Frames(engine, views)
        engine.on_change(views.changed)
        headers = {"referer": "http://127.0.0.1/", "accept-language": "en"}
        request = SimpleNamespace(session_hash="one", username=OWNER, headers=headers)
        self.view: View = views.of(cast("Any", request))

    async def ask(self, name: str, data: bytes) -> DocumentRecord:
        path = self.folder / name
        path.write_bytes(data)
        await start(self.desk, self.view, "What is the deductible for water damage?", [(path, name)])
        (record,) = await self.engine.stores.of(OWNER).documents.list(self.view.conversation_id)
        return record

    async def do(self, what: str, **about: str) -> None:
        fields = "".join(f', "{key}": "{value}"' for key, value in about.items())
        await act(self.desk, self.view, f'{{"do": "{what}"{fields}}}')

    async def seen(self, text: str) -> Frame:
        """The first frame that says this."""
        async with asyncio.timeout(180), aclosing(self.frames.follow(self.view)) as frames:
            async for frame in frames:
                if frame is not None and text in unescape(str(frame.chat)):
                    return frame
        raise AssertionError(f"No frame says {text!r}.")

    async def unlock(self, owner: str | None, **sent: Any) -> httpx.Response:
        routes = DocumentRoutes(cast("Any", SimpleNamespace(engine=self.engine, words=Words.of)))
        app = Starlette(routes=routes.table())

        async def owned(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, "owner": owner}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(owned), base_url="http://test") as client:
            return await client.post("/documents/unlock", **sent)


@pytest.fixture
async def house(tmp_path: Path, anyio_backend: str) -> AsyncIterator[House]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword")
    async with Engine(settings, model=ScriptedModel()) as engine:
        yield House(engine, tmp_path)


async def test_a_tab_sees_a_document_being_read_asks_now_and_calls_it_off(house: House) -> None:
    gate = Gate(await index_of(house.engine, OWNER))
    record = await house.ask("long.pdf", long_pdf())
    frame = await house.seen("#do-asknow-")
    assert f" of {PAGES} · " in unescape(str(frame.chat))
    assert f"#do-cancel-{record.id}" in unescape(str(frame.chat))
    await house.do("asknow")
    await house.seen("was still being read")
    await house.do("cancel", id=record.id)
    stopped = unescape(str((await house.seen(f"#do-forget-{record.id}")).chat))
    assert f" of {PAGES} pages" in stopped
    await house.do("forget", id=record.id)
    await house.seen("reading was cancelled")
    gate.opened.set()
    await house.do("reread", id=record.id)
    await house.seen(f"{PAGES} pages")


async def test_a_tab_is_painted_a_few_times_a_second_while_a_document_is_read(house: House) -> None:
    gate = Gate(await index_of(house.engine, OWNER))
    await house.ask("long.pdf", long_pdf())
    loop = asyncio.get_running_loop()
    times: list[float] = []
    async with asyncio.timeout(180), aclosing(house.frames.follow(house.view)) as frames:
        async for frame in frames:
            if frame is not None and "#do-asknow-" in str(frame.chat):
                times.append(loop.time())
            if len(times) > 4:
                break
    apart = [after - before for before, after in pairwise(times[1:])]
    assert sum(apart) / len(apart) > 0.15
    assert min(apart) < 1.0  # some may be late on a busy machine
    gate.opened.set()


async def test_a_password_goes_by_its_own_request_and_is_told_right_from_wrong(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    record = await house.ask("locked.pdf", pdf(CLAUSE, password="RIGHT-CANARY"))
    await house.seen("#do-unlock-")
    wrong = await house.unlock(OWNER, json={"id": record.id, "password": "WRONG-CANARY"})
    assert wrong.json()["failed"].startswith("That is not the password of locked.pdf.")
    assert wrong.headers["cache-control"] == "no-store"
    strange = await house.unlock("b-bob", json={"id": record.id, "password": "RIGHT-CANARY"})
    assert "failed" in strange.json()
    right = await house.unlock(OWNER, json={"id": record.id, "password": "RIGHT-CANARY"})
    assert right.json() == {"answers": True, "reply": ""}
    frame = await house.seen("1 page")
    assert "CANARY" not in f"{frame}{wrong.text}{strange.text}{caplog.text}"
    await house.seen("four hundred and twenty")


def office_file(kind: str) -> bytes:
    """As the library writes it that most programs use for that."""
    out = io.BytesIO()
    match kind:
        case "docx":
            document = docx.Document()
            document.add_paragraph(CLAUSE)
            document.save(out)
        case "pptx":
            deck: Any = pptx.Presentation()
            deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = CLAUSE
            deck.save(out)
        case _:
            with xlsxwriter.Workbook(out) as book:
                book.add_worksheet().write_row(0, 0, ["clause", CLAUSE])
    return out.getvalue()


@pytest.mark.parametrize("kind", ["docx", "xlsx", "pptx"])
async def test_an_office_file_that_another_program_locked_is_opened_with_its_password_alone(
    house: House, kind: str
) -> None:
    locked, name, password = io.BytesIO(), f"locked.{kind}", "öffne dich 开门"
    OOXMLFile(io.BytesIO(office_file(kind))).encrypt(password, locked)
    record = await house.ask(name, locked.getvalue())
    await house.seen("#do-unlock-")
    for wrong in ("offne dich", password.upper(), f"{password} "):
        refused = (await house.unlock(OWNER, json={"id": record.id, "password": wrong})).json()["failed"]
        assert refused == (
            f"That is not the password of {name}. Type it as it was given to you, or send a copy without one."
        )
    assert (await house.unlock(OWNER, json={"id": record.id, "password": password})).json()["answers"]
    await house.seen("four hundred and twenty")


async def test_a_password_in_a_failure_that_nobody_foresaw_is_not_logged(
    house: House, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(_: Workspace, __: str, password: str, *given: Any) -> None:
        raise ZeroDivisionError(f"with {password} and {password!r}")

    monkeypatch.setattr(Workspace, "unlock", breaks)
    answer = await house.unlock(OWNER, json={"id": "x", "password": "CANARY\\'\""})
    assert answer.json()["failed"].startswith("Something went wrong")
    assert "ZeroDivisionError" in caplog.text
    assert "CANARY" not in caplog.text + answer.text


async def test_whoever_leaves_in_the_middle_of_asking_is_no_failure() -> None:
    told: list[Message] = [{"type": "http.request", "body": b'{"id"', "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Message:
        return told.pop(0)

    headers = [(b"content-type", b"application/json")]
    assert await json_body(Request({"type": "http", "method": "POST", "headers": headers}, receive)) is None


async def test_what_the_page_would_not_send_is_refused(house: House) -> None:
    assert (await house.unlock(None, json={"id": "x", "password": "y"})).status_code == 401
    for sent in (
        {"data": {"id": "x", "password": "y"}},
        {"content": b"{", "headers": {"content-type": "application/json"}},
        {"json": ["x"]},
        {"json": {"id": "x"}},
        {"json": {"id": "x", "password": ""}},
        {"json": {"id": 1, "password": "y"}},
        {"json": {"id": "x", "password": "y" * 9000}},
    ):
        assert (await house.unlock(OWNER, **sent)).status_code == 400
    half = {"content": b'{"id": "x", "password": "half \\ud83d"}', "headers": {"content-type": "application/json"}}
    assert "failed" in (await house.unlock(OWNER, **half)).json()
