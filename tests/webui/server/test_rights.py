"""Every route and every action of the page stands in a table with what it needs, and each role gets no more than that.

A route or an action that nobody listed fails here, and is refused to everybody meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from core.errors import ParlourError
from tests.stored_files import stored
from tests.webui.server.people_app import House, house
from webui.handlers import act
from webui.handlers.act import act as do
from webui.handlers.desk import Desk
from webui.middleware.rights import ACTIONS, ROUTES, Needed, lets, needed
from webui.routes import Routes
from webui.uploads import Uploads
from webui.views import View, Views
from webui.words import Words

pytestmark = pytest.mark.anyio

# What may be done by whom: anonymous, a guest without an account, and people of each role.
EXPECTED: dict[Needed, set[str]] = {
    "nothing": {"anonymous", "browser", "guest", "member", "administrator", "owner"},
    "talk": {"browser", "guest", "member", "administrator", "owner"},
    "account": {"guest", "member", "administrator", "owner"},
    "own": {"member", "administrator", "owner"},
    "house": {"administrator", "owner"},
}
# Gradio's own that the page needs; `test_route_table.py` holds that the gate opens no others.
PUBLIC = ("/gradio_api/info", "/gradio_api/call/", "/gradio_api/mcp")
GRADIO = {
    *("/", "/config", "/theme.css", "/favicon.ico", "/manifest.json", "/robots.txt", "/static/{path:path}"),
    *(path for path in ROUTES if path.startswith("/gradio_api/") and not path.startswith(PUBLIC)),
}


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[House]:
    outside: dict[str, Any] = {
        "embed_sites": ("https://blog.example",),
        "public_ask": 5,
        "oidc_issuer": "http://127.0.0.1:9",
        "oidc_client_id": "parlour",
    }
    async with house(tmp_path, guests=True, **outside) as made:
        yield made


async def everybody(here: House) -> dict[str, httpx.AsyncClient]:
    found = {"owner": await here.owner(), "anonymous": here.browser(), "browser": here.browser()}
    await found["browser"].post("/guest")
    for role in ("guest", "member", "administrator"):
        found[role] = await here.person(f"The {role}", role)
    return found


def own_routes(here: House) -> dict[str, set[str]]:
    """Parlour's own routes with their methods."""
    from webui.context import WebContext

    context = WebContext(here.engine, here.engine.settings, Words.of)
    uploads = Uploads(here.engine.settings.home / "tmp", 1000)
    found: dict[str, set[str]] = {}
    for route in Routes(context, uploads, Views(Words.of)).table():
        path, methods = str(getattr(route, "path", "")), set(getattr(route, "methods", None) or {"GET"})
        found[path] = found.get(path, set()) | methods - {"HEAD"}
    return found


def an_address(path: str) -> str:
    return re.sub(r"{\w+:int}", "1", re.sub(r"{\w+(:path)?}", "x", path))


async def test_every_route_is_in_the_table_and_the_table_names_no_other(here: House) -> None:
    own = set(own_routes(here))
    assert own - set(ROUTES) == set(), "say in webui/middleware/rights.py what these need"
    assert set(ROUTES) - own - GRADIO == set(), "these are no routes any more"
    assert {path: needed(an_address(path)) for path in ROUTES} == dict(ROUTES), "each is found by its addresses"


async def asked_by_everybody(here: House, paths: Iterable[str]) -> list[str]:
    """What of these routes somebody reaches who may not, or does not who may; what is inside answers nothing."""
    browsers, own = await everybody(here), own_routes(here)
    reached: list[str] = []

    async def inside(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["path"])
        await PlainTextResponse("reached")(scope, receive, send)

    here.accounts.app = inside
    wrong: list[str] = []
    for path in paths:
        for method in own.get(path, {"GET"}):
            for who, browser in browsers.items():
                answer = await browser.request(method, an_address(path))
                passed = answer.text == "reached"
                refused = answer.status_code in ({303, 401} if who == "anonymous" else {303, 401, 403})
                if passed != (who in EXPECTED[ROUTES[path]]) or passed == refused:
                    wrong.append(f"{who} {method} {path}: {answer.status_code}")
    before = len(reached)
    for unlisted in ("/admin", "/people/x", "/tools/unheard", "/gradio_api/call/x", "/account/x/y", "/models/x"):
        answer = await browsers["owner"].get(unlisted)
        if answer.status_code != 404 or len(reached) > before:
            wrong.append(f"{unlisted}: {answer.status_code}")
    return wrong


async def test_each_role_reaches_what_it_may_and_nothing_else(here: House) -> None:
    first = {needs: path for path, needs in reversed([*ROUTES.items()])}
    assert set(first) == set(EXPECTED)
    assert await asked_by_everybody(here, [*first.values(), "/people/role", "/tools/paste"]) == []
    assert all(lets(needs, None, account=False) == (needs == "nothing") for needs in EXPECTED)


async def test_each_role_reaches_each_route_that_it_may_and_no_other(here: House) -> None:
    assert await asked_by_everybody(here, ROUTES) == []


