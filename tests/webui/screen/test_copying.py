"""A reply is copied as its model wrote it: citations as numbers in brackets, and no sign of the page's own."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import until
from tests.webui.screen.page_scenes import english_with_marks
from tests.webui.screen.stage import ANSWER

Show = Callable[..., Page]
PLAIN = r"""You pay 300 dollars of each claim [1].

Cause	Deductible
Fire	300

With n < 3 claims it is s = \sum t_i, but $5 or $10 is money:

\bar s = \frac{1}{n}\sum s_i

print(300 < 750)  # $x and $y

• a list"""


def copied(page: Page) -> str:
    """What the first reply's button puts onto the clipboard."""
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator("#chat .bot-row a.p-copy").first.click()
    until(lambda: page.evaluate("window.copied"))
    return page.evaluate("window.copied")


def test_a_copied_reply_is_the_text_that_its_model_wrote_with_its_citations(show: Show) -> None:
    said = copied(show("answered"))
    assert re.sub(r"\n{3,}", "\n\n", said) == ANSWER.strip()  # below a formula there may be one more empty line


@pytest.mark.parametrize("scene", ["marks", "web_marks"])
def test_signs_at_sentences_that_no_passage_supports_are_not_copied(show: Show, scene: str) -> None:
    english, chinese = copied(show(scene)).split("\n\n")
    assert english == english_with_marks(40)
    assert "<" not in chinese


def test_beside_the_button_stands_for_a_moment_the_way_to_have_it_without_markdown(show: Show) -> None:
    page = show("answered")
    copied(page)
    other = page.get_by_role("button", name="Copy without Markdown")
    expect(other).to_be_visible()
    other.click()
    until(lambda: page.evaluate("window.copied") != ANSWER)
    said = page.evaluate("window.copied")
    assert said == PLAIN
    expect(other).to_have_count(0)
    expect(page.locator("#chat .bot-row a.p-copy").first).to_be_focused()


def test_escape_sends_that_away_and_the_keyboard_stands_on_the_button_again(show: Show) -> None:
    page = show("answered")
    copied(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Copy without Markdown")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Copy without Markdown")).to_have_count(0)
    expect(page.locator("#chat .bot-row a.p-copy").first).to_be_focused()
