"""The servers of an application: each with a state, none in the way of another."""

from __future__ import annotations

import asyncio
import http.server
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.bridge.sync import shared_loop
from core.errors import McpError, ServerUnreachableError
from core.mcp.journal import ServerLog
from core.mcp.pool import MCPClient
from core.mcp.servers import Servers
from core.mcp.session import Backoff, Session
from core.mcp.settings import ServerSettings
from core.mcp.sign_in import NOBODY
from core.mcp.web import http_client
from core.net.addresses import Reach, open_internet_and_own_network

pytestmark = pytest.mark.anyio

HOSTILE = Path(__file__).with_name("hostile_server.py")
_SLOW = "import runpy, sys, time\ntime.sleep(0.5)\nsys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0])\n"


@pytest.fixture
def of(tmp_path: Path) -> Callable[..., ServerSettings]:
    slow = tmp_path / "slow.py"
    slow.write_text(_SLOW)

    def settings(case: str = "fine", *, late: bool = False, **more: Any) -> ServerSettings:
        arguments = [*([str(slow)] if late else []), str(HOSTILE), case, str(tmp_path / "turned")]
        return ServerSettings.model_validate({"command": sys.executable, "args": arguments, **more})

    return settings


async def test_a_server_has_a_state_and_whoever_shows_it_is_told(of: Callable[..., ServerSettings]):
    told: list[tuple[str, str]] = []
    servers = Servers(changed=lambda owner, name: told.append((owner, name)))
    server = servers.of("me").server("x", of())
    assert (server.state, server.tools) == ("off", [])
    (tool,) = await servers.tools_of([server])
    assert (tool.full_name, server.state, server.error) == ("mcp:x:act", "ready", "")
    assert set(told) == {("me", "x")}
    assert 0 < await server.health() < 5
    assert server.fingerprints.keys() == {"act"}
    assert servers.of("me").server("x", of()) is server
    assert servers.of("me").known("x") is server
    assert servers.of("you").known("x") is None
    await servers.aclose()
    assert (server.state, server.tools) == ("off", [])
    assert _living() == []


async def test_a_server_that_fails_says_why_in_one_sentence_and_hurts_nobody_else(of: Callable[..., ServerSettings]):
    servers = Servers()
    missing = servers.of("me").server("gone", ServerSettings.model_validate({"command": "no-such-program"}))
    mute = servers.of("me").server("mute", of("fine", late=True, connect_timeout=0.2))
    fine = servers.of("me").server("fine", of())
    tools = await servers.tools_of([missing, mute, fine])
    assert [tool.name for tool in tools] == ["fine-act"]
    assert missing.state == mute.state == "failed"
    assert missing.error == (
        "The MCP server 'gone' cannot be started: there is no program 'no-such-program'."
        " Check its command, arguments and environment."
    )
    assert "did not answer within 0.2 seconds" in mute.error
    with pytest.raises(ServerUnreachableError):
        await missing.health()
    await servers.aclose()


async def test_many_servers_start_as_fast_as_the_slowest(of: Callable[..., ServerSettings]):
    servers = Servers()
    began = time.monotonic()
    await servers.tools_of([servers.of("me").server("one", of(late=True))])
    alone = time.monotonic() - began
    began = time.monotonic()
    tools = await servers.tools_of([servers.of("me").server(f"s{number}", of(late=True)) for number in range(4)])
    together = time.monotonic() - began
    await servers.aclose()
    assert len(tools) == 4
    assert together < 2.5 * alone  # one after another: 4


async def test_a_server_that_dies_is_started_again_by_itself_and_keeps_its_tools(of: Callable[..., ServerSettings]):
    states: list[str] = []
    servers = Servers(changed=lambda *_: states.append(server.state))
    server = servers.of("me").server("x", of())
    (tool,) = await servers.tools_of([server])
    states.clear()
    (child,) = _living()
    child.kill()
    async with asyncio.timeout(10):
        while states[-1:] != ["ready"]:
            await asyncio.sleep(0.01)
    assert states[0] == "connecting"
    (again,) = _living()
    assert again.pid != child.pid
    assert (await tool.call({})).text == "did act"  # type: ignore[misc, union-attr]
    await servers.aclose()


async def test_whoever_asks_for_a_server_that_waits_to_be_started_again_does_not_wait_with_it(
    of: Callable[..., ServerSettings],
):
    servers = Servers()
    server = servers.of("me").server("x", of())
    await server.start()
    for _ in range(6):  # by now it would wait for half a minute
        vars(server)["_backoff"].failed()
    (child,) = _living()
    child.kill()
    async with asyncio.timeout(10):
        while server.state != "failed":
            await asyncio.sleep(0.01)
        assert "is started again in" in server.error
        assert await server.health() > 0
    assert server.state == "ready"
    await servers.aclose()
    assert _living() == []


