"""Where it is allowed, an agent without a key asks one question after another; elsewhere there is no such door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

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
from webui.handlers.public_queue import FUNCTION
from webui.middleware.gate import GateMiddleware
from webui.uploads import Uploads
from webui.words import Words

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def asked(tmp_path: Path, model: ScriptedModel, an_hour: int) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings.load(home=tmp_path, code="off", titles=False, public_ask=an_hour)
    async with Engine(settings, model=model) as engine:
        routes = PublicAskRoutes(WebContext(engine, settings, Words.of)).table()
        transport = httpx.ASGITransport(Starlette(routes=routes), client=("10.0.0.1", 1))
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


def said(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


async def test_who_added_the_space_to_their_tools_asks_it_over_mcp_and_not_too_often(tmp_path: Path) -> None:
    def called(number: int, method: str, **params: object) -> dict[str, object]:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    async with asked(tmp_path, ScriptedModel("It is 42."), 1) as agent:
        assert (await agent.get("/config")).json()["mcp_server"] is True
        (tool,) = (await agent.get("/gradio_api/mcp/schema")).json()
        client: Any = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        agent.headers["accept"] = "application/json"
        for place in ("/gradio_api/mcp/", "/gradio_api/mcp"):
            begun = said(await agent.post(place, json=called(0, "initialize", **client)))
            assert begun["protocolVersion"] == "2025-06-18"
        agent.headers["mcp-protocol-version"] = "2025-06-18"
        (listed,) = said(await agent.post(place, json=called(1, "tools/list")))["tools"]
        assert (listed["name"], listed["description"], listed["inputSchema"]) == (
            *(tool[key] for key in ("name", "description", "inputSchema")),
        )
        for question, failed, words in (
            ("", True, "question"),
            ("6 * 7?", False, "It is 42."),
            ("7?", True, "Too many"),
        ):
            call = called(2, "tools/call", name="ask", arguments={"question": question})
            told = said(await agent.post(place, json=call))
            assert (told.get("isError", False), words in told["content"][0]["text"]) == (failed, True), told
        assert (await agent.get(place)).status_code == 405


async def test_without_the_package_there_is_no_door_over_mcp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webui.handlers.public_ask.find_spec", lambda _: None)
    async with asked(tmp_path, ScriptedModel("Never."), 5) as agent:
        assert (await agent.get("/config")).json()["mcp_server"] is False
        assert (await agent.get("/gradio_api/mcp/schema")).status_code == 404


@pytest.mark.parametrize(
    ("path", "public", "status"),
    [
        ("/gradio_api/mcp/", True, 200),
        ("/gradio_api/mcp/schema", True, 200),
        ("/gradio_api/mcp/", False, 403),
        ("/gradio_api/mcp/messages", True, 403),
        ("/gradio_api/call/ask", True, 200),
        ("/gradio_api/info", True, 200),
        ("/gradio_api/call/ask", False, 403),
        ("/gradio_api/call/follow", True, 403),
        ("/gradio_api/queue/join", True, 200),
        ("/gradio_api/queue/data", True, 200),
        ("/gradio_api/queue/join", False, 403),
        ("/gradio_api/queue/data", False, 403),
        ("/gradio_api/cancel", True, 403),
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
    method = "GET" if path.endswith("data") else "POST"
    await gate({"type": "http", "method": method, "path": path, "owner": None, "headers": []}, receive, send)
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
    monkeypatch.setattr("webui.handlers.public_queue._MOST", 1)
    monkeypatch.setattr("core.mcp_endpoint.McpAccess.of", lambda _, __: Thinking())
    async with asked(tmp_path, ScriptedModel("Never."), 5) as agent:
        await agent.post("/gradio_api/call/ask", json={"data": ["First?"]})
        await asyncio.wait_for(begun.wait(), 10)
        assert not ended.is_set()
        await agent.post("/gradio_api/call/ask", json={"data": ["Second?"]})
        await asyncio.wait_for(ended.wait(), 10)
        begun.clear()
        ended.clear()
        waiting: list[asyncio.Task[httpx.Response]] = []
        for session in ("one", "two"):
            queued = {"data": ["Well?"], "fn_index": FUNCTION, "session_hash": session}
            assert (await agent.post("/gradio_api/queue/join", json=queued)).status_code == 200
            followed = agent.get(f"/gradio_api/queue/data?session_hash={session}")
            waiting.append(asyncio.create_task(followed))
            await asyncio.wait_for(begun.wait(), 10)
        await asyncio.wait_for(ended.wait(), 10)
        assert "process_completed" not in (await asyncio.wait_for(waiting[0], 10)).text
        waiting[1].cancel()


async def test_where_people_have_accounts_agents_without_one_may_ask_all_the_same(tmp_path: Path) -> None:
    async with house(tmp_path, "It is 42.", public_ask=5) as here:
        agent = here.browser()
        event = (await agent.post("/gradio_api/call/ask", json={"data": ["What is 6 times 7?"]})).json()["event_id"]
        told = await agent.get(f"/gradio_api/call/ask/{event}")
        assert told.text == 'event: complete\ndata: ["It is 42."]\n\n'
        assert (await agent.post("/gradio_api/queue/join", json={})).status_code == 401
