"""A reply is marked with one press as good, with a reason as bad, and the same press takes it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.webui.screen.stage import Stage

Show = Callable[..., Page]


def rated(stage: Stage) -> dict[str, Any]:
    stage.until(lambda: any(one["do"] == "rate" for one in stage.asked))
    return next(one for one in stage.asked if one["do"] == "rate")


def test_one_press_marks_a_reply_as_good(show: Show, stage: Stage) -> None:
    page = show("answered")
    page.locator("#chat a.p-up").first.click()
    assert {**rated(stage), "id": ""} == {"do": "rate", "id": "", "mark": "up", "reason": ""}


def test_a_bad_one_asks_why_and_the_keyboard_chooses(show: Show, stage: Stage) -> None:
    page = show("answered", locale="zh-CN", width=390, height=780)
    link = page.locator("#chat a.p-down").first
    link.focus()
    page.keyboard.press("Enter")
    menu = page.get_by_role("menu", name="哪里不好？")
    expect(menu.get_by_role("menuitem")).to_have_count(6)
    box = menu.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    menu.get_by_role("menuitem", name="有遗漏").press("Enter")
    assert (rated(stage)["mark"], rated(stage)["reason"]) == ("down", "有遗漏")


def test_another_reason_is_written_and_nothing_is_sent_where_it_is_given_up(show: Show, stage: Stage) -> None:
    page = show("answered")
    page.locator("#chat a.p-down").first.click()
    page.keyboard.press("Escape")
    page.locator("#chat a.p-down").first.click()
    page.get_by_role("menuitem", name="Something else …").click()
    dialog = page.get_by_role("dialog", name="What is bad about it?")
    dialog.get_by_role("textbox").fill("The sum is wrong")
    assert not [one for one in stage.asked if one["do"] == "rate"]
    dialog.get_by_role("button", name="Keep").click()
    assert rated(stage)["reason"] == "The sum is wrong"
