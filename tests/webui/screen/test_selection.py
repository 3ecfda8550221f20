"""Words that are selected in a reply raise what can be done with them."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.e2e.chat_steps import composer
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]

SELECT = """(paragraph) => { getSelection().selectAllChildren(paragraph);
    dispatchEvent(new PointerEvent('pointerup', {bubbles: true})); }"""


def raised(page: Page, where: str = "#chat .bot-row .prose p") -> Locator:
    """The bar, after the first such paragraph was selected."""
    page.locator(where).first.evaluate(SELECT)
    return page.get_by_role("toolbar", name="The selected words")


def test_selected_words_are_quoted_below_what_is_written_already(show: Show) -> None:
    page = show("long")
    composer(page).fill("About this:")
    bar = raised(page, "#chat .bot-row .prose p:has-text('needle')")
    bar.get_by_role("button", name="Quote").click()
    expect(bar).to_have_count(0)
    assert composer(page).input_value().startswith("About this:\n\n> There is a needle here.")
    assert composer(page).input_value().endswith("\n\n")
    expect(composer(page)).to_be_focused()


def test_selected_words_are_copied_and_their_reply_is_gone_on_from_elsewhere(show: Show, stage: Stage) -> None:
    page = show("long")
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    bar = raised(page, "#chat .bot-row .prose p:has-text('needle')")
    bar.get_by_role("button", name="Copy").click()
    assert page.evaluate("window.copied").startswith("There is a needle here.")
    bar.get_by_role("button", name="Branch off").click()
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "fork", "id": "r0"}]


def test_a_double_click_on_a_button_of_a_reply_selects_no_word_of_it(show: Show, stage: Stage) -> None:
    page = show("answered")
    on = page.locator("#chat .p-continue")
    on.dblclick()
    stage.until(lambda: stage.asked)
    page.evaluate("new Promise((done) => setTimeout(() => setTimeout(done)))")  # in which the bar would be raised
    expect(page.get_by_role("toolbar", name="The selected words")).to_have_count(0)
    assert page.evaluate("getSelection().toString()") == ""
    page.locator("#chat .p-acts .p-note").dblclick()
    expect(page.get_by_role("toolbar", name="The selected words")).to_be_visible()


def test_escape_closes_the_bar_before_it_stops_anything_and_questions_raise_none(show: Show, stage: Stage) -> None:
    page = show("long")
    bar = raised(page, "#chat .bot-row .prose p:has-text('needle')")
    expect(bar).to_be_visible()
    page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    expect(raised(page, "#chat .p-asked")).to_have_count(0)
    assert stage.stops == 0
