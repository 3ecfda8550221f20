"""Why a server is not there: each reason by a key of its own, for which the page has a sentence in both languages."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core.errors import McpError
from core.mcp.pool import MCPClient
from webui.words import Words

pytestmark = pytest.mark.anyio


async def why(settings: dict[str, Any]) -> McpError:
    with pytest.raises(McpError) as caught:
        await MCPClient("far", settings).connect()
    return caught.value


@pytest.mark.parametrize(
    ("answer", "key", "said"),
    [
        (b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", "mcp_status", "“far” answers with the status 503."),
        (b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", "mcp_sign_in", "“far” requires you to sign in."),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<p/>",
            "mcp_none",
            "What answers at the address of “far” is not an MCP server.",
        ),
        (b"", "mcp_late", "“far” did not answer within 0.5 seconds."),
    ],
)
async def test_an_address_that_is_no_server_says_why(answer: bytes, key: str, said: str):
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answer:
            writer.write(answer)
            await writer.drain()
        else:
            await over.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        error = await why({"url": f"http://127.0.0.1:{port}/mcp", "connect_timeout": 0.5 if not answer else 20})
    finally:
        over.set()
        server.close()
    assert error.words_key == key
    assert Words("en").error(error).startswith(said)
    assert "far" in Words("zh").error(error)


@asynccontextmanager
async def answering(tools: Callable[[int], tuple[str, bytes]]) -> AsyncIterator[str]:
    """The address of a server that says who it is as any other, and lists its tools so: headers and a body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n")).lower():
            size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            asked = json.loads(await reader.readexactly(size) or b"{}")
            headers, body = "content-type: application/json\r\n", b""
            if asked.get("method") == "initialize":
                version = asked["params"]["protocolVersion"]
                about = {"protocolVersion": version, "capabilities": {"tools": {}}}
                about["serverInfo"] = {"name": "far", "version": "1"}
                body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": about}).encode()
            elif asked.get("method") == "tools/list":
                more, body = tools(asked["id"])
                headers += more
            elif "id" in asked:
                error = {"code": -32601, "message": "unknown"}
                body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}).encode()
            status = "200 OK" if body else "202 Accepted"
            writer.write(f"HTTP/1.1 {status}\r\n{headers}content-length: {len(body)}\r\n\r\n".encode() + body)

    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(quiet, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()


def _bomb(_: int) -> tuple[str, bytes]:
    packing = zlib.compressobj(9, wbits=31)
    pieces = [packing.compress(b" " * 2**20) for _ in range(64)]
    return "content-encoding: gzip\r\n", b"".join([*pieces, packing.flush()])


def _deep(number: int) -> tuple[str, bytes]:
    schema = '{"type": "object", "properties": {"a": ' * 300 + "{}" + "}}" * 300
    return "", f'{{"jsonrpc": "2.0", "id": {number}, "result": {{"tools": [{{"inputSchema": {schema}}}]}}}}'.encode()


@pytest.mark.parametrize(
    ("tools", "key", "said"),
    [
        (_bomb, "mcp_too_large", "“far” sent more than 16 MB at once."),
        (_deep, "mcp_too_deep", "“far” sent something that is nested too deeply to be read."),
    ],
)
async def test_an_answer_that_cannot_be_taken_in_says_so(
    tools: Callable[[int], tuple[str, bytes]], key: str, said: str
) -> None:
    async with answering(tools) as url:
        error = await why({"url": url})
    assert error.words_key == key
    assert Words("en").error(error).startswith(said)
    assert "far" in Words("zh").error(error)


async def test_a_program_whose_tools_are_nested_too_deep_says_so(tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("hostile_server.py"))
    error = await why({"command": sys.executable, "args": [program, "deep", str(tmp_path / "turned")]})
    assert error.words_key == "mcp_too_deep"


async def test_an_address_where_nobody_is_says_so():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        error = await why({"url": f"http://127.0.0.1:{port}/mcp"})
    assert error.words_key == "mcp_refused"
    assert Words("en").error(error).startswith("Nothing answers at the address of “far”.")


async def test_a_program_that_ends_at_once_is_quoted_in_a_sentence_of_the_readers_language(tmp_path: Path):
    path = tmp_path / "bad.py"
    path.write_text("raise SystemExit('the licence file is missing')", "utf-8")
    error = await why({"command": sys.executable, "args": [str(path)]})
    english, chinese = Words("en").error(error), Words("zh").error(error)
    assert english == "“far” ended while it was being started. The last it said: the licence file is missing."
    assert chinese == "“far”在启动时退出了，最后的输出是：the licence file is missing。"
    path.write_text("", "utf-8")
    error = await why({"command": sys.executable, "args": [str(path)]})
    assert Words("en").error(error).startswith("“far” ended while it was being started, and said nothing.")
