"""Behind a reply: what ran when, as a tree by mouse and keyboard, and a case for a suite."""

from __future__ import annotations

import os
from collections.abc import Callable

from playwright.sync_api import Page, expect

from core.testing.behaviour import text_of
from core.testing.script import Reply, Request
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, wait_for_state

SUMS = [("calculator", {"expression": what}) for what in ("17 * 23", "no sum", "2 + 2")]


def said(request: Request) -> Reply:
    over = any(one["role"] == "tool" or "<tool_response>" in text_of(one) for one in request["messages"])
    return Reply(text="It is 391.") if over else Reply(calls=SUMS)


def photographed(page: Page, name: str) -> None:
    """Keep a picture where somebody wants to look at it."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png")


def test_what_ran_when_unfolds_by_keyboard_and_stays_so_on_a_desk_and_a_telephone(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    app = start_app(said, RETRIEVAL="keyword")
    page = open_page(app)
    ask(page, "What is 17 times 23?")
    wait_for_state(page, "idle")
    chat(page).locator("a.p-inspect").last.click()
    tree = page.locator("#page .p-trace")
    fold = tree.locator("> summary")
    expect(fold).to_contain_text("3 tool calls")
    expect(tree.locator(".p-span").first).to_be_hidden()
    fold.focus()
    page.keyboard.press("Enter")
    expect(tree.locator(".p-span").first).to_be_visible()
    expect(tree.locator(".p-span")).to_have_count(5)
    photographed(page, "tree-1280")
    page.locator(".p-calls li > button").first.click()
    expect(page.locator(".p-calls .p-opened")).to_be_visible()
    expect(tree.locator(".p-span").first).to_be_visible()
    with page.expect_download() as kept:
        page.get_by_role("link", name="Make a case for a suite of this reply, as YAML").click()
    assert "What is 17 times 23?" in kept.value.path().read_text("utf-8")
    small = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "color_scheme": "dark", "locale": "zh-CN"}
    phone = open_page(app, page.url.replace(app.url, ""), **small)
    chat(phone).locator("a.p-inspect").last.click()
    phone.locator("#page .p-trace > summary").tap()
    expect(phone.locator("#page .p-span").last).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    photographed(phone, "tree-390-dark-zh")
