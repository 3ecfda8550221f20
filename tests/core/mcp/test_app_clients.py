"""Who a program is: what it said when it introduced itself, or what its own site says; and where it is sent back to."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response

from core.errors import ParlourError
from core.mcp.app_clients import Clients, back_of
from core.net.addresses import Reach
from tests.core.net.test_fetcher import certificate
from tests.prompt_server import PromptServer

pytestmark = pytest.mark.anyio

BACK = "http://127.0.0.1:4711/back"
"""Where a program of this machine waits."""


def refused(clients: Clients, redirect: str) -> str:
    """The reason why a program may not be sent back there."""
    with pytest.raises(ParlourError) as caught:
        clients.introduce("Editor", [redirect], "none")
    return caught.value.words_key


async def test_what_a_program_says_of_itself_is_known_again_and_nobody_can_change_it() -> None:
    clients = Clients("secret")
    made = clients.introduce("Editor\u202e 编辑器", [BACK, "cursor://ide/back"], "client_secret_post")
    assert await clients.get(made.id) == made
    assert made.name == "Editor 编辑器"
    assert clients.secret_of(made) == Clients("secret").secret_of(made) != clients.secret_of(replace(made, id="x"))
    begin, body, mark = made.id.split(".")
    wrong = ["", "app..", f"{begin}.{body}.", f"{begin}.{body}.{mark[:-1]}", f"{begin}.{body[:-4]}.{mark}", made.id * 9]
    for one in (*wrong, Clients("another").introduce("Editor", [BACK], "none").id, "https://", "https://x"):
        with pytest.raises(ParlourError) as caught:
            await clients.get(one)
        assert caught.value.words_key == "app_unknown", one


@pytest.mark.parametrize(
    "redirect",
    [
        *("", "x", "/back", "//evil.example/", "http://evil.example/", "http://127.0.0.1.evil.example/", "ftp://a/"),
        *("javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "blob:https://x/1", "file:///etc/passwd"),
        *("https://a.example/#x", "https://u:p@a.example/", "https://a.example\\@b.example/", "https://", "http:///x"),
        *("https://a.example/ x", "https://a.example/\r\nx: y", "https://ä.example/", "https://a.example:x/"),
        *(
            "https://a.example;sandbox/",
            "https://a.example,b/",
            "https://a'b/",
            "https://*/",
            "https://a..b/",
            "https://-/",
        ),
        *("about:blank", "view-source:https://x", "mailto:a@b", "https://a.example/" + "x" * 500),
    ],
)
def test_nobody_is_ever_sent_where_no_program_waits(redirect: str) -> None:
    assert refused(Clients("secret"), redirect) == "app_redirect"


@pytest.mark.parametrize(
    ("redirect", "shown"),
    [
        ("https://claude.ai/api/mcp/auth_callback", "claude.ai"),
        ("https://a.example:8443/back?x=1", "a.example:8443"),
        ("http://localhost:3000/back", "localhost"),
        ("http://[::1]:3000/back", "[::1]"),
        ("cursor://anysphere.cursor-retrieval/oauth/user-mcp/callback", "cursor:"),
        ("com.example.app:/back", "com.example.app:"),
    ],
)
def test_the_person_reads_where_it_goes_back_to(redirect: str, shown: str) -> None:
    assert back_of(redirect) == shown
    assert Clients("secret").introduce("Editor", [redirect], "none").redirect(redirect) == redirect


def test_only_an_address_that_was_named_will_do_and_at_this_machine_any_port() -> None:
    client = Clients("secret").introduce("Editor", [BACK, "https://a.example/back"], "none")
    good = (BACK, "http://127.0.0.1:9/back", "http://127.0.0.1/back", "https://a.example/back")
    assert [client.redirect(one) for one in good] == list(good)
    wrong = (
        *(None, "", "https://a.example/back/", "https://a.example/back?x=1", "https://a.example:444/back"),
        *(
            "http://127.0.0.1:9/other",
            "http://localhost:9/back",
            "http://127.0.0.1:9/back?x",
            "http://x@127.0.0.1:9/back",
        ),
        *("https://127.0.0.1:9/back", "http://127.0.0.1:9/back#x", "http://a.example/back", "http://127.0.0.1:x/back"),
        *(
            "http://127.0.0.1:9/ba\tck",
            " http://127.0.0.1:9/back",
            "http://127.0.0.1:9/back\r\n",
            "http://127.0.0.1:0/back",
        ),
    )
    assert [client.redirect(one) for one in wrong] == [None] * len(wrong)


def test_who_says_too_much_is_told_so() -> None:
    clients = Clients("secret")
    long = [f"https://a.example/{'x' * 400}{number}" for number in range(5)]
    with pytest.raises(ParlourError) as caught:
        clients.introduce("Editor", long, "none")
    assert caught.value.words_key == "app_says"
    for none in ([], [f"https://a.example/{number}" for number in range(11)]):
        with pytest.raises(ParlourError):
            clients.introduce("Editor", none, "none")


class Site:
    """A program's own site, which says what it is told to say.

    Attributes:
        says: The document; bytes for anything else.
        asked: How often it was asked.
    """

    def __init__(self, port: int, reach: Reach) -> None:
        self.address = f"https://site.example:{port}/client.json"
        self.reach = reach
        self.says: Any = {"client_id": self.address, "client_name": "Editor", "redirect_uris": [BACK]}
        self.status = HTTPStatus.OK
        self.headers: dict[str, str] = {}
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += 1
        assert Request(scope).headers["accept"] == "application/json"
        body = self.says if isinstance(self.says, bytes) else json.dumps(self.says).encode()
        await Response(body, self.status, self.headers)(scope, receive, send)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    certificate(folder, "site.example")
    return folder


@pytest.fixture
async def site(keys: Path) -> AsyncIterator[Site]:
    async def here(host: str, port: int) -> list[str]:
        del host, port
        return ["127.0.0.1"]

    trusted = ssl.create_default_context(cafile=str(keys / "cert.pem"))
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        reach = Reach(allows=lambda address, asked: asked == port, resolve=here, trusted=trusted)
        made = Site(port, reach)
        config = uvicorn.Config(
            made,
            log_level="error",
            lifespan="off",
            ssl_keyfile=str(keys / "key.pem"),
            ssl_certfile=str(keys / "cert.pem"),
        )
        server = PromptServer(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        server.force_exit = True
        task = asyncio.create_task(server.serve(sockets=[sock]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield made
        server.should_exit = True
        await task


async def test_a_programs_own_site_describes_it_and_is_not_asked_each_time(site: Site) -> None:
    clients = Clients("secret", site.reach)
    found = await clients.get(site.address)
    assert (found.id, found.name, found.redirects, found.site) == (site.address, "Editor", (BACK,), "site.example")
    assert clients.secret_of(found) is None
    site.says = b"gone"
    assert await clients.get(site.address) == found
    assert site.asked == 1


@pytest.mark.parametrize(
    "change",
    [
        {"client_id": "https://site.example/other.json"},
        {"client_name": 7},
        {"redirect_uris": "https://a.example/"},
        {"redirect_uris": [7]},
        {"redirect_uris": []},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"token_endpoint_auth_method": "client_secret_post"},
        b"<html>",
        b"[]",
        b" " * 70_000,
        b"[" * 60_000,
    ],
)
async def test_a_site_that_describes_another_or_nothing_lets_nobody_in(site: Site, change: Any) -> None:
    site.says = change if isinstance(change, bytes) else {**site.says, **change}
    with pytest.raises(ParlourError) as caught:
        await Clients("secret", site.reach).get(site.address)
    assert caught.value.words_key in {"app_site", "app_redirect"}


async def test_a_site_that_leads_elsewhere_is_not_followed(site: Site) -> None:
    site.status, site.headers = HTTPStatus.FOUND, {"location": "https://127.0.0.1/admin"}
    with pytest.raises(ParlourError) as caught:
        await Clients("secret", site.reach).get(site.address)
    assert (caught.value.words_key, site.asked) == ("app_site", 1)


@pytest.mark.parametrize("address", ["https://127.0.0.1/x.json", "https://169.254.169.254/x.json", "https://[::1]/x"])
async def test_no_program_makes_this_machine_ask_another_of_its_network(address: str) -> None:
    with pytest.raises(ParlourError) as caught:
        await Clients("secret").get(address)
    assert caught.value.words_key == "app_site"


@pytest.mark.parametrize(
    "address",
    [
        *("https://site.example", "https://site.example/", "https://u@site.example/x", "https://site.example/../x"),
        *("https://site.example/x#y", "https://site.example/ x", "https:///x", "https://site.example:x/y"),
    ],
)
async def test_what_is_no_address_of_a_document_is_nobodys_name(address: str) -> None:
    with pytest.raises(ParlourError) as caught:
        await Clients("secret").get(address)
    assert caught.value.words_key == "app_unknown"
