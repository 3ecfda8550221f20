"""Two replies side by side: two columns, each copied by itself, or on a phone one after the other."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Page, expect

from tests.e2e.axe import findings_in_both_themes
from tests.webui.screen import page_scenes
from tests.webui.screen.stage import Stage
from webui.render.conversation import conversation_entries
from webui.words import Words

Show = Callable[..., Page]
PHONE = {"width": 390, "height": 844}
FIRST, SECOND = "#chat .message-row:has(.p-column-1)", "#chat .message-row:has(.p-column-2)"


def box(page: Page, where: str) -> FloatRect:
    found = page.locator(where).bounding_box()
    assert found is not None
    return found


def test_each_has_a_column_with_its_model_and_what_it_took(show: Show) -> None:
    page = show("compared-over")
    left, right = box(page, FIRST), box(page, SECOND)
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] < right["x"]
    expect(page.locator(f"{FIRST} .p-column")).to_contain_text("Qwen3 30B · api.groq.com4.1 s, 412 tokens")
    expect(page.locator(f"{SECOND} .p-column")).to_contain_text("Qwen2.5-Coder 1.5B, built in19 s, 61 tokens")
    expect(page.locator("#top .p-model")).to_contain_text("Small 0.5B, built in and Qwen2.5-Coder 1.5B, built in")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_one_goes_on_once_it_is_done(show: Show, stage: Stage) -> None:
    page = show("compared")
    expect(page.locator(f"{FIRST} .p-prefer")).to_be_visible()
    expect(page.locator(f"{SECOND} .p-prefer")).to_have_count(0)
    page.locator(f"{FIRST} .p-prefer").click()
    stage.until(lambda: {"do": "prefer", "id": "r-1"} in stage.asked)
    expect(page.locator(".p-hint")).to_have_text("The other reply stays as a version.")


def test_a_reply_is_copied_without_the_other(show: Show) -> None:
    page = show("compared-over")
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator(f"{SECOND} .p-copy").click()
    page.wait_for_function("window.copied")
    assert page.evaluate("window.copied") == "Yes. The paper says that OTSL yields a 2x speed up, so the"


def test_on_a_phone_one_is_shown_and_a_touch_shows_the_other(show: Show) -> None:
    page = show("compared-over", viewport=PHONE)
    expect(page.locator(f"{FIRST} .p-prefer")).to_be_visible()
    expect(page.locator(f"{SECOND} .p-prefer")).to_be_hidden()
    page.locator(f"{SECOND} .p-show").click()
    expect(page.locator(f"{SECOND} .p-prefer")).to_be_visible()
    expect(page.locator(f"{FIRST} .p-prefer")).to_be_hidden()
    page.locator(f"{FIRST} .p-show").click()
    expect(page.locator(f"{FIRST} .p-prefer")).to_be_visible()


@pytest.mark.parametrize("more", [{}, {"viewport": PHONE}], ids=["wide", "phone"])
def test_nothing_stands_in_the_way_of_anybody(show: Show, more: dict[str, dict[str, int]]) -> None:
    page = show("compared-over", **more)
    assert findings_in_both_themes(page) == []


def test_nothing_is_compared_beside_another_question_or_itself() -> None:
    words = Words("en")
    thread, replies = page_scenes.compared()
    second = page_scenes.second(over=True)

    def drawn(**more: Any) -> str:
        entries, owners = conversation_entries(thread, replies, words=words, **more)
        assert len(entries) == len(owners)
        return unescape("".join(part["text"] for one in entries for part in one["content"]))

    assert drawn(compared=second).count("p-column-2") == 1
    assert "p-column" not in drawn()
    thread[-1], replies["r-2"] = second.message, second.reply  # the reader turned to the second one
    assert "p-column" not in drawn(compared=second)
