"""MCP against real servers: processes over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.agents.basic import FnCallAgent
from core.bridge.sync import run
from core.errors import McpError, ServerMisbehavedError, ServerUnreachableError, SettingsError, UnknownNameError
from core.mcp.pool import MCPClient, MCPManager
from core.messages.content import ContentItem
from core.messages.message import Message
from core.messages.transcript import call_message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.runner import ToolRunner
from tests import ports

pytestmark = pytest.mark.anyio

_PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
_SERVER = '''
import os, sys, time
from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp_types import TextContent

server = MCPServer("test")

@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

@server.tool()
def environment() -> str:
    """What the server inherited."""
    return ",".join(sorted(os.environ))

@server.tool()
def picture() -> list:
    """A text and a picture."""
    return ["look", Image(data=b"\\x89PNG\\r\\n\\x1a\\n", format="png")]

@server.tool()
def broken() -> str:
    """Fail."""
    raise ValueError("the pump is broken")

@server.tool()
async def slow(seconds: float) -> str:
    """Wait."""
    import anyio
    await anyio.sleep(seconds)
    return "waited"

together = []

@server.tool()
async def meet(number: int) -> str:
    """Wait until so many calls are here at once."""
    import anyio
    together.append(number)
    with anyio.fail_after(30):
        while len(together) < number:
            await anyio.sleep(0.01)
    return "met"

@server.tool()
def die() -> str:
    """End the process."""
    os._exit(3)

if len(sys.argv) > 1:
    server.run(sys.argv[1], port=int(sys.argv[2]), host="127.0.0.1")
else:
    server.run()
'''
# A server in a dozen lines that leaves out of its schemas whatever can be left out.
_TERSE = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, answer = request["method"], {"error": {"code": -32601, "message": "no such method"}}
    if method == "initialize":
        answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "terse", "version": "1"}}}
    if method == "tools/list":
        answer = {"result": {"tools": [{"name": "do it!", "inputSchema": {"type": "object", "required": ["ghost"]}}]}}
    if method == "tools/call":
        answer = {"result": {"content": [], "structuredContent": {"done": True}}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"""
