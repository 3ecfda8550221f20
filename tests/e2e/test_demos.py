"""A visitor without a key watches a demonstration from the start page, looks behind it, and goes on from there."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask_and_wait, chat


def test_a_demonstration_is_watched_stepped_through_and_taken_over(
    server: AppProcess, open_page: Callable[..., Page]
) -> None:
    page = open_page(server, reduced_motion="reduce")
    page.locator("#hello .p-watch").first.click()
    strip = page.locator("#demo .p-demo")
    expect(strip).to_contain_text("step 1 of 6")
    expect(page.locator("#top")).to_contain_text("no model is running")
    expect(page.locator("#composer")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"\?demo=en-1-documents"))
    expect(strip).to_have_attribute("data-playing", "0")  # less motion was asked for
    page.get_by_role("button", name="On a step").press("Enter")
    expect(strip).to_contain_text("step 2 of 6")
    expect(page.get_by_role("button", name="On a step")).to_be_focused()
    page.get_by_role("button", name="On a step").click()
    page.locator("#chat a.cite").first.click()
    expect(page.locator("#page .p-evidence")).to_contain_text("policy.pdf")
    page.get_by_role("button", name="Play").click()
    expect(strip).to_have_attribute("data-playing", "1")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if request.method == "POST" else None)
    page.get_by_role("button", name="Take over").dblclick()
    expect(page).to_have_url(re.compile(r"\?c="))
    expect(page.locator("#composer textarea")).to_be_visible()
    ask_and_wait(page, "And then?", "scripted")  # by the model that is there, from the document that came along
    assert sum("demotake" in one for one in asked) == 1, "once for both clicks"
    page.go_back()
    expect(chat(page)).not_to_contain_text("And then?")
