"""The browser is given the page for times away after the page itself, and may refuse it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.chat_steps import until, wait_for_script
from tests.e2e.kept_pages import KeptPages
from tests.e2e.watched_page import Watch
from tests.webui.screen.stage import Stage

REJECTS = """if (top === window) navigator.serviceWorker.register = (address) => {
    window.asked = [address, document.readyState];
    return Promise.reject(new DOMException('It is not allowed here.', 'SecurityError'));
};"""
HAS_NONE = "Object.defineProperty(Navigator.prototype, 'serviceWorker', { value: undefined });"
THROWS = """Object.defineProperty(Navigator.prototype, 'serviceWorker', { get() {
    throw new DOMException('It is not allowed here.', 'SecurityError');
} });"""


@pytest.mark.parametrize("refuses", [REJECTS, HAS_NONE, THROWS], ids=["rejects", "has none", "throws"])
def test_a_browser_that_refuses_a_service_worker_has_the_page_all_the_same(
    kept_pages: KeptPages, stage: Stage, refuses: str
) -> None:
    with kept_pages.new_context(locale="en-US") as context:
        context.add_init_script(refuses)
        page = context.new_page()
        watch = Watch(page)
        page.goto(stage.url, wait_until="load")
        wait_for_script(page)
        page.locator("#composer textarea").fill("Still here")
        page.locator("#composer textarea").press("Enter")
        stage.until(lambda: stage.sent)
        assert watch.verdict() == []


@pytest.mark.parametrize(("locale", "lang"), [("en-US", "en"), ("zh-CN", "zh")])
def test_it_is_asked_for_in_the_readers_language_once_the_page_is_loaded(
    kept_pages: KeptPages, stage: Stage, locale: str, lang: str
) -> None:
    with kept_pages.new_context(locale=locale) as context:
        context.add_init_script(REJECTS)
        page = context.new_page()
        page.goto(stage.url)
        asked: list[Any] = []
        until(lambda: asked.append(page.evaluate("window.asked")) or asked[-1])
        assert asked[-1] == [f"./offline.js?lang={lang}", "complete"]
        expect(page.locator("#composer textarea")).to_be_visible()
