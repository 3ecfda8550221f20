"""Below a path of another site the page finds its own, and keeps its cookies to itself."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from core.errors import SettingsError
from core.settings import Settings
from webui.auth import Owners
from webui.serving import guarded

pytestmark = pytest.mark.anyio


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({"path": scope["path"], "owner": scope["owner"]})(scope, receive, send)


def browser(home: Path, **settings: str) -> httpx.AsyncClient:
    read = Settings.load(home=home, secret="key", root_path="/chat", owners="cookie", **settings)
    app = guarded(inside, read, "key", read.page_token())
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, client=("127.0.0.1", 1)), base_url="http://127.0.0.1")


async def test_the_path_may_be_left_or_taken_off_by_the_proxy(tmp_path: Path) -> None:
    async with browser(tmp_path) as one:
        bare = await one.get("/chat?c=x")
        assert (bare.status_code, bare.headers["location"]) == (308, "/chat/?c=x")
        opened = await one.get("/chat/")
        cookie = opened.headers["set-cookie"]
        assert "Path=/chat/;" in cookie
        for asked in ("/chat/files/a", "/files/a"):
            assert (await one.get(asked, headers={"cookie": cookie.split(";")[0]})).json() == {
                "path": "/files/a", "owner": opened.json()["owner"],
            }  # fmt: skip
        assert (await one.get("/chatter/")).json()["path"] == "/chatter/"


async def test_the_door_leads_back_below_the_path(tmp_path: Path) -> None:
    async with browser(tmp_path, token="a-long-token") as one:
        door = await one.get("/chat/")
        assert 'action="./token"' in door.text
        shown = await one.post("/chat/token", data={"token": "a-long-token"})
        assert (shown.status_code, shown.headers["location"]) == (303, "./")
        assert "Path=/chat/;" in shown.headers["set-cookie"]


async def test_over_https_the_cookie_is_as_safe_as_one_below_a_path_can_be() -> None:
    owners = Owners("key", local=False, path="/chat")
    cookie = owners.cookie("ann", https=True)
    assert cookie.startswith(f"__Secure-{owners.cookie_name}=")
    assert owners.of(cookie.split(";")[0]) == "ann"


@pytest.mark.parametrize("path", ["chat", "/a b", "/a;b", "/../x", "//x"])
async def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(SettingsError, match="root_path"):
        Settings.load(root_path=path)
