"""Nothing that a tool, a link or a server names reaches the port that this process serves people at."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from core.errors import FetchError, SettingsError, ToolError
from core.llm.backends.http_clients import public_address
from core.mcp.servers import Servers
from core.mcp.settings import ServerSettings
from core.net.addresses import (
    MARK_HEADER,
    Reach,
    is_own_request,
    is_own_server,
    mark_header,
    open_internet_and_own_network,
    serving,
)
from core.net.fetcher import fetch
from core.net.service import ask
from core.tools.openapi.as_tools import tools_of
from core.tools.openapi.document import Document

pytestmark = pytest.mark.anyio

OWN_NETWORK = Reach(open_internet_and_own_network)
HERE = ["127.0.0.1", "127.9.8.7", "localhost", "0.0.0.0", "2130706433", "0x7f.1", "127.1", "[::1]", "[::]"]
HERE += ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"]


class Listener(http.server.BaseHTTPRequestHandler):
    """Counts who comes, and sends on to wherever it is told."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.seen.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(302 if server.target else 200)
        if server.target:
            self.send_header("location", server.target)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Place(http.server.ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Listener)
        self.seen: list[dict[str, str]] = []
        self.target = ""


def started() -> Iterator[Place]:
    place = Place()
    thread = threading.Thread(target=place.serve_forever, args=(0.01,))
    thread.start()
    yield place
    place.shutdown()
    thread.join()
    place.server_close()


@pytest.fixture
def own() -> Iterator[Place]:
    for place in started():
        with serving(place.server_port, "secret of this installation"):
            yield place


@pytest.fixture
def other() -> Iterator[Place]:
    yield from started()


@pytest.mark.parametrize("host", HERE)
async def test_no_spelling_of_this_machine_leads_a_fetch_to_the_own_port(own: Place, host: str) -> None:
    url = f"http://{host}:{own.server_port}/tools/state"
    for going in (fetch(url, reach=OWN_NETWORK), ask(url, reach=OWN_NETWORK), ask(url, body={}, reach=OWN_NETWORK)):
        with pytest.raises(FetchError) as refused:
            await going
        assert refused.value.words_key in {"fetch_own", "fetch_private"}
    assert own.seen == []


async def test_every_address_of_this_machine_counts_as_its_own(own: Place) -> None:
    found = [one.address for addresses in psutil.net_if_addrs().values() for one in addresses]
    ips = [address for address in found if address.count(":") != 5]  # those with five are of network cards
    assert ips
    assert all(is_own_server(address, own.server_port) for address in ips)
    assert not is_own_server("127.0.0.1", own.server_port + 1)
    assert not is_own_server("93.184.216.34", own.server_port)


async def test_a_name_that_leads_here_among_others_is_refused(own: Place) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["192.168.77.77", "127.0.0.1"]

    with pytest.raises(FetchError) as refused:
        await fetch(f"http://lan.example:{own.server_port}/", reach=Reach(open_internet_and_own_network, resolve))
    assert refused.value.words_key == "fetch_own"


async def test_a_redirect_does_not_lead_here_either(own: Place, other: Place) -> None:
    other.target = f"http://127.0.0.1:{own.server_port}/tools/state"
    with pytest.raises(FetchError):
        await fetch(f"http://127.0.0.1:{other.server_port}/", reach=OWN_NETWORK)
    assert len(other.seen) == 1
    assert own.seen == []


async def test_an_operation_of_a_pasted_document_does_not_run_here(own: Place) -> None:
    weather = {"operationId": "weather", "responses": {"200": {"description": "ok"}}}
    described = {
        "openapi": "3.0.0",
        "info": {"title": "weather", "version": "1"},
        "servers": [{"url": f"http://127.0.0.1:{own.server_port}"}],
        "paths": {"/tools/state": {"get": weather}},
    }
    (tool,) = tools_of(Document(described), reach=OWN_NETWORK)
    with pytest.raises(FetchError) as refused:
        await tool.call("{}")
    assert refused.value.words_key == "fetch_own"
    assert own.seen == []


@pytest.mark.parametrize(
    "target",
    [
        *(f"http://{host}:{{own}}/tools/state" for host in HERE),
        "//127.0.0.1:{own}/",
        "http://127.0.0.1:{third}/",
        "http://[::ffff:127.0.0.1]:{third}/",
        "http://localhost:{third}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://192.168.0.1/",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "data:text/plain,hello",
        "unix:///run/docker.sock",
    ],
)
async def test_a_service_of_this_machine_sends_an_operation_nowhere_else_within(
    own: Place, other: Place, target: str
) -> None:
    third = Place()  # it listens, and nobody may come
    other.target = target.format(own=own.server_port, third=third.server_port)
    described = {
        "openapi": "3.0.0",
        "info": {"title": "weather", "version": "1"},
        "servers": [{"url": f"http://127.0.0.1:{other.server_port}"}],
        "paths": {"/now": {"get": {"operationId": "weather", "responses": {"200": {"description": "ok"}}}}},
    }
    (tool,) = tools_of(Document(described), reach=OWN_NETWORK)
    third.timeout = 0
    try:
        with pytest.raises((FetchError, ToolError)) as refused:
            await tool.call("{}")
        assert "root:" not in str(refused.value)
        third.handle_request()
        assert (len(other.seen), own.seen, third.seen) == (1, [], [])
    finally:
        third.server_close()


@pytest.mark.parametrize("reach", [None, OWN_NETWORK])
@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_a_server_of_tools_is_never_this_process(own: Place, reach: Reach | None, path: str) -> None:
    servers = Servers()
    settings = ServerSettings.model_validate({"url": f"http://localhost:{own.server_port}{path}", "connect_timeout": 5})
    server = servers.of("local").server("x", settings, reach=reach)
    await server.start()
    assert "Parlour's own" in server.error
    await servers.aclose()
    assert own.seen == []


async def test_a_model_that_a_stranger_names_is_never_this_process() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    assert await public_address("x.example", 8080, resolve)
    with serving(8080, "secret"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.net.addresses._is_this_machine", lambda address: True)
        with pytest.raises(SettingsError):
            await public_address("x.example", 8080, resolve)


async def test_what_is_called_elsewhere_carries_a_mark_that_only_this_installation_refuses(
    own: Place, other: Place
) -> None:
    address = f"http://127.0.0.1:{other.server_port}"
    await fetch(address, reach=OWN_NETWORK)
    await ask(address, headers={MARK_HEADER: "another", "Parlour-Request": ""}, reach=OWN_NETWORK)
    servers = Servers()
    for reach in (None, OWN_NETWORK):
        await servers.of("local").server("x", ServerSettings.model_validate({"url": address}), reach=reach).start()
        await servers.aclose()
    assert len(other.seen) >= 4
    assert all(is_own_request(headers[MARK_HEADER]) for headers in other.seen)
    assert not is_own_request("another installation's")
    # And no two sites can tell by it that the same installation asked.
    assert len({headers[MARK_HEADER] for headers in other.seen}) == len(other.seen)
    numbers = [headers[MARK_HEADER].partition(".")[0] for headers in other.seen]
    assert not is_own_request(f"{numbers[0]}.{other.seen[1][MARK_HEADER].partition('.')[2]}")


async def test_nothing_is_marked_where_nothing_is_served() -> None:
    assert dict(mark_header()) == {}
    assert not is_own_request("")
