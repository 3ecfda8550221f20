"""A message written while a reply is being written waits on the server, whatever becomes of the page and the app."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import NAMED, ask, button, chat, composer, wait_for_state


def test_what_waits_is_sent_though_the_page_is_closed(server: AppProcess, open_page: Callable[..., Page]) -> None:
    page = open_page(server)
    ask(page, "count calmly to see who waits")
    expect(chat(page)).to_contain_text("word3 ")
    ask(page, "Who waited?")
    expect(page.locator("#queue li")).to_contain_text("sent when this reply ends")
    expect(composer(page)).to_have_value("")
    expect(page).to_have_url(NAMED)
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(chat(page)).to_contain_text("You said: Who waited?", timeout=120_000)
    expect(page.locator("#queue li")).to_have_count(0)
    wait_for_state(page, "idle")
    expect(chat(page)).to_contain_text("word200")


def test_stop_leaves_what_waits_until_it_is_sent_by_hand_or_written_anew(page: Page) -> None:
    ask(page, "count at leisure until you are told to stop for a queue")
    expect(chat(page)).to_contain_text("word3 ")
    ask(page, "First that waits")
    expect(page.locator("#queue li")).to_have_count(1)
    ask(page, "Second that waits")
    expect(page.locator("#queue li")).to_have_count(2)
    button(page, "Stop").click()
    expect(page.locator("#queue li").first).to_contain_text("waits for you")
    page.locator("#queue .p-requeue").nth(1).click()
    expect(composer(page)).to_have_value("Second that waits")
    composer(page).fill("")
    page.locator("#queue").get_by_role("button", name="Send", exact=True).click()
    expect(chat(page)).to_contain_text("You said: First that waits")
    expect(page.locator("#queue li")).to_have_count(0)
