"""What stands in the composer when the page is loaded again: what was not sent, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.webui.screen.stage import Stage

Show = Callable[..., Page]
TAKE_AWAY = "row => row.remove()"


@pytest.mark.parametrize("arrived", [True, False], ids=["arrived", "lost on its way"])
def test_a_question_that_was_sent_as_the_page_was_left_is_a_draft_only_where_it_did_not_arrive(
    show: Show, stage: Stage, *, arrived: bool
) -> None:
    page = show("answered")
    page.route("**/queue/join*", lambda _: None)  # the page is left before anything comes back
    last = page.locator("#chat .user-row").last
    expect(last).to_contain_text("还有呢？")
    if arrived:  # the page that is left did not show it yet, the next one does
        last.evaluate(TAKE_AWAY)
    composer = page.locator("#composer textarea")
    composer.fill("还有呢？")
    composer.press("Enter")
    page.unroute_all()
    page.goto(f"{stage.url}/?scene=answered", wait_until="domcontentloaded")
    expect(page.locator("#chat .user-row").last).to_contain_text("还有呢？")
    expect(composer).to_be_focused()  # the draft is put back before that
    expect(composer).to_have_value("" if arrived else "还有呢？")