async def test_a_server_that_is_closed_while_it_starts_leaves_nothing(of: Callable[..., ServerSettings]):
    servers = Servers()
    server = servers.of("me").server("x", of(late=True))
    starting = asyncio.create_task(server.start())
    async with asyncio.timeout(10):
        while not _living():
            await asyncio.sleep(0.01)
    await servers.aclose()
    await starting  # whoever waits for it is not cancelled with it
    assert (server.state, _living()) == ("off", [])


async def test_other_settings_are_another_server_and_the_old_one_ends(of: Callable[..., ServerSettings]):
    servers = Servers()
    first = servers.of("me").server("x", of())
    await first.start()
    second = servers.of("me").server("x", of(env={"OTHER": "1"}))
    assert second is not first
    await servers.tools_of([second])
    assert await servers.tools_of([servers.of("you").server("x", of())])
    await servers.of("you").end("x")
    await servers.aclose()
    assert _living() == []


async def test_tools_count_as_agreed_to_when_they_are_first_seen_and_again_when_the_owner_says_so(
    of: Callable[..., ServerSettings], tmp_path: Path
):
    servers = Servers()
    server = servers.of("me").server("x", of("turns"))
    (tool,) = await servers.tools_of([server])
    assert not tool.changed
    before = server.fingerprints
    await tool.call({})  # type: ignore[misc]
    async with asyncio.timeout(10):
        while server.fingerprints == before:
            await asyncio.sleep(0.01)
    assert tool.changed
    assert server.tools[0].changed
    server.approve(server.fingerprints)
    assert not server.tools[0].changed
    assert servers.of("me").server("x", of("turns"), approved=before) is server
    assert server.tools[0].changed
    await servers.aclose()


# -- over HTTP


class _Redirecting(http.server.BaseHTTPRequestHandler):
    seen: list[str] = []
    target = ""
    status = 307

    def do_POST(self) -> None:
        self.seen.append(f"{self.path} {self.headers.get('Authorization', '')}")
        self.send_response(self.status)
        if self.target:
            self.send_header("Location", self.target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[Callable[..., tuple[str, type[_Redirecting]]]]:
    running: list[http.server.ThreadingHTTPServer] = []

    def serve(status: int, target: str = "") -> tuple[str, type[_Redirecting]]:
        handler = type("Handler", (_Redirecting,), {"seen": [], "status": status, "target": target})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}", handler

    yield serve
    for server in running:
        server.shutdown()
        server.server_close()


async def test_a_redirect_to_another_origin_is_not_followed_and_no_header_goes_there(
    service: Callable[..., tuple[str, type[_Redirecting]]],
):
    other, elsewhere = service(200)
    address, here = service(307, f"{other}/stolen")
    with pytest.raises(McpError):
        await MCPClient("x", {"url": f"{address}/mcp", "headers": {"Authorization": "Bearer secret-key"}}).connect()
    assert here.seen
    assert elsewhere.seen == []


async def test_a_login_that_is_missing_is_said_with_what_to_do(
    service: Callable[..., tuple[str, type[_Redirecting]]],
):
    address, _ = service(401)
    with pytest.raises(ServerUnreachableError, match=r"wants you to sign in\..*sign_in.*Authorization"):
        await MCPClient("x", {"url": f"{address}/mcp"}, sign_in=NOBODY).connect()
    with pytest.raises(ServerUnreachableError, match=r"wants a login .status 401.\..*Authorization"):
        await MCPClient("x", {"url": f"{address}/mcp", "headers": {"authorization": "Bearer old"}}).connect()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "169.254.169.254"]
)
@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_owners_out_of_reach_of_this_machine_cannot_name_its_addresses(host: str, path: str):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        servers = Servers()
        settings = ServerSettings.model_validate({"url": f"http://{host}:{port}{path}", "connect_timeout": 5})
        server = servers.of("b-1").server("x", settings, reach=Reach())
        await server.start()
        error = server.error
        await servers.aclose()
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert error.startswith("The MCP server 'x' may not be reached: its address is of this machine or its network.")


