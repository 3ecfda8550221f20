"""Axe finds nothing to mend in the dialogs that speak with the server, nor on the pages before Parlour's own."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, Route, expect
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp

from core.readiness import Readiness
from tests.e2e.app_process import AppProcess
from tests.e2e.axe import DESK, PHONE, findings, findings_everywhere
from tests.e2e.chat_steps import focus, until
from webui.middleware.headers import HeadersMiddleware
from webui.startup_app import StartupApp

SAMPLES = Path(__file__).resolve().parents[2] / "assets" / "samples"


def test_of_the_dialogs_about_models_tools_and_libraries(page: Page) -> None:
    page.locator("#top .p-open-models").click()
    expect(page.locator("dialog.p-models select option").first).to_be_attached()
    assert findings_everywhere(page, "dialog") == []
    page.keyboard.press("Escape")
    page.locator("#history .p-open-tools").click()
    dialog = page.get_by_role("dialog", name="Tools")
    for part in dialog.locator("[data-part], .p-add").all():
        part.click()
        expect(part).to_have_attribute("aria-current", "true")
        assert findings(page, "dialog") == []
    assert findings_everywhere(page, "dialog") == []
    page.keyboard.press("Escape")
    focus(page.locator("#history").get_by_role("button", name="Libraries"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Libraries")
    expect(dialog.get_by_role("status").last).to_be_empty()  # it has been told what there is
    assert findings_everywhere(page, "dialog") == []
    dialog.get_by_label("New library").fill("Policies")
    dialog.get_by_label("New library").press("Enter")
    expect(dialog.get_by_role("button", name="Add files")).to_be_focused()
    dialog.locator("input[type=file]").set_input_files(SAMPLES / "policy.pdf")
    expect(dialog.locator(".p-docs li[data-state=ready]")).to_have_count(1)
    dialog.get_by_label("Try a question").fill("How soon must damage be reported?")
    dialog.get_by_label("Try a question").press("Enter")
    expect(dialog.locator(".p-found li").first).to_be_visible()
    assert findings_everywhere(page, "dialog") == []
    dialog.get_by_role("button", name="Delete library").click()  # other tests begin without one
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog.locator(".p-shelf-list li button", has_text="Policies")).to_have_count(0)


def test_of_files_that_were_taken_and_refused(page: Page) -> None:
    files = [
        {"name": name, "mimeType": "application/x-7z-compressed", "buffer": b"7z\xbc\xaf\x27\x1c" + bytes(200)}
        for name in ("a.7z", "b.exe")
    ]
    page.locator("#composer input[type=file]").first.set_input_files(files)  # pyright: ignore[reportArgumentType]
    expect(page.locator("#talk .p-left-out")).to_be_visible()
    page.locator("#composer input[type=file]").first.set_input_files(SAMPLES / "notes.md")
    expect(page.locator("#composer .p-chip .p-name")).to_be_visible()
    assert findings_everywhere(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_of_the_pages_before_parlours_own(server: AppProcess, browser: Browser, scheme: str) -> None:
    options: Any = {"color_scheme": scheme, "locale": "en-US", "service_workers": "block"}
    context = browser.new_context(**options, base_url=server.url)
    page = context.new_page()
    page.goto("/")
    assert findings(page) == []
    page.get_by_label("Token").fill("not the one")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert findings(page) == []
    context.close()


def test_of_the_step_before_a_program_is_started(page: Page) -> None:
    page.locator("#history .p-open-tools").click()
    dialog = page.get_by_role("dialog", name="Tools")
    dialog.get_by_role("button", name="Add a server").click()
    server = {
        "command": sys.executable,
        "args": ["--folder", "/a/long/path/" + "of-folders/" * 12],
        "env": {"A": "b"},
    }
    dialog.get_by_label("Paste JSON").fill(json.dumps({"mcpServers": {"notes": server}}))
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.locator(".p-confirm")).to_be_visible()
    assert findings_everywhere(page, "dialog") == []
    dialog.get_by_role("button", name="Remove", exact=True).click()  # other tests begin without one


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_of_the_page_for_who_comes_through_a_proxy_that_nobody_named(
    server: AppProcess, browser: Browser, scheme: str
) -> None:
    through = {"x-forwarded-for": "203.0.113.9"}
    options: Any = {"color_scheme": scheme, "locale": "en-US", "service_workers": "block"}
    with browser.new_context(**options, extra_http_headers=through) as context:
        page = context.new_page()
        page.route("**/*", without_policy)  # under it no script runs, and so not axe either
        answer = page.goto(server.url)
        assert answer is not None
        assert answer.status == 403
        expect(page.get_by_role("heading")).to_have_text("Parlour cannot be opened this way")
        for size in (PHONE, DESK):
            page.set_viewport_size(size)  # pyright: ignore[reportArgumentType]
            assert findings(page) == []


def test_of_the_page_that_waits_until_parlour_is_open_and_then_gives_way(browser: Browser) -> None:
    opens = threading.Event()

    @asynccontextmanager
    async def opening(take: Callable[[Readiness], None]) -> AsyncGenerator[ASGIApp]:
        take(Readiness())
        await asyncio.to_thread(opens.wait)
        yield HTMLResponse("<p>The page itself.</p>")

    app = HeadersMiddleware(StartupApp(opening, print))
    with in_a_thread(app) as url, browser.new_context(service_workers="block") as context:
        page = context.new_page()
        try:
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                answer = page.goto(url)
                assert answer is not None
                assert answer.status == 503
                for size in (PHONE, DESK):
                    page.set_viewport_size(size)  # pyright: ignore[reportArgumentType]
                    assert findings(page) == []
        finally:
            opens.set()
        expect(page.get_by_text("The page itself.")).to_be_visible()


def without_policy(route: Route) -> None:
    """Pass on what the server answers, but for the policy that forbids scripts."""
    answer = route.fetch()
    kept = {name: value for name, value in answer.headers.items() if name != "content-security-policy"}
    route.fulfill(response=answer, headers=kept)


@contextmanager
def in_a_thread(app: ASGIApp) -> Iterator[str]:
    """The address of an application on a free port, until the block ends."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until(lambda: server.started)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


def test_of_the_pages_for_a_cookie_that_cannot_be_read_and_for_a_browser_too_many(
    start_app: Callable[..., AppProcess], browser: Browser
) -> None:
    app = start_app(OWNERS="cookie", NEW_OWNERS_PER_MINUTE="2")  # the first is who waited until it was ready
    with browser.new_context(locale="en-US", service_workers="block") as first:
        first.new_page().goto(app.at("/"))
        [cookie] = [one for one in first.cookies() if "token" not in one.get("name", "")]
    statuses: list[int] = []
    for cookies in ([{"name": cookie.get("name"), "value": "damaged", "url": app.url}], []):
        for scheme in ("light", "dark"):
            options: Any = {"color_scheme": scheme, "locale": "en-US", "service_workers": "block"}
            with browser.new_context(**options) as context:
                context.add_cookies(cookies)  # pyright: ignore[reportArgumentType]
                page = context.new_page()
                answer = page.goto(app.at("/"))
                assert answer is not None
                statuses.append(answer.status)
                assert findings(page) == []
    assert statuses == [409, 409, 429, 429]
