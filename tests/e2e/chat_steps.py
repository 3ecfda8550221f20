"""What a person does on the page, in words that tests can use."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

NAMED = re.compile(r"\?c=")
"""The address of a conversation that exists; it comes a moment after the first words of its reply."""


def composer(page: Page) -> Locator:
    """The field one writes in."""
    return page.locator("#composer textarea")


def ask(page: Page, text: str) -> None:
    """Write `text` and press Enter, without waiting for the reply."""
    composer(page).fill(text)
    composer(page).press("Enter")


def wait_for_state(page: Page, state: str) -> None:
    """Wait until the page says that it is `idle`, `running`, `stopping` or in `error`."""
    expect(page.locator(f"#status [data-state={state}]")).to_be_attached(timeout=60_000)


def ask_and_wait(page: Page, text: str, answer: str) -> None:
    """Ask, and wait until the reply holds `answer` and is over."""
    ask(page, text)
    expect(chat(page)).to_contain_text(answer, timeout=60_000)
    wait_for_state(page, "idle")


def chat(page: Page) -> Locator:
    """The conversation, with everything that is said and done in it."""
    return page.locator("#chat")


def button(page: Page, name: str) -> Locator:
    """A button of the composer, by the name that a screen reader says."""
    return page.locator("#composer").get_by_role("button", name=name, exact=True)


def words_of(page: Page) -> list[str]:
    """The numbered words of a reply to "count slowly"."""
    return re.findall(r"word\d+", chat(page).inner_text())
