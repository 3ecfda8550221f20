"""The door at /mcp speaks the revision of 2026-07-28, in which each request says all by itself, and those before it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.served_app import Served, served
from tests.webui.server.test_outward import ADMIN, shelve

pytestmark = pytest.mark.anyio

NEW = "2026-07-28"
OLD = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
META = "io.modelcontextprotocol/"


class Door:
    """Asks by hand, in the manner of either time."""

    def __init__(self, http: httpx.AsyncClient, address: str) -> None:
        self.http = http
        self.address = address

    async def now(self, method: str, headers: dict[str, str | None] | None = None, **params: Any) -> httpx.Response:
        """A request as since 2026-07-28; of the headers, some another or left out."""
        meta = {"protocolVersion": NEW, "clientInfo": {"name": "hand", "version": "1"}, "clientCapabilities": {}}
        body = {**params, "_meta": {f"{META}{name}": value for name, value in meta.items()}}
        usual: dict[str, str | None] = {"mcp-protocol-version": NEW, "mcp-method": method}
        usual |= {"mcp-name": params["name"]} if "name" in params else {}
        told = {name: value for name, value in {**usual, **(headers or {})}.items() if value is not None}
        return await self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": body}, **told)

    async def post(self, body: Any, **headers: str) -> httpx.Response:
        """Any request."""
        return await self.http.post(self.address, json=body, headers=headers)


def result(answer: httpx.Response) -> Any:
    """What an answer holds, as a stream or whole."""
    assert answer.status_code == 200, answer.text
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = next(line for line in text.splitlines() if line.startswith("data: {")).removeprefix("data: ")
    return json.loads(text)["result"]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[Served]:
    settings = Settings(home=tmp_path / "home", retrieval="keyword", check_claims=False)
    async with Engine(settings, model=ScriptedModel(*["Heliotrope."] * 4)) as engine, served(engine, settings) as house:
        yield house


@pytest.fixture
async def door(house: Served) -> AsyncGenerator[Door]:
    token = await house.engine.outward.of(ADMIN).renew_token()
    headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        yield Door(http, f"{house.address}/mcp")


async def test_a_program_learns_what_is_spoken_without_a_handshake(door: Door) -> None:
    told = result(await door.now("server/discover"))
    assert NEW in told["supportedVersions"]
    assert told["resultType"] == "complete"
    assert (told["cacheScope"], told["ttlMs"] > 0) == ("private", True)
    assert told["_meta"][f"{META}serverInfo"]["name"] == "parlour"
    assert "tools" in told["capabilities"]
    assert not {"logging", "prompts", "sampling"} & set(told["capabilities"])


async def test_each_request_stands_alone_and_is_the_same_whichever_process_answers(door: Door) -> None:
    answer = await door.now("tools/list")
    assert "mcp-session-id" not in answer.headers
    told = result(answer)
    assert [tool["name"] for tool in told["tools"]] == ["search_library", "ask"]
    assert (told["resultType"], told["cacheScope"]) == ("complete", "private")
    again = await door.now("tools/list", {"mcp-session-id": "made-up", "last-event-id": "7"})
    assert result(again)["tools"] == told["tools"]
    assert "mcp-session-id" not in again.headers


async def test_what_is_found_fits_the_form_that_was_told(house: Served, door: Door) -> None:
    await shelve(house.engine, ADMIN, "Vaults", "vault.md", "# The vault\n\nThe vault opens with heliotrope.")
    (tool, _) = result(await door.now("tools/list"))["tools"]
    called = result(await door.now("tools/call", name="search_library", arguments={"question": "vault"}))
    jsonschema.validate(called["structuredContent"], tool["outputSchema"])
    assert called["structuredContent"]["passages"][0]["document"] == "vault.md"
    assert "heliotrope" in called["content"][0]["text"]
    failed = result(await door.now("tools/call", name="search_library", arguments={"question": "v", "library": "x"}))
    assert (failed["isError"], "structuredContent" in failed) == (True, False)


async def test_headers_and_body_must_say_the_same(door: Door) -> None:
    wrong: tuple[dict[str, str | None], ...] = (
        {"mcp-method": "tools/call"},
        {"mcp-method": None},
        {"mcp-protocol-version": "2099-01-01"},
    )
    for headers in wrong:
        answer = await door.now("tools/list", headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020), headers


async def test_a_name_in_the_header_is_held_against_the_body_however_it_is_written(door: Door) -> None:
    asked = {"name": "search_library", "arguments": {"question": "x"}}
    for wrong in ("ask", None, "=?base64?YXNr?="):
        answer = await door.now("tools/call", {"mcp-name": wrong}, **asked)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
    packed = await door.now("tools/call", {"mcp-name": "=?base64?c2VhcmNoX2xpYnJhcnk=?="}, **asked)
    assert result(packed)["structuredContent"] == {"passages": []}


async def test_blanks_around_a_header_do_not_count(door: Door) -> None:
    url, token = httpx.URL(door.address), door.http.headers["authorization"]
    meta = {f"{META}protocolVersion": NEW, f"{META}clientCapabilities": {}}
    asked = {"name": "search_library", "arguments": {"question": "x"}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked})
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: {url.netloc.decode()}\r\nauthorization: {token}\r\nconnection: close\r\n"
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
        f"mcp-protocol-version: {NEW}\r\nmcp-method:tools/call\r\nmcp-name: \t search_library \t\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write((head + body).encode())  # by hand, for clients send no such blanks
    answer = (await asyncio.wait_for(reader.read(), 30)).decode()
    writer.close()
    assert answer.startswith("HTTP/1.1 200"), answer
    assert '"passages":[]' in answer


async def test_a_revision_that_nobody_speaks_is_told_which_are(door: Door) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {"_meta": {f"{META}protocolVersion": "2099-01-01"}},
    }
    body["params"]["_meta"] |= {f"{META}clientCapabilities": {}, f"{META}clientInfo": {"name": "x", "version": "1"}}  # type: ignore[index]
    answer = await door.post(body, **{"mcp-protocol-version": "2099-01-01", "mcp-method": "tools/list"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, -32022)
    assert NEW in error["data"]["supported"]


async def test_what_there_is_not_is_not_found(door: Door) -> None:
    for method in ("nothing/like-it", "prompts/list", "initialize", "ping", "logging/setLevel"):
        answer = await door.now(method)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601), method


async def test_a_program_of_before_shakes_hands_and_asks_as_it_always_did(door: Door) -> None:
    for version in OLD:
        await asked_as_before(door, version)


async def asked_as_before(door: Door, version: str) -> None:
    about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    begun = result(await door.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}))
    assert begun["protocolVersion"] == version
    headers = {"mcp-protocol-version": version} if version > "2025-06" else {}
    noted = await door.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)
    assert noted.status_code == 202
    listed = result(await door.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}, **headers))
    assert [tool["name"] for tool in listed["tools"]] == ["search_library", "ask"]
    assert "resultType" not in listed
    called = {"name": "ask", "arguments": {"question": "Which word?"}}
    answer = result(await door.post({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": called}, **headers))
    assert answer["content"][0]["text"] == "Heliotrope."


async def test_a_program_from_later_is_answered_in_the_latest_that_has_a_handshake(door: Door) -> None:
    about = {"protocolVersion": "2099-01-01", "capabilities": {}, "clientInfo": {"name": "new", "version": "1"}}
    begun = result(await door.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}))
    assert begun["protocolVersion"] == OLD[-1]


async def test_there_is_no_stream_without_a_question_and_no_session_to_end(door: Door) -> None:
    for method in ("GET", "DELETE"):
        answer = await door.http.request(method, door.address, headers={"mcp-protocol-version": NEW})
        assert answer.status_code == 405, answer.text
