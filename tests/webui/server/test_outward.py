"""Parlour as an MCP server: the real application, asked with the SDK's own client."""

from __future__ import annotations

import asyncio
import contextlib
import tomllib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server import _streamable_http_modern as modern
from sse_starlette import EventSourceResponse

from core.engine import Engine
from core.mcp.progress import Telling
from core.messages.events import CallStarted, ReasoningDelta, TextDelta, ToolFinished
from core.messages.message import Message
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import libraries_of
from tests.webui.server.impatient_proxy import ImpatientProxy
from tests.webui.server.served_app import Served, served

pytestmark = pytest.mark.anyio

ADMIN = "local"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[Served]:
    model = ScriptedModel("The vault opens with heliotrope [1].", Reply(calls=[("storage", {"operate": "put"})]), "No.")
    settings = Settings(home=tmp_path / "home", retrieval="keyword", check_claims=False)
    async with Engine(settings, model=model) as engine, served(engine, settings) as house:
        yield house


async def shelve(engine: Engine, owner: str, library: str, name: str, text: str) -> None:
    made = await libraries_of(engine, owner).create(library)
    record = await libraries_of(engine, owner).add(made.id, text.encode(), name)
    async with asyncio.timeout(30):
        while (await engine.stores.of(owner).documents.get(record.id)).status not in {"ready", "failed"}:
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def client(house: Served, token: str, *, through: int = 0, mode: str = "auto") -> AsyncGenerator[Client]:
    """The SDK's own, straight or through a proxy at a port."""
    address = f"http://127.0.0.1:{through}" if through else house.address
    headers = {"Authorization": f"Bearer {token}", **({"Connection": "close"} if through else {})}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as opened,
    ):
        yield opened


async def test_libraries_are_searched_by_name_with_document_and_page(house: Served):
    await shelve(house.engine, ADMIN, "Vaults", "vault.md", "# The vault\n\nThe vault opens with the word heliotrope.")
    await shelve(house.engine, ADMIN, "Cats", "cats.md", "The cat sleeps in the vault of heaven.")
    token = await house.engine.outward.of(ADMIN).renew_token()
    async with client(house, token) as asked:
        tools = {tool.name: tool for tool in (await asked.list_tools()).tools}
        assert set(tools) == {"search_library", "ask"}
        project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))["project"]
        assert asked.server_info is not None
        assert (asked.server_info.name, asked.server_info.version) == ("parlour", project["version"])
        assert "Cats, Vaults" in str(tools["search_library"].input_schema)
        found = await asked.call_tool("search_library", {"question": "vault", "library": "vaults", "k": 3})
        (passage,) = (found.structured_content or {})["passages"]
        assert (passage["document"], "heliotrope" in passage["text"]) == ("vault.md", True)
        assert found.content[0].text.startswith("[1] vault.md")  # type: ignore[union-attr]
        both = await asked.call_tool("search_library", {"question": "vault"})
        assert len((both.structured_content or {})["passages"]) == 2
        wrong = await asked.call_tool("search_library", {"question": "vault", "library": "Dogs"})
        assert wrong.is_error
        assert "There is no library named 'Dogs'. Known: Cats, Vaults" in wrong.content[0].text  # type: ignore[union-attr]
        bad = await asked.call_tool("search_library", {"question": "vault", "k": 1000})
        assert bad.is_error


async def test_the_assistant_answers_and_names_its_sources(house: Served):
    await shelve(house.engine, ADMIN, "Vaults", "vault.md", "The vault opens with the word heliotrope.")
    token = await house.engine.outward.of(ADMIN).renew_token()
    async with client(house, token) as asked:
        answer = await asked.call_tool("ask", {"question": "With which word does the vault open?"})
    assert answer.content[0].text == "The vault opens with heliotrope [1].\n\n[1] vault.md"  # type: ignore[union-attr]


@pytest.fixture
async def slow_house(tmp_path: Path) -> AsyncGenerator[Served]:
    model = ScriptedModel(Reply(text="At last.", delay=4))
    settings = Settings(home=tmp_path / "home", retrieval="keyword", check_claims=False)
    async with Engine(settings, model=model) as engine, served(engine, settings) as house:
        yield house


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_answer_comes_through_a_proxy_that_gives_up_sooner_than_the_model_answers(
    slow_house: Served, mode: str, monkeypatch: pytest.MonkeyPatch
):
    for where, name in ((EventSourceResponse, "DEFAULT_PING_INTERVAL"), (modern, "_SSE_PING_INTERVAL")):
        assert getattr(where, name) <= 15
        monkeypatch.setattr(where, name, 0.3)
    token = await slow_house.engine.outward.of(ADMIN).renew_token()
    with ImpatientProxy(urlsplit(slow_house.address).port or 0, 2.0) as proxy:
        async with client(slow_house, token, through=proxy.port, mode=mode) as asked:
            answer = await asked.call_tool("ask", {"question": "Why?"})
    assert answer.content[0].text == "At last."  # type: ignore[union-attr]
    assert proxy.gave_up == 0


