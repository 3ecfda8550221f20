"""Where hardware counts by visitor, a model is asked with the newest token that its owner's requests showed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from core.engine import Engine
from core.llm.request import ChatRequest, Stream
from core.llm.visitors import WORKING_FOR, came, newest_token
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from webui.middleware.visitors import VisitorMiddleware

pytestmark = pytest.mark.anyio


async def now() -> str:
    return newest_token()


async def of(name: str) -> str:
    WORKING_FOR.set(name)
    return newest_token()


async def request(name: str, token: str) -> str:
    came(name, token)
    return newest_token()


async def in_task(work: object) -> str:
    return await asyncio.create_task(work)  # type: ignore[arg-type]


async def test_the_newest_request_counts_and_nobody_is_taken_for_another() -> None:
    assert await in_task(now()) == ""
    assert await in_task(request("ann", "first")) == "first"
    assert await in_task(request("ann", "second")) == "second"
    assert await in_task(of("ann")) == "second"
    assert await in_task(of("bob")) == ""

    async def by_a_key() -> str:
        came("", "her program's")
        return await of("ann")

    assert await in_task(by_a_key()) == "her program's"
    assert await in_task(of("ann")) == "second"


async def test_a_request_is_noted_for_its_owner_and_no_other_header_is() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(newest_token())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body"})

    async def owned(scope: Scope, receive: Receive, send: Send) -> None:
        await VisitorMiddleware(app)({**scope, "owner": "carl"}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(owned), base_url="http://a.hf.space") as browser:
        await browser.get("/", headers={"X-IP-Token": "carl's"})
        await browser.get("/", headers={"X-Other": "nothing"})
    assert seen[0] == "carl's"
    assert await in_task(of("carl")) == "carl's"


async def test_a_reply_is_written_with_the_token_of_its_owner(tmp_path: Path) -> None:
    asked: list[str] = []

    class Noting(ScriptedModel):
        async def _stream(self, request: ChatRequest) -> Stream:
            asked.append(newest_token())
            async for event in super()._stream(request):
                yield event

    settings = Settings.load(home=tmp_path, code="off", titles=False)
    async with Engine(settings, model=Noting("Hello.")) as engine, engine.workspaces.open("dora") as workspace:
        await in_task(request("dora", "dora's"))
        talk = await workspace.conversations.create("A talk")
        run = await workspace.conversation(talk.id).ask("Hello?")
        await run.wait()
    assert asked == ["dora's"]


async def test_what_one_visitor_began_takes_none_of_her_time_when_it_works_for_another() -> None:
    async def began_by_carol() -> str:
        came("carol", "hers")
        return await of("dave")  # such as a task that sends what waits, of whomever

    assert await in_task(began_by_carol()) == ""
    await in_task(request("dave", "his"))
    assert await in_task(began_by_carol()) == "his"
