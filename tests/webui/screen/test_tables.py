"""Tables: whole words, as wide as there is room, and to be taken along."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import focus, until

Show = Callable[..., Page]
# Words of the table that stand on more than one line.
BROKEN = r"""() => [...document.querySelectorAll('#chat .bot-row :is(td, th)')].flatMap((cell) => {
    const words = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
    for (let text; (text = words.nextNode());) for (const word of text.data.matchAll(/[\w.,]+/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (range.getClientRects().length > 1) found.push(word[0]);
    }
    return found; })"""


def test_no_word_and_no_number_of_a_table_is_broken_at_any_width(show: Show) -> None:
    page = show("table", width=1360, height=800)
    expect(page.locator("#chat table").first).to_be_visible()
    found: dict[int, tuple[list[str], int]] = {}
    widths = (1360, 1000, 390, 320)
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        found[width] = page.evaluate(BROKEN), page.evaluate("document.documentElement.scrollWidth")
    assert found == {width: ([], width) for width in widths}


def test_a_wide_table_uses_the_free_room_and_a_narrow_one_stays_narrow(show: Show) -> None:
    page = show("table", width=1360, height=860)
    expect(page.locator("#chat table")).to_have_count(2)
    text = page.locator("#chat .bot-row p").first.bounding_box()
    wide, narrow = (one.bounding_box() for one in page.locator("#chat table").all())
    assert text is not None
    assert wide is not None
    assert narrow is not None
    assert wide["x"] == narrow["x"] == text["x"]
    assert wide["width"] > text["width"] + 100
    assert wide["x"] + wide["width"] < 1360 - 16
    assert narrow["width"] < 200


def test_a_table_is_copied_as_csv_without_formulas_that_a_spreadsheet_would_run(show: Show) -> None:
    page = show("table")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("navigator.clipboard.writeText('')")
    button = page.get_by_role("button", name="Copy as CSV").first
    focus(button)
    page.keyboard.press("Enter")
    until(lambda: page.evaluate("navigator.clipboard.readText()"))
    rows = list(csv.reader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))
    assert rows[0] == [
        "Industries", "年份", "Amount", "Formula", "A remark of some length", "And another one", "The last"
    ]  # fmt: skip
    assert rows[1][2:6] == ["1,234.5", '\'=HYPERLINK("x")', 'He said "no"', "-5.2 %"]
    assert rows[2][2:3] + rows[2][5:6] == ["-99.0", "'@cmd"]
    expect(page.get_by_role("button", name="Copied")).to_be_visible()


def test_what_scrolls_sideways_can_be_reached_with_the_keyboard(show: Show) -> None:
    page = show("table", width=390, height=800)
    expect(page.locator("#chat table").first).to_have_attribute("tabindex", "0")
    expect(page.locator("#chat table").nth(1)).not_to_have_attribute("tabindex", "0")
