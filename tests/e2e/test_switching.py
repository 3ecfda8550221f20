"""What is shown with a reply goes with it: in the place where it stood, another one has nothing of it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import ask_and_wait, chat


def go(page: Page, title: str) -> None:
    """Press the row of a conversation, and wait for what it shows."""
    page.locator("#history a[data-open]", has_text=title).first.click()
    expect(page.locator("#chat .user-row").first).to_contain_text(title)


def test_no_answer_without_a_table_is_offered_as_csv(page: Page) -> None:
    csv = chat(page).get_by_role("button", name="Copy as CSV")
    ask_and_wait(page, "Tell me of the wren", "You said: Tell me of the wren")
    page.get_by_text("New chat").first.click()
    ask_and_wait(page, "show me markdown", "second")
    expect(csv).to_have_count(1)
    go(page, "Tell me of the wren")
    expect(chat(page)).to_contain_text("You said: Tell me of the wren")
    expect(csv).to_have_count(0)
    go(page, "show me markdown")
    expect(csv).to_have_count(1)


def test_a_fold_that_was_opened_is_open_in_its_own_reply_alone(page: Page) -> None:
    folds = chat(page).locator(".bot-row .title", has_text="calculator")
    ask_and_wait(page, "use the calculator for 5*5", "The result:")
    page.get_by_text("New chat").first.click()
    ask_and_wait(page, "use the calculator for 7*7", "The result:")
    folds.first.click()
    expect(folds.first).to_have_attribute("aria-expanded", "true")
    go(page, "use the calculator for 5*5")
    expect(folds.first).to_have_attribute("aria-expanded", "false")
    expect(chat(page).get_by_text("Result", exact=True)).to_be_hidden()
    go(page, "use the calculator for 7*7")
    expect(folds.first).to_have_attribute("aria-expanded", "true")
    expect(chat(page)).to_contain_text("49")
    go(page, "use the calculator for 5*5")
    folds.first.click()
    expect(chat(page).get_by_text("Result", exact=True)).to_be_visible()
