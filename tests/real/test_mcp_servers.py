"""MCP servers that people use, themselves: from PyPI and from npm, as `make test-all` installs them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import ServerMisbehavedError
from core.mcp.pool import MCPClient
from core.mcp.servers import Servers
from core.mcp.settings import ServerSettings

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PYPI = Path(sys.prefix) / "mcp-servers" / ("Scripts" if os.name == "nt" else "bin")
NPM = Path(sys.prefix) / "mcp-servers-npm" / "node_modules" / ".bin"


def from_pypi(name: str, *args: str) -> dict[str, Any]:
    return {"command": str(PYPI / f"mcp-server-{name}"), "args": list(args)}


def from_npm(name: str, *args: str, **more: Any) -> dict[str, Any]:
    return {"command": str(NPM / f"mcp-server-{name}"), "args": list(args), **more}


def names(client: MCPClient) -> list[str]:
    return [tool.name.partition("-")[2] for tool in client.tools]


async def test_time_tells_and_converts():
    async with MCPClient("time", from_pypi("time")) as client:
        assert names(client) == ["get_current_time", "convert_time"]
        given = {"source_timezone": "Asia/Shanghai", "time": "08:30", "target_timezone": "UTC"}
        told = json.loads((await client.call("convert_time", given)).text)
        assert told["target"]["datetime"].endswith("T00:30:00+00:00")
        wrong = await client.call("get_current_time", {"timezone": "Nowhere/Land"})
        assert wrong.extra == {"failed": "tool_failed"}


async def test_fetch_refuses_this_machine_by_itself_and_offers_a_prompt(free_port: int):
    async with MCPClient("fetch", from_pypi("fetch")) as client:
        assert names(client) == ["fetch"]
        assert [prompt.name for prompt in await client.prompts()] == ["fetch"]
        result = await client.call("fetch", {"url": f"http://127.0.0.1:{free_port}/"})
        assert result.extra == {"failed": "tool_failed"}


async def test_git_commits_in_a_repository(tmp_path: Path):
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    for key, value in (("user.name", "A"), ("user.email", "a@example.org")):
        subprocess.run(["git", "-C", str(repository), "config", key, value], check=True)
    (repository / "a.txt").write_text("one\n")
    where = {"repo_path": str(repository)}
    async with MCPClient("git", from_pypi("git", "--repository", str(repository))) as client:
        assert len(names(client)) == 12
        await client.call("git_add", {**where, "files": ["a.txt"]})
        await client.call("git_commit", {**where, "message": "The first"})
        assert "The first" in (await client.call("git_log", where)).text
        destructive = {tool.name for tool in client.tools if tool.destructive}
        assert destructive <= {"git-git_reset", "git-git_checkout", "git-git_commit", "git-git_add"}


async def test_everything_shows_every_kind_of_content():
    asked: list[str] = []

    async def answer(server: str, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        asked.append(message)
        return {"name": "Lin", "check": True}

    async with MCPClient("everything", from_npm("everything"), elicit=answer) as client:
        assert len(client.tools) == 17
        assert "7" in (await client.call("get-sum", {"a": 3, "b": 4})).text
        (picture,) = (await client.call("get-tiny-image")).items
        assert str(picture.image).startswith("data:image/png;base64,")
        assert "demo://resource" in (await client.call("get-resource-links", {"count": 2})).text
        reference = await client.call("get-resource-reference", {"resourceType": "Text", "resourceId": 1})
        assert "demo://resource" in reference.text
        assert json.loads((await client.call("get-structured-content", {"location": "New York"})).text)
        told: list[Any] = []
        long = next(tool for tool in client.tools if tool.name == "everything-trigger-long-running-operation")
        await long.call({"duration": 1, "steps": 4}, progress=lambda *step: told.append(step))  # type: ignore[misc]
        assert [step[1:] for step in told] == [(1, 4), (2, 4), (3, 4), (4, 4)]
        await client.call("trigger-elicitation-request")
        assert len(asked) == 1
        assert len(await client.resources()) >= 9
        assert (await client.read("demo://resource/static/document/features.md")).text
        assert [message.role for message in await client.prompt("args-prompt", {"city": "Lyon"})] == ["user"]
        environment = (await client.call("get-env")).text
        assert "PYTEST_CURRENT_TEST" not in environment


async def test_filesystem_reads_and_writes_inside_its_folder_alone(tmp_path: Path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.txt").write_text("private")
    async with MCPClient("files", from_npm("filesystem", str(inside))) as client:
        assert len(names(client)) == 14
        await client.call("write_file", {"path": str(inside / "a.txt"), "content": "你好"})
        assert "你好" in (await client.call("read_text_file", {"path": str(inside / "a.txt")})).text
        outside = await client.call("read_text_file", {"path": str(tmp_path / "secret.txt")})
        assert outside.extra == {"failed": "tool_failed"}
        assert "private" not in outside.text


async def test_memory_keeps_what_it_is_told_over_a_restart(tmp_path: Path):
    server = from_npm("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})
    entity = {"name": "Lin", "entityType": "person", "observations": ["likes tea"]}
    async with MCPClient("memory", server) as client:
        await client.call("create_entities", {"entities": [entity]})
    async with MCPClient("memory", server) as client:
        assert "likes tea" in (await client.call("search_nodes", {"query": "Lin"})).text


async def test_all_of_them_start_at_once_and_nothing_stays(tmp_path: Path):
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    servers = Servers()
    given = {
        "time": from_pypi("time"),
        "fetch": from_pypi("fetch"),
        "git": from_pypi("git"),
        "everything": from_npm("everything"),
        "filesystem": from_npm("filesystem", str(tmp_path)),
        "memory": from_npm("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}),
    }
    wanted = [servers.of("me").server(name, ServerSettings.model_validate(server)) for name, server in given.items()]
    tools = await servers.tools_of(wanted)
    assert {server.name: server.state for server in wanted} == dict.fromkeys(given, "ready")
    assert len({tool.name for tool in tools}) == len(tools)
    assert min(await asyncio.gather(*(server.health() for server in wanted))) > 0
    await servers.aclose()
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


async def test_a_call_that_is_given_up_leaves_the_server_usable():
    async with MCPClient("everything", {**from_npm("everything"), "timeout": 1}) as client:
        with pytest.raises(ServerMisbehavedError, match="did not answer in 1 seconds"):
            await client.call("trigger-long-running-operation", {"duration": 30, "steps": 2})
        assert "still" in (await client.call("echo", {"message": "still here"})).text
