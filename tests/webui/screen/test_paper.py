"""The page a claim came from, in a browser: how large it is, and where it is scrolled to."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import focus, until

Show = Callable[..., Page]


def test_the_page_is_made_larger_by_buttons_and_keys_and_the_mark_stays_in_sight(show: Show) -> None:
    page = show("answered", width=1280, height=700)
    page.locator("#chat sup > a.cite").first.click()
    paper, mark = page.locator("#page .p-page"), page.locator("#page .p-hl.p-on")
    expect(mark).to_be_visible()
    page.locator("#page .p-paper img").first.evaluate("image => image.decode()")

    fitting = paper.evaluate("paper => paper.getBoundingClientRect().width")

    def times() -> float:
        return round(paper.evaluate("paper => paper.getBoundingClientRect().width") / fitting, 2)

    page.get_by_role("button", name="Larger").click()
    until(lambda: times() == 1.5)
    focus(page.locator("#page .p-desk"))
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("+")
    until(lambda: times() == 3)
    expect(mark).to_be_in_viewport()
    page.keyboard.press("-")
    until(lambda: times() == 2)
    page.keyboard.press("0")
    until(lambda: times() == 1)
    shape = page.locator("#page .p-paper").evaluate("paper => paper.offsetHeight / paper.offsetWidth")
    assert abs(shape - 842 / 595) < 0.02, "the whole page is shown"
    page.locator("#composer textarea").fill("1 + 1 - 0")
    page.keyboard.press("+")
    until(lambda: times() == 1)
