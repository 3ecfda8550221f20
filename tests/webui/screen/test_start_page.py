"""The start page keeps its place where a short window makes it scroll."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from set_up import find_browser
from tests.e2e.chat_steps import wait_for_script
from tests.webui.screen.stage import Stage

PLACE = """() => {
    const room = document.querySelector('#hello'), text = document.querySelector('.p-hello').getBoundingClientRect();
    return [room.scrollHeight > room.clientHeight, text.left, text.right];
}"""
MIDDLES = """() => {
    const text = document.querySelector('.p-hello').getBoundingClientRect();
    const composer = document.querySelector('#composer').getBoundingClientRect();
    return [(text.left + text.right) / 2, (composer.left + composer.right) / 2];
}"""


def test_the_text_stays_where_it_is_when_a_bar_for_scrolling_comes_beside_it(
    screen_browser: Browser, stage: Stage
) -> None:
    # A browser of its own: others hide these bars.
    browser = screen_browser.browser_type.launch(
        executable_path=find_browser(),
        args=["--no-sandbox", "--disable-gpu"],
        ignore_default_args=["--hide-scrollbars"],
    )
    try:
        page = browser.new_page(viewport={"width": 1440, "height": 1200}, locale="en-US")
        page.goto(f"{stage.url}/?scene=", wait_until="domcontentloaded")
        expect(page.locator("#hello .p-hello")).to_be_visible(timeout=60_000)
        wait_for_script(page)
        for width in (1440, 800, 390):
            page.set_viewport_size({"width": width, "height": 1400})
            scrolls, *place = page.evaluate(PLACE)
            assert not scrolls
            assert len(set(map(round, page.evaluate(MIDDLES)))) == 1
            page.set_viewport_size({"width": width, "height": 360})
            scrolls, *shorter = page.evaluate(PLACE)
            assert scrolls
            assert shorter == place
    finally:
        browser.close()
