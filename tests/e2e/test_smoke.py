"""The page opens, answers and is found again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask_and_wait, chat


def test_a_question_is_answered_and_still_there_after_a_reload(page: Page) -> None:
    ask_and_wait(page, "Is anybody there?", "You said: Is anybody there?")
    page.reload(wait_until="domcontentloaded")
    expect(chat(page)).to_contain_text("You said: Is anybody there?")


def test_the_app_says_that_it_is_alive_and_ready(server: AppProcess) -> None:
    assert server.get("/healthz")[0] == 200
    status, parts = server.get("/readyz")
    assert status == 200
    assert parts


@pytest.mark.slow
def test_a_restarted_app_knows_its_conversations(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    app = start_app()
    before = open_page(app)
    ask_and_wait(before, "Remember the word heron.", "You said: Remember the word heron.")
    before.close()  # what it asks for next would meet a server that is not there
    app.stop()
    app.start()
    again = open_page(app)
    again.locator("#history").get_by_text("Remember the word heron").first.click()
    expect(chat(again)).to_contain_text("You said: Remember the word heron.")
