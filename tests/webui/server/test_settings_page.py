"""The settings over HTTP: one page at several addresses, what is changed in it, and another language for a browser."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from core.engine import Engine
from core.settings import Settings
from core.storage.preferences import Preferences
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.served_app import Served, served
from webui.auth import Cookies
from webui.middleware.places import PlacesMiddleware
from webui.page_head import with_first_paint, with_head
from webui.panels.settings import ShownSettings, settings_html, size_said
from webui.words import Words

pytestmark = pytest.mark.anyio


@pytest.fixture
async def app(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    settings = Settings(home=tmp_path, code="off")  # type: ignore[call-arg]
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine, served(engine, settings) as app:
        yield app


@pytest.fixture
async def browser(app: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=app.address) as client:
        yield client


async def test_the_page_shows_what_is_set_and_escapes_it(app: Served, browser: httpx.AsyncClient) -> None:
    await app.engine.stores.of("local").preferences.change("about_me", "</textarea><b>me</b>")
    answer = await browser.get("/preferences/page", headers={"accept-language": "zh-CN"})
    markup = answer.json()["markup"]
    assert answer.headers["cache-control"] == "no-store"
    assert "</textarea><b>me</b>" in unescape(markup)
    assert "<b>me" not in markup
    assert "隐私与数据" in markup
    assert "p-v-about_me" in markup


async def test_all_can_be_taken_along_from_where_the_page_says(app: Served, browser: httpx.AsyncClient) -> None:
    await app.engine.stores.of("local").conversations.create("Talk")
    markup = (await browser.get("/preferences/page")).json()["markup"]
    links = re.findall(r'href="\.(/conversations/export[^"]+)"', markup)
    assert [link.partition("as=")[2] for link in links] == ["bundle", "html", "pdf", "md", "json"]
    for link in links:
        answer = await browser.get(link)
        assert (answer.status_code, answer.content[:2]) == (200, b"PK"), link


async def test_what_is_changed_is_kept_and_what_cannot_be_is_told(app: Served, browser: httpx.AsyncClient) -> None:
    kept = await browser.post("/preferences/change", json={"name": "titles", "value": False})
    assert kept.json() == {"said": "kept"}
    assert await app.engine.stores.of("local").preferences.get() == Preferences(titles=False)
    long = await browser.post("/preferences/change", json={"name": "about_me", "value": "x" * 5000})
    assert long.json()["failed"].startswith("The text has 5,000 characters; 4,000 are allowed")
    for bad in ({}, {"name": ["titles"], "value": True}, {"name": "titles", "value": {"a": 1}}, {"name": "approval"}):
        assert "failed" in (await browser.post("/preferences/change", json=bad)).json()
    for raw in (b"", b"[]", b"{", b'"x"'):
        sent = await browser.post("/preferences/change", content=raw, headers={"content-type": "application/json"})
        assert sent.status_code == 400
    assert (await browser.post("/preferences/change", data={"name": "titles"})).status_code == 400
    assert await app.engine.stores.of("local").preferences.get() == Preferences(titles=False)


async def test_nothing_is_deleted_until_the_word_is_typed(app: Served, browser: httpx.AsyncClient) -> None:
    mine = app.engine.stores.of("local")
    await mine.conversations.create("Talk")
    for word in ("", "yes", 7, None, ["delete"]):
        told = (await browser.post("/preferences/delete", json={"word": word})).json()
        assert told == {"failed": "Nothing was deleted: type “delete”."}
    assert len(await mine.conversations.list()) == 1
    told = await browser.post("/preferences/delete", json={"word": " Delete "})
    assert told.json() == {"said": "Deleted 1 conversation and all documents."}
    assert await mine.conversations.list() == []
    chinese = {"accept-language": "zh"}
    assert "failed" in (await browser.post("/preferences/delete", json={"word": "delete"}, headers=chinese)).json()
    assert "said" in (await browser.post("/preferences/delete", json={"word": "删除"}, headers=chinese)).json()


def test_who_keeps_the_installation_is_told_when_it_was_last_backed_up() -> None:
    english = Words("en")
    assert "Last backup" not in settings_html(ShownSettings(), english)
    assert ">never<" in settings_html(ShownSettings(may_back_up=True), english)
    told = unescape(settings_html(ShownSettings(may_back_up=True, backed_up=1_795_000_000.0), english))
    assert re.search(r">2026-11-1\d \d\d:\d\d<", told)  # in the time of the machine


async def asked(path: str, method: str = "GET", cookie: str = "", scheme: str = "http") -> dict[str, Any]:
    """What stands inside of the middleware."""
    seen: list[dict[str, Any]] = []

    async def inside(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(dict(scope))

    headers = [(b"accept-language", b"en"), (b"cookie", cookie.encode())]
    scope = {"type": "http", "path": path, "raw_path": path.encode(), "method": method, "headers": headers}
    never: Any = None
    await PlacesMiddleware(inside, Cookies("secret"))({**scope, "scheme": scheme}, never, never)
    return seen[0]


@pytest.mark.parametrize(
    ("path", "method", "inside", "base"),
    [
        ("/", "GET", "/", "./"),
        ("/settings", "GET", "/", "./"),
        ("/settings/", "GET", "/", "../"),
        ("/settings/data", "GET", "/", "../"),
        ("/settings/data", "HEAD", "/", "../"),
        ("/settings/data", "POST", "/settings/data", "./"),
        ("/settings/nowhere", "GET", "/", "../"),
        ("/settings/no where", "GET", "/", "../"),
        ("/settings/data/more", "GET", "/settings/data/more", "./"),
        ("/x/settings", "GET", "/x/settings", "./"),
    ],
)
async def test_each_part_has_an_address_that_is_the_page(path: str, method: str, inside: str, base: str) -> None:
    scope = await asked(path, method)
    assert (scope["path"], scope["base"]) == (inside, base)


async def test_whoever_signs_in_first_comes_back_to_the_part_that_was_asked_for() -> None:
    for path, place in (("data", "data"), ("nowhere", "nowhere"), ("no where", ""), ("<b>", ""), ("", "")):
        assert (await asked(f"/settings/{path}"))["place"] == place


async def test_a_language_that_was_chosen_outranks_the_browser_s_and_another_cookie_does_not() -> None:
    cookies = Cookies("secret")
    kept = cookies.header("zh", "-lang", https=False).partition(";")[0]
    scope = await asked("/", cookie=kept)
    assert (scope["language"], dict(scope["headers"])[b"accept-language"]) == ("zh", b"zh")
    assert scope["remember_language"]("").startswith(f"{cookies.name}-lang=;")
    for other in ("", f"{cookies.name}-lang=fr", f"{cookies.name}-lang=", "parlour-lang=zh", "lang=zh"):
        scope = await asked("/", cookie=other)
        assert (scope["language"], dict(scope["headers"])[b"accept-language"]) == ("", b"en")


async def test_the_page_speaks_the_language_and_finds_its_files_from_every_address() -> None:
    page = b"<html><head></head><body><gradio-app></gradio-app></body></html>"
    made = with_first_paint(with_head(page, "zh"), "../", "zh").decode()
    assert made.startswith('<html><head><base href="../">')
    assert "'zh-CN'" in made
    assert "navigator" not in with_first_paint(with_head(page, "en")).decode()


async def test_only_a_language_of_ours_is_kept(browser: httpx.AsyncClient) -> None:
    for asked_ in ({"value": "fr"}, {"value": "zh\r\nx: y"}, {"value": 3}, [], {}):
        answer = await browser.post("/preferences/language", json=asked_)
        assert answer.status_code == 400  # nothing outside remembers a language here
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (18_400_000, "18 MB"), (2_440_000_000, "2.4 GB")]
)
def test_sizes_are_said_as_people_say_them(count: int, said: str) -> None:
    assert size_said(count) == said


def test_a_guest_where_others_have_accounts_finds_the_way_to_sign_in_and_nothing_that_is_refused() -> None:
    shown = ShownSettings(is_guest=True, has_accounts=True, may_own=False)
    page = settings_html(shown, Words("en"))
    assert 'href="./sign-in">Sign in</a>' in page
    assert "p-services-here" not in page
    assert "data-models" not in page
    alone = settings_html(ShownSettings(is_guest=True), Words("en"))
    assert "./sign-in" not in alone
    assert "p-services-here" in alone
