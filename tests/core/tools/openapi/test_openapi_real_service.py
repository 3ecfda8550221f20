"""A real service: the document that FastAPI writes of itself becomes tools, and these tools work on it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from enum import Enum
from typing import Annotated, Any

import pytest
import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException, Query
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from core.errors import FetchError
from core.messages.events import ToolFinished
from core.messages.message import Message
from core.messages.transcript import call_message
from core.tools.approval import ApprovalRequest, Decision, Guard, Policy
from core.tools.openapi.as_tools import ApiTool, from_settings
from core.tools.runner import ToolRunner

pytestmark = pytest.mark.anyio

KEY = "sk-CANARY-1234567890"
login = HTTPBearer()


class Kind(Enum):
    CAT = "cat"
    DOG = "dog"


class Pet(BaseModel):
    """A pet, perhaps with young ones."""

    name: str
    kind: Kind = Kind.CAT
    weight: float | None = None
    young: list[Pet] = []


def shop() -> FastAPI:
    app = FastAPI(title="Pet shop")
    pets: dict[int, Pet] = {1: Pet(name="Mia")}

    @app.get("/pets", operation_id="list_pets")
    def listed(
        kind: Annotated[list[Kind] | None, Query()] = None, x_lang: Annotated[str | None, Header()] = None
    ) -> dict[str, Any]:
        wanted = [pet for pet in pets.values() if kind is None or pet.kind in kind]
        return {"lang": x_lang, "pets": wanted}

    @app.post("/pets", status_code=201)
    def add(pet: Pet, who: Annotated[Any, Depends(login)]) -> dict[str, int]:
        if who.credentials != KEY:
            raise HTTPException(401, f"{who.credentials} is not known")
        pets[len(pets) + 1] = pet
        return {"id": len(pets)}

    @app.delete("/pets/{pet_id}", operation_id="give_away")
    def give_away(pet_id: int) -> dict[str, str]:
        if pet_id not in pets:
            raise HTTPException(404, "There is no such pet.")
        return {"gone": pets.pop(pet_id).name}

    return app


@pytest.fixture
async def address(anyio_backend: str) -> AsyncIterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(shop(), log_level="critical", lifespan="off"))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        await task


async def tools_at(address: str, **more: Any) -> dict[str, ApiTool]:
    item = {"openapi": f"{address}/openapi.json", "server": address, "own_network": True, **more}
    return {tool.name: tool for tool in await from_settings(item)}


async def call(tools: dict[str, ApiTool], name: str, guard: Guard | None = None, /, **arguments: Any) -> Message:
    runner = ToolRunner(tools, guard=guard)
    events = [event async for event in runner.run([call_message("c", name, json.dumps(arguments))])]
    assert isinstance(events[-1], ToolFinished)
    return events[-1].message


async def test_it_is_read_from_its_address_and_works(address: str):
    tools = await tools_at(address, credentials={"bearer": KEY})
    assert list(tools) == ["list_pets", "add_pets_post", "give_away"]
    found = await call(tools, "list_pets", None, kind=["cat", "dog"], **{"x-lang": "zh"})
    assert json.loads(found.get_text_content())["pets"][0]["name"] == "Mia"
    assert json.loads(found.get_text_content())["lang"] == "zh"
    refused = await call(tools, "list_pets", x_lang="zh")
    assert "'x_lang' was unexpected" in refused.get_text_content()
    added = await call(tools, "add_pets_post", body={"name": "小白", "kind": "dog", "young": [{"name": "Flo"}]})
    assert added.content == '{"id":2}'
    assert "小白" in (await call(tools, "list_pets", kind=["dog"])).get_text_content()


async def test_a_document_that_names_no_server_means_where_it_came_from(address: str):
    tools = await tools_at(address, server="", credentials={"bearer": KEY})
    assert "Mia" in (await call(tools, "list_pets")).get_text_content()
    assert (await call(tools, "add_pets_post", body={"name": "Rex"})).content == '{"id":2}'


async def test_who_may_not_reach_an_address_inside_reads_what_allows_it(address: str):
    with pytest.raises(FetchError, match="own_network") as caught:
        await tools_at(address, own_network=False)
    assert caught.value.words_key == "fetch_private"
    document = {"openapi": "3.0.0", "servers": [{"url": address}], "paths": {"/pets": {"get": {"operationId": "pets"}}}}
    (tool,) = await from_settings({"openapi": document})
    with pytest.raises(FetchError, match="own_network"):
        await tool.call({})


async def test_what_it_refuses_is_told_and_its_words_hold_no_key(address: str):
    tools = await tools_at(address, credentials={"bearer": KEY + "x"})
    message = await call(tools, "add_pets_post", body={"name": "Rex"})
    assert message.content == '127.0.0.1 answered 401 (Unauthorized): {"detail":"… is not known"}'
    message = await call(tools, "give_away", pet_id=99)
    assert message.content == '127.0.0.1 answered 404 (Not Found): {"detail":"There is no such pet."}'
    message = await call(tools, "add_pets_post", body={"kind": "dog"})
    assert "'body.name' is missing" in message.get_text_content()


async def test_looking_runs_unasked_and_giving_away_asks(address: str):
    tools = await tools_at(address)
    asked: list[ApprovalRequest] = []

    async def refuse(asking: ApprovalRequest) -> Decision:
        asked.append(asking)
        return Decision(allowed=False)

    assert "Mia" in (await call(tools, "list_pets", Guard(Policy(), refuse))).get_text_content()
    message = await call(tools, "give_away", Guard(Policy(), refuse), pet_id=1)
    assert (message.extra or {})["failed"] == "refused"
    assert [(one.reason, one.wants["en"]) for one in asked] == [("destructive", "delete at Pet shop: Give Away")]
    assert "Mia" in (await call(tools, "list_pets")).get_text_content()
