"""The tabs that tests are given one after another: a test sees nothing of those before it."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.e2e.kept_pages import KeptPages
from tests.webui.screen.stage import Stage

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
SEEN = """() => [localStorage.getItem('mine'), sessionStorage.getItem('mine'), document.cookie, innerWidth,
    matchMedia('(prefers-color-scheme: dark)').matches, document.querySelectorAll(':hover').length]"""


def opened(kept: KeptPages, stage: Stage) -> Page:
    page = kept.take(stage.url, "en-US", DESK)
    page.goto(stage.url)
    return page


def test_nothing_that_a_test_left_is_there_for_the_next(kept_pages: KeptPages, stage: Stage) -> None:
    page = opened(kept_pages, stage)
    page.evaluate("localStorage.mine = sessionStorage.mine = document.cookie = 'mine=1'")
    page.mouse.move(200, 200)
    page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
    page.emulate_media(color_scheme="dark")
    page.context.grant_permissions(["clipboard-read"])
    beside = page.context.new_page()
    page.route("**/*", lambda route: route.abort())
    page.context.route("**/*", lambda route: route.abort())
    kept_pages.give_back(page)
    again = opened(kept_pages, stage)
    assert again is page
    assert again.evaluate(SEEN) == [None, None, "", DESK["width"], False, 0]
    assert (
        again.evaluate("navigator.permissions.query({ name: 'clipboard-read' }).then((one) => one.state)") != "granted"
    )
    assert beside.is_closed()
    assert again.context.pages == [again]
    kept_pages.give_back(again)


def test_readers_of_two_languages_and_two_tests_at_once_share_no_tab(kept_pages: KeptPages, stage: Stage) -> None:
    first, second = opened(kept_pages, stage), opened(kept_pages, stage)
    assert first.context != second.context
    kept_pages.give_back(first)
    chinese = kept_pages.take(stage.url, "zh-CN", DESK)
    assert chinese not in {first, second}
    assert chinese.evaluate("navigator.language") == "zh-CN"
    kept_pages.give_back(chinese)
    kept_pages.give_back(second)


def test_a_tab_that_cannot_be_cleared_is_given_to_nobody(kept_pages: KeptPages, stage: Stage) -> None:
    hoards, closed = opened(kept_pages, stage), opened(kept_pages, stage)
    hoards.evaluate("new Promise((done) => { indexedDB.open('mine').onsuccess = done; }).then(() => null)")
    closed.close()
    for page in (hoards, closed):
        kept_pages.give_back(page)
    fresh = opened(kept_pages, stage)
    assert fresh not in {hoards, closed}
    assert hoards.is_closed()
    kept_pages.give_back(fresh)


def test_a_sign_that_turns_without_end_comes_to_rest_and_keeps_no_browser_at_work(
    kept_pages: KeptPages, stage: Stage
) -> None:
    page = kept_pages.take(stage.url, "en-US", DESK)
    page.goto(f"{stage.url}/nothing-is-here")
    page.evaluate(
        """() => { const sheet = new CSSStyleSheet(), sign = document.createElement('p');
            sheet.replaceSync('@keyframes turn { to { rotate: 1turn; } } p { animation: turn 1ms infinite; }');
            document.adoptedStyleSheets.push(sheet);
            document.body.append(sign); }"""
    )
    page.wait_for_function("!document.getAnimations().length", timeout=5_000)
    kept_pages.give_back(page)
