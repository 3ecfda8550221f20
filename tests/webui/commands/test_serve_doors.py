"""`parlour serve` with each of its flags, and `agent.serve` with the page and doors in one process: real requests."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from core.testing.model_server import ModelServer
from core.testing.script import Reply
from tests.webui.commands.own_terminal import ROOT, Terminal

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # processes; the doors themselves: tests/doors/test_one_agent.py

TOKEN = "a-long-token-of-this-test"
ASKED: Any = [{"role": "user", "content": "What do herons do?"}]
_PROGRAM = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from core import FnCallAgent

agent = FnCallAgent(llm=json.loads(sys.argv[1]), name="Heron", description="Knows herons.")
try:
    agent.serve(page=True, openai=True, mcp=True, a2a=True, port=0)
except KeyboardInterrupt:
    pass
"""


@pytest.fixture
def service() -> Iterator[ModelServer]:
    with ModelServer(Reply(text="They fish.")) as server:
        yield server


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLOUR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PARLOUR_TOKEN", TOKEN)


def settings(service: ModelServer) -> dict[str, Any]:
    return {"model": "scripted", "model_type": "openai", "base_url": service.base_url, "api_key": "sk-test-0123"}


def written(folder: Path, service: ModelServer, **more: Any) -> str:
    file = folder / "heron.json"
    about = {"llm": settings(service), "name": "Heron", "description": "Knows herons.", **more}
    file.write_text(json.dumps(about), encoding="utf-8")
    return str(file)


@contextmanager
def served(*arguments: str) -> Iterator[tuple[str, list[str]]]:
    """`parlour serve` in a process of its own; yields its address and what it has said until then."""
    given = ["serve", *arguments, "--port", "0"]
    with Terminal(*given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        yield _told(process, said := [], has_page="--page" in arguments), said
        process.interrupt()
    assert process.returncode == 0, said


def _told(process: subprocess.Popen[bytes], said: list[str], *, has_page: bool) -> str:
    """The address, once it is told: with the page on the line that it is ready, else with the first place."""
    assert process.stdout is not None
    for line in map(bytes.decode, process.stdout):
        said.append(line)
        found = re.search(r"http://[\w.:]+\d", line)
        if found is not None and (not has_page or "is ready at" in line):
            return found[0]
    raise AssertionError(said)


def client(address: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{address}/v1", api_key=TOKEN, max_retries=0)


def says(address: str) -> str | None:
    return client(address).chat.completions.create(model="Heron", messages=ASKED).choices[0].message.content


async def asked_over_mcp(address: str) -> str:
    http = httpx_client()
    async with (
        http,
        streamable_http_client(f"{address}/mcp", http_client=http) as (reading, writing, *_),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        result: Any = await session.call_tool("ask", {"question": "What do herons do?"})
        return str(result.content[0].text)


def httpx_client() -> Any:
    import httpx2

    return httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=30)


def page(address: str, query: str = "") -> httpx.Response:
    with httpx.Client(follow_redirects=True, timeout=30) as browser:
        return browser.get(f"{address}/{query}")


def card(address: str) -> Any:
    return httpx.get(f"{address}/.well-known/agent-card.json", timeout=30)


async def test_the_page_and_every_door_answer_from_one_process(service: ModelServer) -> None:
    command = [sys.executable, "-c", _PROGRAM, json.dumps(settings(service))]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            address = _told(process, [], has_page=True)
            assert says(address) == "They fish."
            assert await asked_over_mcp(address) == "They fish."
            assert card(address).json()["name"] == "Heron"
            assert page(address).status_code == 401
            assert "text/html" in page(address, f"?token={TOKEN}").headers["content-type"]
            with pytest.raises(openai.AuthenticationError):
                openai.OpenAI(base_url=f"{address}/v1", api_key="another-key-1234", max_retries=0).models.list()
        finally:
            process.send_signal(2)
            said = process.communicate(timeout=30)[0].decode()
    assert process.returncode == 0, said
    assert "Traceback" not in said


async def test_each_door_of_the_command_answers_and_no_other(tmp_path: Path, service: ModelServer) -> None:
    file = written(tmp_path, service)
    with served(file, "--openai") as (address, _):
        assert says(address) == "They fish."
        assert [httpx.post(f"{address}{place}", timeout=30).status_code for place in ("/mcp", "/a2a")] == [401, 401]
        shown = {"authorization": f"Bearer {TOKEN}"}
        assert httpx.post(f"{address}/mcp", headers=shown, timeout=30).status_code == 404
        assert card(address).status_code in {401, 404}
    with served(file, "--mcp", "--a2a") as (address, _):
        assert await asked_over_mcp(address) == "They fish."
        assert card(address).json()["name"] == "Heron"
        with pytest.raises(openai.NotFoundError):
            says(address)


def test_what_is_allowed_runs_and_a_variable_fills_the_file(tmp_path: Path, service: ModelServer) -> None:
    file = written(tmp_path, service, prompt={"template": "Speak of {{bird}}.", "variables": {"bird": "gulls"}})
    with served(file, "--openai", "--var", "bird=herons", "--allow", "save_note", "--host", "127.0.0.1") as (
        address,
        _,
    ):
        assert says(address) == "They fish."
    assert "herons" in str(service.requests[-1].messages[0]["content"])


def test_the_page_stands_beside_a_door_where_it_is_asked_for(tmp_path: Path, service: ModelServer) -> None:
    with served(written(tmp_path, service), "--openai", "--page", "--lang", "en") as (address, said):
        assert says(address) == "They fish."
        assert page(address, f"?token={TOKEN}").status_code == 200
    assert "/v1" in "".join(said)