async def test_every_action_of_the_page_is_in_the_table_and_refused_to_who_may_not(
    here: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(act.ACTIONS) == set(ACTIONS), "say in webui/middleware/rights.py what these need"
    browsers = await everybody(here)
    ids = {who: await here.id_of(browser) for who, browser in browsers.items() if who != "anonymous"}
    done: list[str] = []

    async def noted(desk: Desk, view: View, asked: dict[str, Any]) -> None:
        done.append(asked["do"])

    monkeypatch.setattr(act, "ACTIONS", dict.fromkeys(ACTIONS, noted))
    desk = Desk(here.engine, Uploads(here.engine.settings.home / "tmp", 1000), Views(Words.of))
    wrong: list[str] = []
    for name, needs in ACTIONS.items():
        for who, owner in ids.items():
            done.clear()
            with suppress(ParlourError):
                await do(desk, View(owner, Words("en")), f'{{"do": "{name}"}}')
            if bool(done) != (who in EXPECTED[needs]):
                wrong.append(f"{who} {name}")
    assert wrong == []


async def test_nobody_reaches_what_another_has_not_even_the_owner_of_the_house(here: House) -> None:
    browsers = await everybody(here)
    member_id = await here.id_of(browsers["member"])
    async with here.engine.workspaces.open(member_id) as workspace:
        talk = await workspace.conversations.create("Mine")
        file = await workspace.files.put("mine.md", b"a secret")
        run = await workspace.conversation(talk.id).ask("A secret?", [file.id])
        await run.wait()
        reply = (await workspace.conversations.thread(talk.id))[-1].id
    paths = [f"/files/{file.id}", f"/conversations/{talk.id}/export?as=md", f"/inspect/{reply}.json"]
    paths += [f"/conversations/{talk.id}/answers/{reply}", f"/shares/preview?id={talk.id}", "/search?q=secret"]
    for who, browser in browsers.items():
        answers = {path: await browser.get(path) for path in paths}
        if who == "member":
            assert all(answer.status_code == 200 for answer in answers.values())
            continue
        for path, answer in answers.items():
            assert "a secret" not in answer.text.lower().replace('"secret"', "")
            assert path.startswith("/search") or answer.status_code in {303, 401, 403, 404}, (who, path)
    desk = Desk(here.engine, Uploads(here.engine.settings.home / "tmp", 1000), Views(Words.of))
    asked = f'"id": "{talk.id}", "ids": ["{talk.id}"], "message": "{reply}", "title": "Taken", "text": "Taken"'
    others = [await here.id_of(browser) for who, browser in browsers.items() if who not in {"member", "anonymous"}]
    for other in others:
        for name in ACTIONS:
            with suppress(ParlourError):
                await do(desk, View(other, Words("en"), talk.id), f'{{"do": "{name}", {asked}}}')
    async with here.engine.workspaces.open(member_id) as workspace:
        assert (await workspace.conversations.get(talk.id)).title == "Mine"
        assert len(await workspace.conversations.thread(talk.id)) == 2
        assert (await stored(workspace.files, file.id))[1].read_bytes() == b"a secret"


def test_what_is_not_listed_is_nobodys() -> None:
    assert needed("/anything/else") is None
    assert not lets("house", None, account=False)
    assert needed("/") == "talk"


async def test_whoever_opens_a_page_that_is_not_open_to_them_reads_why_and_finds_a_way_on(here: House) -> None:
    browsers = await everybody(here)
    reads = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path in ("/people", "/lending"):
        for who in ("browser", "guest", "member"):
            if path == "/lending" and who == "member":
                continue
            refused = await browsers[who].get(path, headers=reads)
            assert (refused.status_code, refused.headers["content-type"]) == (403, "text/html; charset=utf-8")
            assert "Your role does not allow this</h1>" in refused.text
            assert 'href="./">Back to Parlour</a>' in refused.text
            assert ('href="./sign-in">Sign in</a>' in refused.text) == (who == "browser")
            assert ("You are here as a guest." in refused.text) == (who == "browser")
            if who != "browser":
                assert f"You are signed in as The {who}, {who.capitalize()}." in refused.text
                assert 'href="./account">Your account</a>' in refused.text
    chinese = await browsers["member"].get("/people", headers={**reads, "accept-language": "zh-CN"})
    assert '<html lang="zh-CN">' in chinese.text
    assert "你的角色不允许此操作</h1>" in chinese.text
    # A form that was open when the role was taken away goes there as a page does; a script reads JSON as before.
    sent = await browsers["member"].post("/people/role", data={"role": "owner"}, headers=reads)
    assert sent.status_code == 403
    assert 'href="../">Back to Parlour</a>' in sent.text
    told = await browsers["member"].post("/people/role", data={"role": "owner"})
    assert told.json() == {"failed": "Your role does not allow this; an administrator can change it."}
    nobody = await browsers["anonymous"].post("/account/password", headers=reads)
    assert nobody.status_code == 401
    assert 'href="../sign-in">Sign in</a>' in nobody.text