async def test_a_program_that_takes_no_streams_gets_its_answer_whole(house: Served):
    token = await house.engine.outward.of(ADMIN).renew_token()
    ask = {"name": "ask", "arguments": {"question": "With which word?"}}
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ask}
        answer = await http.post(f"{house.address}/mcp", json=asked)
    assert answer.headers["content-type"] == "application/json"
    assert "heliotrope" in answer.json()["result"]["content"][0]["text"]


async def test_what_a_person_would_have_to_agree_to_is_refused(house: Served):
    await house.engine.toolbox.of(ADMIN).switch("storage", on=True)
    token = await house.engine.outward.of(ADMIN).renew_token()
    async with client(house, token) as asked:
        await asked.call_tool("ask", {"question": "first"})
        answer = await asked.call_tool("ask", {"question": "store it"})
    assert answer.content[0].text == "No."  # type: ignore[union-attr]
    model: Any = house.engine.model
    told = model.requests[-1].messages[-1]
    assert (told.role, (told.extra or {})["failed"]) == ("function", "refused_unattended")


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer x", "Basic {token}", "Bearer {token}x", "Bearer {other}"])
async def test_nobody_comes_in_without_a_token_that_counts(house: Served, header: str):
    other = await house.engine.outward.of(ADMIN).renew_token()
    token = await house.engine.outward.of(ADMIN).renew_token()  # the other no longer counts
    given = header.format(token=token, other=other)
    async with httpx.AsyncClient() as http:
        for method in ("GET", "POST", "DELETE"):
            reply = await http.request(
                method, f"{house.address}/mcp", headers={"Authorization": given} if given else {}
            )
            assert reply.status_code == 401
            assert reply.headers["www-authenticate"].startswith("Bearer")
    assert (await house.engine.outward.of(ADMIN).token()) is not None
    await house.engine.outward.of(ADMIN).revoke_token()
    assert (await house.engine.outward.of(ADMIN).token()) is None
    with pytest.raises((MCPError, httpx2.HTTPError, BaseExceptionGroup)):
        async with client(house, token):
            pass


async def test_a_token_is_kept_as_its_print_alone(house: Served, tmp_path: Path):
    token = await house.engine.outward.of(ADMIN).renew_token()
    kept = b"".join(path.read_bytes() for path in (tmp_path / "home").glob("parlour.db*"))
    assert token.encode() not in kept
    assert token.rpartition(".")[2].encode() not in kept


async def test_a_token_opens_its_owners_libraries_alone(house: Served):
    await shelve(house.engine, ADMIN, "Vaults", "vault.md", "The vault opens with the word heliotrope.")
    token = await house.engine.outward.of("b-somebody").renew_token()
    async with client(house, token) as asked:
        assert "Vaults" not in str((await asked.list_tools()).tools)
        found = await asked.call_tool("search_library", {"question": "vault"})
        assert found.structured_content == {"passages": []}


@pytest.mark.parametrize(
    ("headers", "status"), [({"Origin": "https://evil.example"}, 403), ({"Host": "evil.example"}, 403)]
)
async def test_pages_of_other_sites_and_other_names_are_refused_whatever_they_carry(
    house: Served, headers: dict[str, str], status: int
):
    token = await house.engine.outward.of(ADMIN).renew_token()
    async with httpx.AsyncClient() as http:
        given = {"Authorization": f"Bearer {token}", **headers}
        assert (await http.post(f"{house.address}/mcp", headers=given, json={})).status_code == status


def test_the_owner_of_this_machine_is_the_one_that_tokens_name() -> None:
    from core.storage.base import LOCAL_OWNER

    assert LOCAL_OWNER == ADMIN


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_who_wants_to_know_is_told_what_is_going_on_while_the_assistant_answers(house: Served, mode: str):
    token = await house.engine.outward.of(ADMIN).renew_token()
    told: list[tuple[float, float | None, str | None]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with client(house, token, mode=mode) as asked:
        await asked.call_tool("ask", {"question": "With which word does the vault open?"})
        await asked.call_tool("ask", {"question": "Keep that."}, progress_callback=heard)
    assert told[:2] == [(1.0, None, "The tool storage is called."), (2.0, None, "The tool storage failed.")]


async def test_words_on_a_text_that_grows_come_once_a_second_and_those_on_tools_at_once():
    now, said = 0.0, list[str]()

    async def tell(done: float, total: float | None, message: str) -> None:
        assert (done, total) == (len(said) + 1, None)
        said.append(message)

    telling = Telling(tell, lambda: now)
    for seconds, event in (
        (0.5, ReasoningDelta("Hm.")),
        (0.6, ReasoningDelta("Hm.")),
        (0.1, CallStarted("1", "storage")),
        (0.1, ToolFinished("1", Message("function", "kept", name="storage"))),
        (0.9, TextDelta("x" * 1200)),
        (0.2, TextDelta("yz")),
    ):
        now += seconds
        await telling.heard(event)
    assert said == [
        "The model thinks.",
        "The tool storage is called.",
        "The tool storage is done.",
        "The answer is being written: 1,202 characters so far.",
    ]
