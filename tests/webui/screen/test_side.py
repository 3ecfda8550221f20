"""The history's column: folded to a rail, drawn wider, and as it was after a reload; a keyboard of glass."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.axe import findings_everywhere
from tests.e2e.chat_steps import until, wait_for_script

Show = Callable[..., Page]


def width(page: Page) -> float:
    box = page.locator("#side").bounding_box()
    assert box is not None
    return box["width"]


def test_the_history_folds_to_a_rail_that_is_there_after_a_reload_and_unfolds(show: Show) -> None:
    page = show("answered")
    page.get_by_role("button", name="Fold the conversations").click()
    until(lambda: width(page) == 56)
    for name in ("New chat", "Libraries", "Tools", "Settings"):
        expect(page.locator(f"#side [title='{name}']:visible")).to_have_count(1)
    expect(page.locator(".p-unfold-side")).to_have_attribute("aria-label", "Conversations, replying")
    assert findings_everywhere(page, "#side") == []
    page.reload(wait_until="domcontentloaded")
    wait_for_script(page)
    until(lambda: width(page) == 56)
    page.locator(".p-unfold-side").click()
    until(lambda: width(page) == 272)


def test_its_edge_is_drawn_by_mouse_and_by_keys(show: Show) -> None:
    page = show("answered")
    page.mouse.move(272, 400)
    page.mouse.down()
    page.mouse.move(340, 400, steps=4)
    page.mouse.up()
    until(lambda: width(page) == 340)
    handle = page.get_by_role("separator", name="Width of the conversations")
    handle.focus()
    page.keyboard.press("ArrowRight")
    until(lambda: width(page) == 372)
    expect(handle).to_have_attribute("aria-valuenow", "372")
    page.keyboard.press("Home")
    until(lambda: width(page) == 56)
    handle.dblclick()
    until(lambda: width(page) == 272)


def test_what_a_keyboard_of_glass_covers_is_no_place_for_the_field(show: Show) -> None:
    page = show("answered", width=390, height=780)
    page.evaluate(
        """() => { Object.defineProperty(visualViewport, 'height', { configurable: true, get: () => 430 });
            visualViewport.dispatchEvent(new Event('resize')); }"""
    )
    composer = page.locator("#composer textarea")

    def end() -> float:
        box = composer.bounding_box()
        assert box is not None
        return box["y"] + box["height"]

    until(lambda: end() <= 430)
    page.evaluate("delete visualViewport.height; visualViewport.dispatchEvent(new Event('resize'))")
    until(lambda: end() > 600)
