"""The composer is as high as what stands in it."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Page

Show = Callable[..., Page]


def height(field: Locator) -> float:
    """Of what is seen of it, in pixels."""
    return float(field.evaluate("e => e.getBoundingClientRect().height"))


def test_an_empty_composer_is_one_line_high_whatever_was_measured_while_the_page_was_loading(show: Show) -> None:
    field = show(width=390, height=780).locator("#composer textarea")
    field.evaluate("e => { e.style.height = '208px'; }")
    assert height(field) == 40


def test_the_composer_grows_to_eight_lines_and_then_scrolls(show: Show) -> None:
    page = show()
    field = page.locator("#composer textarea")
    field.fill("one\ntwo\nthree")
    assert height(field) == 3 * 24 + 16
    field.fill("\n".join(str(number) for number in range(40)))
    assert height(field) == 8 * 24 + 16
    assert field.evaluate("e => e.scrollHeight > e.clientHeight")
    field.fill("")
    assert height(field) == 40