# Tools without the SDK, which takes a second to load: for what is asked of our side alone.
_PLAIN = """
import json, os, sys

def called(name, given):
    if name == "die":
        os._exit(3)
    return str(given["a"] + given["b"]) if name == "add" else ",".join(sorted(os.environ))

for line in sys.stdin:
    request = json.loads(line)
    method, answer = request["method"], {"error": {"code": -32601, "message": "no such method"}}
    asked = request.get("params") or {}
    if "id" not in request or asked.get("name") == "slow":
        continue
    if method == "initialize":
        answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "plain", "version": "1"}}}
    if method == "tools/list":
        names = ("add", "environment", "slow", "die")
        answer = {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}}
    if method == "tools/call":
        said = called(asked["name"], asked.get("arguments") or {})
        answer = {"result": {"content": [{"type": "text", "text": said}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcp") / "server.py"
    path.write_text(_SERVER)
    return path


@pytest.fixture(scope="module")
def stdio(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("plain") / "server.py"
    path.write_text(_PLAIN)
    return {"command": sys.executable, "args": [str(path)], "timeout": 20}


@pytest.fixture(scope="module")
def shared(script: Path) -> Iterator[MCPClient]:
    """One connection for all that leave it as it was: a server takes a second to start."""
    client = MCPClient("test", {"command": sys.executable, "args": [str(script)], "timeout": 20})
    run(client.connect())
    yield client
    run(client.aclose())


@pytest.fixture(scope="module", params=["streamable-http", "sse"])
def address(request: pytest.FixtureRequest, script: Path) -> Iterator[str]:
    port = ports.free_port()
    process = subprocess.Popen(
        [sys.executable, str(script), request.param, str(port)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/{'mcp' if request.param == 'streamable-http' else 'sse'}"
    finally:
        process.terminate()
        process.wait(10)


async def test_tools_of_a_process_are_named_server_tool_and_run(shared: MCPClient):
    client = shared
    names = [tool.name for tool in client.tools]
    assert names[:2] == ["test-add", "test-environment"]
    assert client.tools[0].function["parameters"]["required"] == ["a", "b"]
    assert (await client.call("add", {"a": 2, "b": 3})).text == "5"
    with pytest.raises(UnknownNameError, match="Did you mean 'add'"):
        await client.call("ad")


async def test_tools_over_http_run_too(address: str):
    async with MCPClient("web", {"url": address, "headers": {"X-Key": "secret"}}) as client:
        assert (await client.call("add", {"a": 2, "b": 3})).text == "5"
        results = await asyncio.gather(*(client.call("add", {"a": n, "b": 1}) for n in range(20)))
        assert [result.text for result in results] == [str(n + 1) for n in range(20)]


async def test_pictures_come_as_pictures_and_errors_as_failed(shared: MCPClient):
    client = shared
    shown = await client.call("picture")
    assert shown.text == "look"
    assert shown.items == (ContentItem(image=f"data:image/png;base64,{_PIXEL}"),)
    failed = await client.call("broken")
    assert "broken" in failed.text
    assert failed.extra == {"failed": "tool_failed"}


async def test_a_failed_result_reaches_the_model_as_failed(shared: MCPClient):
    client = shared
    runner = ToolRunner({tool.name: tool for tool in client.tools})
    events = [event async for event in runner.run([call_message("c", "test-broken", "{}")])]
    message = events[-1].message  # type: ignore[union-attr]
    assert (message.extra or {})["failed"] == "tool_failed"


async def test_a_child_process_sees_none_of_our_keys(stdio: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-private")
    async with MCPClient("test", {**stdio, "env": {"GIVEN": "1"}}) as client:
        seen = (await client.call("environment")).text.split(",")
    assert "GIVEN" in seen
    assert "PATH" in seen
    assert "OPENAI_API_KEY" not in seen
    assert len(seen) < 15


async def test_three_calls_over_one_server_run_at_the_same_time(shared: MCPClient):
    answers = await asyncio.gather(*(shared.call("meet", {"number": 3}) for _ in range(3)))
    assert [one.text for one in answers] == ["met"] * 3


async def test_a_call_that_takes_too_long_ends_and_the_server_stays_usable(stdio: dict[str, Any]):
    async with MCPClient("test", {**stdio, "timeout": 0.5}) as client:
        with pytest.raises(ServerMisbehavedError, match=r"did not answer in 0\.5 seconds"):
            await client.call("slow", {"seconds": 30})
        assert (await client.call("add", {"a": 1, "b": 1})).text == "2"


async def test_a_server_that_dies_says_so_and_is_started_again_by_the_next_call(stdio: dict[str, Any]):
    async with MCPClient("test", stdio) as client:
        with pytest.raises(ServerUnreachableError, match="has ended"):
            await client.call("die")
        assert (await client.call("add", {"a": 1, "b": 1})).text == "2"


async def test_a_server_that_dies_again_and_again_is_started_less_and_less(stdio: dict[str, Any]):
    async with MCPClient("test", stdio) as client:
        for _ in range(6):
            vars(vars(client)["_session"])["_backoff"].failed()
        with pytest.raises(ServerUnreachableError, match="has ended"):
            await client.call("die")
        with pytest.raises(ServerUnreachableError, match=r"has ended, and is started again in \d\d seconds"):
            await client.call("add", {"a": 1, "b": 1})


async def test_a_server_with_incomplete_schemas_is_accepted(tmp_path: Path):
    path = tmp_path / "terse.py"
    path.write_text(_TERSE)
    async with MCPClient("my server", {"command": sys.executable, "args": [str(path)]}) as client:
        (tool,) = client.tools
        assert tool.name == "my_server-do_it_"
        assert tool.description == "do it!"
        assert tool.function["parameters"] == {"type": "object", "properties": {}, "required": []}
        assert json.loads((await client.call("do it!")).text) == {"done": True}


async def test_a_program_that_is_not_there_is_one_clear_sentence():
    with pytest.raises(ServerUnreachableError, match=r"no program .no-such-program.\..*Check its command"):
        await MCPClient("gone", {"command": "no-such-program"}).connect()


async def test_a_server_that_ends_at_once_is_quoted(tmp_path: Path):
    path = tmp_path / "bad.py"
    path.write_text("raise SystemExit('the licence file is missing')")
    with pytest.raises(ServerUnreachableError, match="the licence file is missing"):
        await MCPClient("bad", {"command": sys.executable, "args": [str(path)]}).connect()


async def test_a_server_that_ends_at_once_is_quoted_by_its_error_output(tmp_path: Path):
    path = tmp_path / "bad.py"
    says = "print('loading', flush=True)\nsys.stderr.write('ERROR: set SHOP_KEY first\\nIt is in your account.\\n')"
    path.write_text(f"import sys\n{says}\nsys.stderr.flush()\nprint('bye', flush=True)\nsys.exit(1)")
    with pytest.raises(ServerUnreachableError) as failed:
        await MCPClient("bad", {"command": sys.executable, "args": [str(path)]}).connect()
    assert "It wrote: ERROR: set SHOP_KEY first It is in your account. " in str(failed.value)


async def test_a_server_that_ends_by_an_exception_is_quoted_by_what_it_says(tmp_path: Path):
    path = tmp_path / "bad.py"
    path.write_text("import sys\nsys.stderr.write('Starting.\\n')\n{}['SHOP_KEY']")
    with pytest.raises(ServerUnreachableError, match="It wrote: KeyError: 'SHOP_KEY'"):
        await MCPClient("bad", {"command": sys.executable, "args": [str(path)]}).connect()


async def test_a_server_that_repeats_its_key_is_quoted_without_it(tmp_path: Path):
    path = tmp_path / "bad.py"
    path.write_text("import os, sys\nsys.exit('x' * 190 + ' the key ' + os.environ['KEY'] + ' is not valid')")
    server = {"command": sys.executable, "args": [str(path)], "env": {"KEY": "sk-private-key"}}
    with pytest.raises(ServerUnreachableError, match="It wrote: xxx") as failed:
        await MCPClient("bad", server).connect()
    assert "sk-" not in str(failed.value)


async def test_a_server_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("core.mcp.stdio._LEAVING", 0.1)
    path = tmp_path / "mute.py"
    path.write_text(f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")
    before = time.monotonic()
    with pytest.raises(ServerUnreachableError, match="did not answer within 1 seconds"):
        await MCPClient("mute", {"command": sys.executable, "args": [str(path)], "connect_timeout": 1}).connect()
    assert time.monotonic() - before < 6
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_an_address_where_nobody_listens_is_one_clear_sentence(free_port: int):
    with pytest.raises(McpError, match="MCP server 'web'"):
        await MCPClient("web", {"url": f"http://127.0.0.1:{free_port}/mcp", "connect_timeout": 10}).connect()


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({}, "need an object under mcpServers"),
        ({"mcpServers": {"x": {}}}, "'x' are wrong: a server needs a command or a url"),
        ({"mcpServers": {"x": {"url": "ftp://y"}}}, "must begin with http"),
        ({"mcpServers": {"x": {"command": "y", "timeout": -1}}}, "field 'timeout'"),
        ({"mcpServers": {"x": "y"}}, "'x' are wrong"),
    ],
)
def test_wrong_settings_are_one_sentence_that_names_the_server(config: dict[str, Any], sentence: str):
    with pytest.raises(SettingsError, match=sentence):
        MCPManager().init_config(config)


def test_an_agent_uses_a_server_from_synchronous_code_and_shares_it(stdio: dict[str, Any]):
    servers = {"mcpServers": {"test": stdio, "off": {"command": "nothing", "disabled": True}}}
    try:
        model = ScriptedModel(Reply(calls=[("test-add", {"a": 40, "b": 2})]), "It is 42.")
        agent = FnCallAgent([servers], model)
        reply = agent.run_nonstream([Message("user", "40 + 2")])
        assert [str(message.content) for message in reply] == ["", "42", "It is 42."]
        other = FnCallAgent([servers], model)
        assert other.function_map["test-add"] is agent.function_map["test-add"]
    finally:
        MCPManager.shared().close()


def test_one_server_that_cannot_start_ends_those_just_started(stdio: dict[str, Any]):
    manager = MCPManager()
    with pytest.raises(ServerUnreachableError):
        manager.init_config({"mcpServers": {"test": stdio, "gone": {"command": "no-such-program"}}})
    manager.close()
