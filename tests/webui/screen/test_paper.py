"""The page a claim came from, in a browser: how large it is, and where it is scrolled to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.e2e.chat_steps import focus, until
from tests.webui.screen.stage import LETTERS
from webui.panels.evidence_page import ShownPage

Show = Callable[..., Page]
_LEFT = "element => element.getBoundingClientRect().left"
_OVERHANG = "desk => desk.scrollWidth - desk.clientWidth"


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
    until(lambda: page.locator("#page .p-desk").evaluate(_OVERHANG) == 0)
    whole = times()
    shape = page.locator("#page .p-paper").evaluate("paper => paper.offsetHeight / paper.offsetWidth")
    assert abs(shape - 842 / 595) < 0.02, "the whole page is shown"
    page.locator("#composer textarea").fill("1 + 1 - 0")
    page.keyboard.press("+")
    until(lambda: times() == whole)


def _opened(page: Page) -> None:
    page.locator("#chat sup > a.cite").first.click()
    page.locator("#page .p-paper img").first.evaluate("image => image.decode()")


def test_on_a_laptop_a_page_opens_so_large_that_it_can_be_read(show: Show) -> None:
    page = show("answered", width=1280, height=800)
    _opened(page)
    pixels = page.locator("#page .p-sheet").evaluate("sheet => sheet.getBoundingClientRect().width") / 595
    assert pixels * LETTERS >= 11
    assert page.locator("#page .p-desk").evaluate(_OVERHANG) == 0, "nothing of it is cut"
    expect(page.locator("#page .p-hl.p-on")).to_be_in_viewport(ratio=1)
    assert page.locator("#talk").evaluate("talk => talk.clientWidth") >= 560
    expect(page.locator("#page .p-tab")).to_be_in_viewport(ratio=1)
    page.locator("#page .p-desk").evaluate("desk => { desk.scrollLeft = 999; }")
    expect(page.locator("#page .p-tab")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Whole page").click()
    until(lambda: page.locator("#page .p-desk").evaluate(_OVERHANG) == 0)
    expect(page.locator("#history nav")).to_be_hidden()
    page.get_by_role("button", name="Unfold the conversations").click()
    expect(page.locator("#history nav")).to_be_visible()
    page.get_by_role("button", name="Fold the conversations").click()
    expect(page.locator("#history nav")).to_be_hidden()


def test_the_history_that_made_room_for_a_page_is_back_when_the_page_is_gone(show: Show) -> None:
    page = show("answered", width=1280, height=800)
    _opened(page)
    expect(page.locator("#history nav")).to_be_hidden()
    page.locator("#page .p-close").click()
    expect(page.locator("#history nav")).to_be_visible()


def test_only_a_page_with_small_letters_gets_a_wider_column() -> None:
    shape: Any = ((595.0, 842.0), (72.0, 72.0, 523.0, 790.0))
    assert [ShownPage("d", "d.pdf", 1, 1, *shape, letters=size).fine for size in (0.0, 9.0, 12.0, 18.0)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_sentence_that_starts_at_the_end_of_a_line_leaves_the_lines_beginnings_in_sight(show: Show) -> None:
    page = show("answered", width=1280, height=800)
    _opened(page)
    # A sentence from the end of one line to the middle of the next.
    page.locator("#page .p-hl.p-on").first.evaluate("""mark => {
        mark.style.left = '8%';
        for (const left of ['85%', '8%']) {
            const line = mark.cloneNode();
            line.classList.add('p-strong');
            line.style.left = left;
            mark.parentElement.append(line);
        }
    }""")
    page.get_by_role("button", name="Larger").click()
    until(lambda: page.locator("#page .p-desk").evaluate(_OVERHANG) > 150)
    mark, desk = page.locator("#page .p-hl.p-on").first, page.locator("#page .p-desk")
    until(lambda: 0 <= mark.evaluate(_LEFT) - desk.evaluate(_LEFT) < 100)


def test_on_a_phone_a_page_is_as_wide_as_there_is_room(show: Show) -> None:
    page = show("answered", width=390, height=844)
    _opened(page)
    assert page.locator("#page .p-desk").evaluate(_OVERHANG) == 0


def test_nothing_is_marked_before_there_is_a_picture(show: Show) -> None:
    page = show("answered", width=1280, height=800)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/pages/**", hold)
    page.locator("#chat sup > a.cite").first.click()
    expect(page.locator("#page .p-sheet img")).to_be_attached()
    until(lambda: page.evaluate("true") and held)
    expect(page.locator("#page .p-hl.p-on")).to_be_hidden()
    held[0].continue_()
    expect(page.locator("#page .p-hl.p-on")).to_be_visible()
