"""Who opens the page while Parlour is away gets a page of Parlour's own, which gives way when Parlour is back."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Error, Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.axe import DESK, PHONE, findings
from tests.e2e.chat_steps import ask_and_wait, chat, until, wait_for_state
from tests.e2e.conftest import wait_until_usable
from tests.e2e.test_restart import GONE
from webui.words import sentences

TITLES = {"en-US": sentences("en")["offline.title"], "zh-CN": sentences("zh")["offline.title"]}
AWAY = (*GONE, "Failed to fetch")  # what a page asks for in that very moment
HELD = "() => navigator.serviceWorker.ready.then(({ active }) => active.state)"
ASKED = "() => performance.getEntriesByType('resource').filter((one) => one.initiatorType === 'fetch').length"


def wait_until_held(page: Page) -> None:
    """Wait until the browser holds the page for times when Parlour is away."""
    until(lambda: page.evaluate(HELD) == "activated")


# One language in the gate: that each language has its page is held by the tests of the route.
@pytest.mark.parametrize("locale", ["zh-CN", pytest.param("en-US", marks=pytest.mark.slow)])
def test_a_reload_while_parlour_is_away_shows_its_own_page_and_parlour_comes_back_by_itself(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], locale: str
) -> None:
    app = start_app()
    page = open_page(app, locale=locale, service_workers="allow", expected=AWAY)
    ask_and_wait(page, "Is it kept?", "You said: Is it kept?")
    address = page.url
    wait_until_held(page)
    assert page.evaluate("caches.keys()") == []
    app.stop()

    page.reload()
    title, button = page.get_by_role("heading"), page.get_by_role("button")
    expect(title).to_have_text(TITLES[locale])
    expect(button).to_have_text(sentences(locale[:2])["offline.now"])
    assert page.url == address
    button.click()
    still_none = re.escape(sentences(locale[:2])["offline.none"]).replace(r"\{time\}", r"\d.*")
    expect(page.get_by_role("status")).to_have_text(re.compile(f"^{still_none}$"))
    page.evaluate("performance.clearResourceTimings()")
    until(lambda: page.evaluate(ASKED) > 0)  # nobody pressed anything
    page.goto(f"{app.url}/settings/general")
    expect(title).to_have_text(TITLES[locale])
    page.goto(address)

    app.start()
    wait_until_usable(page)
    expect(chat(page)).to_contain_text("You said: Is it kept?")
    assert page.url == address


def test_the_page_for_times_away_can_be_read_by_everybody(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    app = start_app()
    page = open_page(app, service_workers="allow", expected=AWAY)
    wait_until_held(page)
    page.evaluate("navigator.serviceWorker.ready.then((one) => one.unregister())")
    page.goto(f"{app.url}/settings/general")  # it is held for the whole page, wherever in it the visit begins
    wait_until_held(page)
    assert page.evaluate("navigator.serviceWorker.ready.then(({ scope }) => scope)") == f"{app.url}/"
    page.evaluate("localStorage.setItem('p-theme', 'dark')")
    wait_for_state(page, "idle")
    app.kill()
    page.reload()
    expect(page.get_by_role("heading")).to_have_text(TITLES["en-US"])
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(25, 27, 25)"
    assert findings(page) == []
    page.evaluate("localStorage.removeItem('p-theme')")
    for size in (PHONE, DESK):
        page.set_viewport_size(size)  # pyright: ignore[reportArgumentType]
        page.reload()
        expect(page.get_by_role("heading")).to_be_visible()
        assert findings(page) == []


def test_whatever_is_no_page_of_parlour_fails_as_it_would_without_one(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    app = start_app()
    page = open_page(app, service_workers="allow", expected=(*AWAY, "Not Found"))
    wait_until_held(page)
    for path in ("/files/x", "/shared/x", "/mcp/signed-in?code=1"):
        answer = page.goto(app.url + path)
        assert answer is not None
        assert not answer.from_service_worker
    page.goto(app.url)
    wait_until_usable(page)
    app.kill()
    assert page.evaluate("fetch('./preferences/page').then(() => 'answered', () => 'failed')") == "failed"
    for path in ("/files/x", "/shared/x", "/mcp/signed-in?code=1"):
        with pytest.raises(Error, match="ERR_"):
            page.goto(app.url + path)