async def test_a_name_that_points_here_only_sometimes_is_refused_too(free_port: int):
    answers = [["93.184.216.34", "127.0.0.1"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers[0]

    servers = Servers()
    settings = ServerSettings.model_validate({"url": "http://two.example:8080/mcp", "connect_timeout": 5})
    server = servers.of("b-1").server("x", settings, reach=Reach(resolve=resolve))
    await server.start()
    assert "may not be reached" in server.error
    await servers.aclose()


async def test_the_owner_of_this_machine_may_reach_it(service: Callable[..., tuple[str, type[_Redirecting]]]):
    address, handler = service(403)
    servers = Servers()
    settings = ServerSettings.model_validate({"url": f"{address}/mcp"})
    server = servers.of("local").server("x", settings, reach=Reach(allows=open_internet_and_own_network))
    await server.start()
    assert handler.seen
    assert "status 403" in server.error
    await servers.aclose()


class _Flooding(_Redirecting):
    """Sends events without end."""

    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        event = (
            b'data: {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}\n\n'
        )
        try:
            while True:
                self.wfile.write(event * 100)
        except OSError:
            return


async def test_a_flood_over_http_waits_in_its_own_connection():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Flooding) as service:
        threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{service.server_address[1]}/mcp"
        with pytest.raises(McpError, match=r"did not answer within 0\.5 seconds"):
            await MCPClient("x", {"url": url, "connect_timeout": 0.5}).connect()
        read = 0
        with pytest.raises(TimeoutError):
            async with (
                asyncio.timeout(30) as clock,
                http_client({}, None, ServerLog()) as client,
                client.stream("POST", url) as flood,
            ):
                async for piece in flood.aiter_bytes():
                    if not read:
                        clock.reschedule(asyncio.get_running_loop().time() + 0.5)
                    read += piece.count(b"\n\n")
        service.shutdown()
    assert 0 < read < 10_000  # a heap, a second's worth and a piece; without an end it would be a hundred thousand


class _Forgetful(http.server.BaseHTTPRequestHandler):
    """A server of sessions that has been restarted after the first question: it no longer knows that session."""

    began = 0
    called: list[str] = []

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number, method, session = request.get("id"), request["method"], self.headers.get("Mcp-Session-Id", "")
        if number is None:
            self._send(202, None)
        elif method == "initialize":
            type(self).began += 1
            version = request["params"]["protocolVersion"]
            info = {"name": "forgetful", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
            self._send(200, {"id": number, "result": result})
        elif method == "tools/list":
            self._send(200, {"id": number, "result": {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}})
        elif method == "tools/call" and session == "1":
            self._send(404, None)
        elif method == "tools/call":
            self.called.append(session)
            self._send(200, {"id": number, "result": {"content": [{"type": "text", "text": "done"}]}})
        else:
            self._send(200, {"id": number, "error": {"code": -32601, "message": "no such method"}})

    def do_GET(self) -> None:
        self._send(405, None)

    def do_DELETE(self) -> None:
        self._send(405, None)

    def _send(self, status: int, answer: dict[str, Any] | None) -> None:
        body = json.dumps({"jsonrpc": "2.0", **answer}).encode() if answer else b""
        self.send_response(status)
        if self.began:
            self.send_header("Mcp-Session-Id", str(self.began))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


async def test_a_server_that_has_forgotten_the_session_is_greeted_once_more_and_the_call_is_made():
    handler = type("Handler", (_Forgetful,), {"called": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        async with MCPClient("x", {"url": f"http://127.0.0.1:{server.server_address[1]}/mcp"}) as client:
            assert (await client.call("act")).text == "done"
        server.shutdown()
    assert handler.called == ["2"]


def _living() -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for one in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
            if str(HOSTILE) in " ".join(one.cmdline()):
                found.append(one)
    return found


async def test_a_server_that_is_closed_just_as_a_call_starts_it_again_stays_closed(of: Callable[..., ServerSettings]):
    session = Session("x", of())
    await session.open()

    async def closed_in_between() -> None:
        inside: Any = session
        inside._lost()
        await inside._owner
        inside._backoff = Backoff()
        starting = asyncio.create_task(inside._alive())
        await asyncio.sleep(0)  # it has asked for a start, which has not begun
        await session.aclose()
        with pytest.raises(ServerUnreachableError):
            await starting

    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(closed_in_between(), shared_loop()))
    assert not session.is_open
    assert _living() == []


async def test_a_server_that_nobody_calls_is_disconnected_and_the_next_call_connects_it_again(
    of: Callable[..., ServerSettings],
):
    servers = Servers(idle=0.2)
    server = servers.of("me").server("x", of())
    (tool,) = await servers.tools_of([server])
    async with asyncio.timeout(10):
        while _living():
            await asyncio.sleep(0.01)
    assert server.state == "ready"
    assert [one.name for one in await servers.tools_of([server])] == [tool.name]
    assert _living() == []  # to know its tools needs no connection
    assert (await tool.call({})).text == "did act"  # type: ignore[misc, union-attr]
    await servers.aclose()
    assert _living() == []


async def test_a_server_that_nobody_has_called_for_days_is_forgotten(of: Callable[..., ServerSettings]):
    servers = Servers(idle=0.01)
    await servers.tools_of([servers.of("me").server("x", of())])
    async with asyncio.timeout(10):
        while servers.of("me").known("x") is not None or _living():
            await asyncio.sleep(0.01)
    await servers.aclose()
