"""What servers offer beyond tools, what they may ask, and what their hints are worth: with the SDK's own server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.bridge.sync import run
from core.errors import McpError, ServerMisbehavedError
from core.mcp.pool import MCPClient, MCPManager
from core.mcp.tools import MCPTool
from core.messages.content import ContentItem
from core.messages.transcript import call_message
from core.tools.base import BaseTool
from core.tools.runner import ToolRunner

pytestmark = pytest.mark.anyio

_SERVER = '''
import base64
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import (AudioContent, BlobResourceContents, ElicitRequest, ElicitRequestFormParams, EmbeddedResource,
                       InputRequiredResult, ResourceLink, TextContent, TextResourceContents, ToolAnnotations)
from pydantic import BaseModel

server = MCPServer("offers")

class Person(BaseModel):
    name: str
    age: int

@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def look() -> str:
    """Look."""
    return "seen"

@server.tool(annotations=ToolAnnotations(destructive_hint=True, read_only_hint=True))
def wipe() -> str:
    """Wipe."""
    return "gone"

@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put() -> str:
    """Put."""
    return "put"

@server.tool()
async def count(ctx: Context) -> str:
    """Count to three."""
    for number in range(1, 4):
        await ctx.report_progress(number, 3, f"at {number}")
    return "counted"

@server.tool()
async def greet(ctx: Context) -> str | InputRequiredResult:
    """Greet."""
    if not ctx.input_responses:
        params = ElicitRequestFormParams(message="Who are you?", requested_schema=Person.model_json_schema())
        return InputRequiredResult(input_requests={"who": ElicitRequest(params=params)})
    answer = ctx.input_responses["who"]
    said = answer.content or {}
    return f"Hello {said['name']}, {said['age']}" if answer.action == "accept" else answer.action

@server.tool()
def person() -> Person:
    """A person."""
    return Person(name="Lin", age=6)

@server.tool()
def everything() -> list:
    """All kinds of content."""
    raw = base64.b64encode(b"raw").decode()
    return [
        TextContent(type="text", text="words"),
        AudioContent(type="audio", data=raw, mime_type="audio/wav"),
        AudioContent(type="audio", data=raw, mime_type="text/html"),
        ResourceLink(type="resource_link", uri="file:///a.txt", name="a", description="a file"),
        EmbeddedResource(type="resource", resource=TextResourceContents(uri="memo://1", text="memo")),
        EmbeddedResource(type="resource", resource=BlobResourceContents(uri="memo://2", blob=raw, mime_type="x/y")),
    ]

@server.tool()
async def grow(ctx: Context) -> str:
    """Grow another tool."""
    def fresh() -> str:
        """Fresh."""
        return "fresh"
    server.add_tool(fresh)
    if hasattr(ctx, "notify_tools_changed"):
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return "grown"

@server.resource("memo://today", description="What is new")
def today() -> str:
    return "rain"

@server.resource("memo://{day}")
def day(day: str) -> str:
    return f"memo of {day}"

@server.prompt()
def review(code: str) -> str:
    """Review code."""
    return f"Please review: {code}"

server.run()
'''


@pytest.fixture(scope="module")
def offers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("mcp") / "offers.py"
    path.write_text(_SERVER)
    return {"command": sys.executable, "args": [str(path)], "timeout": 20}


@pytest.fixture(scope="module")
def shared(offers: dict[str, Any]) -> Iterator[MCPClient]:
    """One connection for all that leave it as it was: a server takes a second to start."""
    client = MCPClient("s", offers)
    run(client.connect())
    yield client
    run(client.aclose())


def named(client: MCPClient, name: str) -> BaseTool:
    return next(tool for tool in client.tools if tool.name == f"s-{name}")


async def test_hints_of_a_server_tighten_and_grant_nothing(shared: MCPClient):
    client = shared
    look, wipe, put = (named(client, name) for name in ("look", "wipe", "put"))
    assert look.writes
    assert look.reaches_out
    assert not put.idempotent
    assert wipe.destructive
    assert not look.destructive
    assert look.full_name == "mcp:s:look"
    assert look.wants({}, "en") == "use “look” of the server “s”, which may change something"
    assert look.wants({}, "zh") == "使用服务器“s”的“look”（可能更改内容）"


async def test_a_trusted_server_is_believed_where_it_says_it_only_reads(offers: dict[str, Any]):
    async with MCPClient("s", offers, trusted=True) as client:
        look, wipe, put, count = (named(client, name) for name in ("look", "wipe", "put", "count"))
        assert (look.trusted, look.writes, look.reaches_out) == (True, False, False)
        assert (wipe.writes, wipe.destructive) == (True, True)
        assert (put.idempotent, count.idempotent, count.writes) == (True, False, True)


async def test_all_kinds_of_content_arrive(shared: MCPClient):
    client = shared
    result = await client.call("everything")
    assert result.text == "words\n(a sound that cannot be read)\na: file:///a.txt (a file)\nmemo"
    assert result.items == (
        ContentItem(audio="data:audio/wav;base64,cmF3"),
        ContentItem(file="data:x/y;base64,cmF3"),
    )
    assert '"name": "Lin"' in (await client.call("person")).text


async def test_progress_reaches_whoever_follows_the_call(shared: MCPClient):
    heard: list[tuple[Any, ...]] = []
    client = shared
    runner = ToolRunner({tool.name: tool for tool in client.tools})
    call = call_message("c", "s-count", "{}")
    async for _ in runner.run([call], progress=lambda *told: heard.append(told)):
        pass
    assert [told[1:] for told in heard] == [("at 1", 1, 3), ("at 2", 2, 3), ("at 3", 3, 3)]


async def test_resources_are_listed_and_read_by_programs_and_by_models(shared: MCPClient):
    client = shared
    assert [resource.name for resource in await client.resources()] == ["today", "day"]
    assert (await client.read("memo://today")).text == "rain"
    listed = await named(client, "list_resources").call({})  # type: ignore[misc]
    assert "memo://today · today" in listed.text  # type: ignore[union-attr]
    assert "memo://{day}" in listed.text  # type: ignore[union-attr]
    read = await named(client, "read_resource").call({"uri": "memo://monday"})  # type: ignore[misc]
    assert read.text == "memo of monday"  # type: ignore[union-attr]
    assert named(client, "read_resource").full_name == "mcp:s:read_resource"
    with pytest.raises(McpError):
        await client.read("nothing://here")


async def test_prompts_are_listed_and_filled_in(shared: MCPClient):
    client = shared
    (prompt,) = await client.prompts()
    assert (prompt.name, [argument.name for argument in prompt.arguments or []]) == ("review", ["code"])
    (message,) = await client.prompt("review", {"code": "x = 1"})
    assert (message.role, message.content) == ("user", "Please review: x = 1")


async def test_a_server_that_asks_without_being_allowed_to_hears_a_no(shared: MCPClient):
    client = shared
    with pytest.raises(ServerMisbehavedError, match="Elicitation not supported"):
        await client.call("greet")


@pytest.fixture(params=["asks in between", "asks instead of answering"])
def greeter(request: pytest.FixtureRequest, offers: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """Servers of both ages: the older ask while a call runs, the newer instead of answering it."""
    if request.param == "asks in between":
        hostile = Path(__file__).with_name("hostile_server.py")
        return {"command": sys.executable, "args": [str(hostile), "greets", str(tmp_path / "none")], "timeout": 20}
    return offers


async def test_a_question_of_a_server_reaches_the_user_where_that_is_allowed(greeter: dict[str, Any]):
    asked: list[tuple[str, str, list[str]]] = []

    async def answer(server: str, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        asked.append((server, message, list(schema["properties"])))
        return {"name": "Lin", "age": 6}

    async with MCPClient("s", greeter, elicit=answer) as client:
        assert (await client.call(_greeting(client))).text == "Hello Lin, 6"
    assert asked == [("s", "Who are you?", ["name", "age"])]


async def test_a_no_of_the_user_reaches_the_server(greeter: dict[str, Any]):
    async def decline(*_: Any) -> None:
        return None

    async with MCPClient("s", greeter, elicit=decline) as client:
        assert (await client.call(_greeting(client))).text == "decline"


async def test_a_call_does_not_run_out_of_time_while_the_user_thinks(greeter: dict[str, Any]):
    async def slowly(*_: Any) -> dict[str, Any]:
        await asyncio.wait_for(asyncio.shield(late), 10)
        return {"name": "Lin", "age": 7}

    async with MCPClient("s", {**greeter, "timeout": 0.5}, elicit=slowly) as client:
        loop = client._session._owner.get_loop()  # type: ignore[union-attr]
        late: asyncio.Future[None] = loop.create_future()
        loop.call_soon_threadsafe(lambda: loop.call_later(1.0, late.set_result, None))
        assert (await client.call(_greeting(client))).text == "Hello Lin, 7"


async def test_tools_that_come_later_are_offered_when_the_server_says_so(offers: dict[str, Any]):
    async with MCPClient("s", offers) as client:
        kept = named(client, "look")
        await client.call("grow")
        async with asyncio.timeout(10):
            while not any(tool.name == "s-fresh" for tool in client.tools):
                await asyncio.sleep(0.01)
        assert (await client.call("fresh")).text == "fresh"
        assert named(client, "look") is kept


async def test_settings_may_leave_tools_out(offers: dict[str, Any]):
    async with MCPClient("s", {**offers, "includeTools": ["look", "wipe"], "disabledTools": ["wipe"]}) as client:
        assert [tool.name for tool in client.tools] == ["s-look"]


async def test_an_answer_that_breaks_its_own_schema_is_one_sentence(tmp_path: Path):
    path = tmp_path / "liar.py"
    path.write_text(
        "from mcp.server.lowlevel import Server\n"
        "import anyio, mcp_types as t\n"
        "from mcp.server.stdio import stdio_server\n"
        "async def listed(ctx, params):\n"
        "    out = {'type': 'object', 'properties': {'n': {'type': 'integer'}}, 'required': ['n']}\n"
        "    tool = t.Tool(name='lie', input_schema={'type': 'object'}, output_schema=out)\n"
        "    return t.ListToolsResult(tools=[tool])\n"
        "async def call(ctx, params):\n"
        "    return t.CallToolResult(content=[], structured_content={'n': 'none'})\n"
        "async def main():\n"
        "    server = Server('liar', on_list_tools=listed, on_call_tool=call)\n"
        "    async with stdio_server() as (read, write):\n"
        "        await server.run(read, write, server.create_initialization_options())\n"
        "anyio.run(main)\n"
    )
    async with MCPClient("liar", {"command": sys.executable, "args": [str(path)]}) as client:
        assert isinstance(client.tools[0], MCPTool)
        with pytest.raises(ServerMisbehavedError, match="The MCP server 'liar' failed"):
            await client.call("lie")


def _greeting(client: MCPClient) -> str:
    return "greet" if len(client.tools) > 1 else "act"


async def test_an_agent_of_a_program_reads_resources_only_where_its_settings_say_so(offers: dict[str, Any]):
    manager = MCPManager()
    plain = await manager.connect({"mcpServers": {"s": offers}})
    more = await manager.connect({"mcpServers": {"s": {**offers, "resources": True}}})
    await manager.aclose()
    assert {tool.name for tool in more} - {tool.name for tool in plain} == {"s-list_resources", "s-read_resource"}
