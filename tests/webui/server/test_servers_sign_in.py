"""Signing in to a server of tools over HTTP: the button, the tab that comes back, and what nobody else can do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.core.mcp.protected_server import Protected, protected
from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage
from tests.webui.server.test_tools_dialog import ask, everything, state
from webui.handlers.tools import sign_in_address
from webui.panels.servers import answered_page
from webui.words import Words


@pytest.fixture
def notes() -> Iterator[Protected]:
    with protected() as both:
        yield both


def settled(page: RawPage, server: str) -> dict[str, Any]:
    while (opened := state(page, server)["opened"])["shape"] == "run" and not opened["sign_in"]["address"]:
        pass
    return opened


def back(address: str) -> str:
    """What the service sends the browser to, once its user agreed."""
    answer = httpx.get(address, timeout=60)
    assert answer.status_code == 302
    return answer.headers["location"]


def test_a_reader_signs_in_the_server_is_there_and_signs_out_again(
    page: RawPage, app: AppProcess, notes: Protected
) -> None:
    (server,) = ask(page, "save", name="notes", settings={"url": notes.url})["added"]
    opened = settled(page, server)
    assert (opened["shape"], opened["said"]) == ("ask", "sign-in needed")
    assert opened["told"] == "“notes” requires you to sign in. Press “Sign in”."
    assert opened["sign_in"] == {"needed": True, "address": "", "at": "", "out": False}
    answer = ask(page, "sign_in", opened=server, server=server, back="https://evil.example/")
    assert answer["page"] == answer["opened"]["sign_in"]["address"]
    assert answer["opened"]["sign_in"]["at"] == f"Open the sign-in of {urlsplit(notes.issuer).netloc}"
    asked = parse_qs(urlsplit(answer["page"]).query)
    assert asked["redirect_uri"] == [f"{page.url}/mcp/signed-in"]
    arrives = back(answer["page"])
    told = page.client.get(arrives, headers={"accept-language": "zh-CN"})
    assert (told.status_code, told.headers["cache-control"]) == (200, "no-store")
    assert "你已登录“notes”" in told.text
    assert "可以关闭此标签页了。" in told.text
    opened = settled(page, server)
    assert (opened["shape"], opened["sign_in"]["out"], [one["id"] for one in opened["tools"]]) == (
        "ok",
        True,
        ["whose"],
    )
    again = page.client.get(arrives)
    assert (again.status_code, "Nobody waits for this sign-in any more" in again.text) == (404, True)
    secrets = [*notes.accounts.access, *notes.accounts.fresh, parse_qs(urlsplit(arrives).query)["code"][0]]
    kept = everything(app.home) + app.log.read_bytes()
    assert not [one for one in secrets if one.encode() in kept]
    assert ask(page, "sign_out", server=server)["said"] == "Signed out."
    assert settled(page, server)["sign_in"]["needed"]
    ask(page, "remove", server=server)


def test_a_no_and_a_stranger_are_told_so_and_change_nothing(page: RawPage, notes: Protected) -> None:
    (server,) = ask(page, "save", name="notes", settings={"url": notes.url})["added"]
    notes.accounts.refuses = "access_denied"
    told = page.client.get(back(ask(page, "sign_in", server=server)["page"]))
    assert "The sign-in to “notes” was refused (access_denied)" in told.text
    assert "You can close this tab." in told.text
    stranger = page.client.get(f"{page.url}/mcp/signed-in?code=<script>x</script>&state=guessed")
    assert (stranger.status_code, "<script" in stranger.text.replace("<script nonce", "")) == (404, False)
    assert settled(page, server)["sign_in"]["needed"]
    ask(page, "remove", server=server)


def test_the_name_of_a_server_and_what_its_service_says_are_text_on_the_page_that_comes_back() -> None:
    page = answered_page("<b>notes</b>", "refused (<script>alert(1)</script>)", Words("en"))
    assert "<script" not in page
    assert "<b>" not in page
    assert page.count("&lt;b&gt;notes&lt;/b&gt;") == 2
    assert "<p>refused (&lt;script&gt;alert(1)&lt;/script&gt;)</p>" in page


class Request:
    """What of a request says where the page is."""

    def __init__(self, root_path: str = "", **headers: str) -> None:
        self.headers = headers
        self.scope = {"root_path": root_path}
        self.url = httpx.URL("http://10.0.0.5:7860/tools/sign_in")


@pytest.mark.parametrize(
    ("request_", "address"),
    [
        (Request(origin="https://chat.example"), "https://chat.example/mcp/signed-in"),
        (Request(root_path="/parlour", origin="https://chat.example"), "https://chat.example/parlour/mcp/signed-in"),
        (Request(host="localhost:7860"), "http://localhost:7860/mcp/signed-in"),
    ],
)
def test_the_answer_arrives_where_the_reader_sees_the_page(request_: Any, address: str) -> None:
    assert sign_in_address(request_) == address
