"""What stands in the composer when the page is loaded again: what was not sent, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from tests.webui.screen.stage import Stage

Show = Callable[..., Page]
TAKE_AWAY = "row => row.remove()"


@pytest.mark.parametrize("arrived", [True, False], ids=["arrived", "lost on its way"])
def test_a_question_that_was_sent_as_the_page_was_left_is_a_draft_only_where_it_did_not_arrive(
    show: Show, stage: Stage, *, arrived: bool
) -> None:
    page = show("answered")
    held: list[Route] = []  # the page is left before the first request is answered
    page.route("**/queue/join*", lambda route: route.continue_() if held else held.append(route))
    last = page.locator("#chat .user-row").last
    expect(last).to_contain_text("还有呢？")
    if arrived:  # the page that is left did not show it yet, the next one does
        last.evaluate(TAKE_AWAY)
    composer = page.locator("#composer textarea")
    composer.fill("还有呢？")
    composer.press("Enter")
    page.goto(f"{stage.url}/?scene=answered", wait_until="domcontentloaded")
    expect(page.locator("#chat .user-row").last).to_contain_text("还有呢？")
    expect(composer).to_be_focused()  # the draft is put back before that
    expect(composer).to_have_value("" if arrived else "还有呢？")
    page.unroute("**/queue/join*")


@pytest.mark.parametrize("lang", ["en-US", "zh-CN"])
def test_a_draft_goes_with_its_conversation_and_comes_back_with_it(show: Show, stage: Stage, lang: str) -> None:
    page = show("answered", locale=lang)
    composer = page.locator("#composer textarea")
    composer.fill("Half a thought")
    page.locator("#history .p-menu").first.click()
    page.get_by_role("menuitem").last.click()
    page.get_by_role("dialog").locator(".p-danger").click()
    expect(composer).to_have_value("")
    line = page.locator(".p-undo.p-there:not(.p-bringing)")
    expect(line).to_contain_text("Deleted “About <b>it</b>”" if lang == "en-US" else "已删除“About <b>it</b>”")
    line.get_by_role("button").click()
    expect(composer).to_have_value("Half a thought")
    stage.until(lambda: len(stage.asked) > 2)
    assert stage.asked == [
        {"do": "delete", "id": "conv"},
        {"do": "keep", "ids": ["conv"]},
        {"do": "open", "id": "conv"},
    ]


def test_an_address_of_no_conversation_says_so_and_a_new_ones_does_not(show: Show, stage: Stage) -> None:
    page = show(path="/?c=nothing")
    line = page.locator(".p-left-out")
    expect(line).to_have_text("There is no such conversation: it was deleted, or it is somebody else’s.")
    line.get_by_role("button").click()
    expect(line).to_have_count(0)
