"""In a frame of another site a reader is known without a cookie; nowhere else, and by nothing but what was signed."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from starlette.responses import HTMLResponse, JSONResponse
from starlette.types import Receive, Scope, Send

from core.errors import SettingsError
from core.settings import Settings
from webui.auth import Owners
from webui.serving import guarded

pytestmark = pytest.mark.anyio

SPACE = {"space_host": "a.hf.space,chat.example.com", "host": "0.0.0.0"}
FRAME = {"sec-fetch-dest": "iframe"}


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/":
        page = f"<html><head></head><body><p>{scope['owner']}</p><gradio-app></gradio-app></body></html>"
        await HTMLResponse(page)(scope, receive, send)
    else:
        await JSONResponse(scope["owner"])(scope, receive, send)


def browser(home: Path, at: str = "https://a.hf.space", **settings: str) -> httpx.AsyncClient:
    read = Settings.load(home=home, secret="key", **{**SPACE, **settings})
    app = guarded(inside, read, "key", read.page_token())
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, client=("10.0.0.1", 1)), base_url=at)


def visitor(page: str) -> str:
    found = re.search(r'<meta name="p-visitor" content="([^"]+)">', page)
    return found[1] if found else ""


@pytest.mark.parametrize("at", ["https://a.hf.space", "https://chat.example.com"])
async def test_a_page_in_a_frame_says_itself_who_asks(tmp_path: Path, at: str) -> None:
    async with browser(tmp_path, at) as one:
        opened = await one.get("/", headers=FRAME)
        one.cookies.clear()  # as a browser does that keeps none here
        named = {"x-parlour-visitor": visitor(opened.text)}
        owner = (await one.get("/files/a", headers=named)).json()
        assert f"<p>{owner}</p>" in opened.text
        assert "parlourVisitor" in opened.text
        assert (await one.get("/visitor", headers=named)).json() == {"cookie": False, "known": True}
        assert (await one.get("/files/a")).json() is None
        for forged in (named["x-parlour-visitor"][:-2] + "xx", owner, "local", ""):
            assert (await one.get("/files/a", headers={"x-parlour-visitor": forged})).json() is None
        cookie = Owners("key", local=False, framed=True).cookie("ann", https=True).split(";")[0]
        assert (await one.get("/files/a", headers={**named, "cookie": cookie})).json() == "ann", "a cookie counts first"
        assert (await one.get("/visitor", headers={"cookie": cookie})).json()["cookie"] is True
        stolen = cookie.partition("=")[2]
        assert (await one.get("/files/a", headers={"x-parlour-visitor": stolen})).json() is None, (
            "no cookie's value does"
        )


async def test_outside_of_a_frame_nothing_of_it_is_in_the_page_or_believed(tmp_path: Path) -> None:
    async with browser(tmp_path) as one:
        direct = (await one.get("/")).text
        assert (visitor(direct), "parlourVisitor" in direct) == ("", False)
    known = Owners("key", local=False, framed=True).written("ann")
    async with browser(tmp_path, "http://127.0.0.1", space_host="", host="0.0.0.0") as one:
        assert visitor((await one.get("/", headers=FRAME)).text) == ""
        one.cookies.clear()
        assert (await one.get("/files/a", headers={"x-parlour-visitor": known})).json() is None


async def test_further_sites_may_show_the_page_where_a_setting_names_them(tmp_path: Path) -> None:
    async with browser(tmp_path, frames="https://blog.example.com, https://*.example.org:8443") as one:
        policy = (await one.get("/")).headers["content-security-policy"]
        ancestors = policy.partition("frame-ancestors ")[2]
        assert ancestors == (
            "'self' https://huggingface.co https://*.hf.space https://blog.example.com https://*.example.org:8443"
        )
    for wrong in ("blog.example.com", "https://a.example/path", "https://a;script-src *", "*", "javascript:x"):
        with pytest.raises(SettingsError, match="frames"):
            Settings.load(frames=wrong)


def test_on_a_space_visitors_are_known_again_after_its_disk_is_gone(tmp_path: Path) -> None:
    def secret(**settings: str) -> str:
        return Settings.load(home=tmp_path / str(len(settings)), **settings).signing_secret()

    derived = secret(space_host="a.hf.space", oauth_client_secret="given")
    assert derived == secret(space_host="b.hf.space", oauth_client_secret="given", lang="en")
    assert "given" not in derived
    assert secret(oauth_client_secret="given") != derived, "elsewhere it is kept in the data folder"
    assert secret(space_host="a.hf.space", oauth_client_secret="given", secret="own") == "own"
