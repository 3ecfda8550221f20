"""Two browsers on one server keep apart, and one browser's tabs keep together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask_and_wait, chat, wait_for_script


@pytest.mark.slow
def test_on_a_network_each_browser_has_its_own_conversations(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    app = start_app(OWNERS="cookie")
    alice, bob = open_page(app), open_page(app)
    ask_and_wait(alice, "The secret word is heliotrope", "You said: The secret word")
    bob.reload(wait_until="domcontentloaded")
    expect(bob.locator("#history")).to_contain_text("Your conversations will be listed here")
    bob.goto(alice.url, wait_until="domcontentloaded")
    wait_for_script(bob)
    expect(bob.locator("#status [data-room=empty]")).to_be_attached()
    expect(bob.locator("body")).not_to_contain_text("heliotrope")
    ask_and_wait(bob, "And mine is marigold", "You said: And mine")
    again = open_page(app, context=alice.context)
    again.locator("#history").get_by_text("heliotrope").first.click()
    expect(chat(again)).to_contain_text("You said: The secret word is heliotrope")
    expect(again.locator("#history")).not_to_contain_text("marigold")


def test_a_tab_that_waits_learns_of_what_another_does(
    server: AppProcess, page: Page, open_page: Callable[..., Page]
) -> None:
    ask_and_wait(page, "Said in one tab", "You said: Said in one tab")
    second = open_page(server, page.url.removeprefix(server.url), context=page.context)
    expect(chat(second)).to_contain_text("You said: Said in one tab")
    ask_and_wait(page, "And once more", "You said: And once more")
    expect(chat(second)).to_contain_text("You said: And once more")
