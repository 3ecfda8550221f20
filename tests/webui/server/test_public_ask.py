"""Where it is allowed, an agent without a key asks one question after another; elsewhere there is no such door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

from core.engine import Engine
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.people_app import house
from webui.context import WebContext
from webui.handlers.public_ask import PublicAskRoutes
from webui.middleware.gate import GateMiddleware
from webui.uploads import Uploads
from webui.words import Words

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def asked(tmp_path: Path, model: ScriptedModel, an_hour: int) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings.load(home=tmp_path, code="off", titles=False, public_ask=an_hour)
    async with Engine(settings, model=model) as engine:
        app = Starlette(routes=PublicAskRoutes(WebContext(engine, settings, Words.of)).table())
        transport = httpx.ASGITransport(app, client=("10.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://a.hf.space") as agent:
            yield agent


async def test_a_question_is_answered_once_and_not_too_often(tmp_path: Path) -> None:
    model = ScriptedModel(Reply(calls=[("calculator", {"expression": "6 * 7"})]), "It is 42.", RuntimeError("secret"))
    async with asked(tmp_path, model, 2) as agent:
        (endpoint,) = (await agent.get("/gradio_api/info")).json()["named_endpoints"]
        assert endpoint == "/ask"
        for wrong in ({}, {"data": []}, {"data": [" "]}, {"data": [7]}, {"question": "x" * 9_000}):
            assert (await agent.post("/gradio_api/call/ask", json=wrong)).status_code == 422
        event = (await agent.post("/gradio_api/call/ask", json={"data": ["What is 6 times 7?"]})).json()["event_id"]
        told = await agent.get(f"/gradio_api/call/ask/{event}")
        assert told.text == 'event: complete\ndata: ["It is 42."]\n\n'
        assert (await agent.get(f"/gradio_api/call/ask/{event}")).status_code == 404
        event = (await agent.post("/gradio_api/call/v2/ask", json={"question": "And?"})).json()["event_id"]
        failed = await agent.get(f"/gradio_api/call/v2/ask/{event}")
        assert failed.text.startswith("event: error\ndata: ")
        assert "secret" not in failed.text
        over = await agent.post("/gradio_api/call/ask", json={"data": ["More?"]})
        assert (over.status_code, "many questions" in over.json()["detail"]) == (429, True)


async def test_left_out_there_is_no_such_door(tmp_path: Path) -> None:
    async with asked(tmp_path, ScriptedModel("Never."), 0) as agent:
        assert (await agent.get("/gradio_api/info")).status_code == 404


@pytest.mark.parametrize(
    ("path", "public", "status"),
    [
        ("/gradio_api/call/ask", True, 200),
        ("/gradio_api/info", True, 200),
        ("/gradio_api/call/ask", False, 403),
        ("/gradio_api/call/follow", True, 403),
        ("/gradio_api/queue/join", True, 403),
    ],
)
async def test_the_gate_lets_agents_to_this_alone(path: str, public: bool, status: int, tmp_path: Path) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    told: list[int] = []

    async def send(message: Message) -> None:
        told.append(message.get("status", 0))

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    gate = GateMiddleware(app, Uploads(tmp_path / "tmp", 1000), public=public)
    await gate({"type": "http", "path": path, "owner": None, "headers": []}, receive, send)
    assert told[0] == status


async def test_an_answer_that_makes_room_for_others_is_not_worked_at_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    class Thinking:
        async def ask(self, question: str) -> str:
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                ended.set()
            return question

    monkeypatch.setattr("webui.handlers.public_ask._MOST", 1)
    monkeypatch.setattr("core.mcp_endpoint.McpAccess.of", lambda _, __: Thinking())
    async with asked(tmp_path, ScriptedModel("Never."), 5) as agent:
        await agent.post("/gradio_api/call/ask", json={"data": ["First?"]})
        await asyncio.wait_for(begun.wait(), 10)
        assert not ended.is_set()
        await agent.post("/gradio_api/call/ask", json={"data": ["Second?"]})
        await asyncio.wait_for(ended.wait(), 10)


async def test_where_people_have_accounts_agents_without_one_may_ask_all_the_same(tmp_path: Path) -> None:
    async with house(tmp_path, "It is 42.", public_ask=5) as here:
        agent = here.browser()
        event = (await agent.post("/gradio_api/call/ask", json={"data": ["What is 6 times 7?"]})).json()["event_id"]
        told = await agent.get(f"/gradio_api/call/ask/{event}")
        assert told.text == 'event: complete\ndata: ["It is 42."]\n\n'
        assert (await agent.post("/gradio_api/queue/join", json={})).status_code == 401
