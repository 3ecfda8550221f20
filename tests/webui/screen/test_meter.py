"""The ring in the composer and the panel behind a reply, as a reader meets them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.workspace.metering import Meter
from tests.webui.screen.stage import Stage
from tests.webui.screen.test_inspector import ANSWER, TITLE, opened
from webui.handlers.metering import meter_data
from webui.panels.inspector import inspector_html
from webui.words import Words

METER = Meter(
    room=32_768,
    reserved=4_096,
    instructions=96,
    tools=2_370,
    tool_count=5,
    files=4_210,
    history=2_584,
    messages=11,
    draft=62,
    cost=0.0045,
    spent=0.031,
    paid=True,
)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_ring_opens_the_parts_and_escape_closes_them(stage: Stage, show: Callable[..., Page], locale: str) -> None:
    stage.meter = meter_data(METER, Words(locale[:2]))
    page = show("answered", locale=locale)
    ring = page.locator("#composer .p-ring")
    expect(ring).to_be_visible()
    ring.click()
    card = page.locator("#talk > .p-meter")
    expect(card.locator(".p-meter-row")).to_have_count(8)
    expect(card).to_contain_text("32,768")
    expect(card).to_contain_text("$0.031")
    box, sheet = card.bounding_box(), page.locator("#composer").bounding_box()
    assert box is not None
    assert sheet is not None
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= sheet["y"]
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect(ring).to_be_focused()


def test_without_a_model_there_is_no_ring(stage: Stage, show: Callable[..., Page]) -> None:
    stage.meter = {}
    page = show("answered")
    expect(page.locator("#composer textarea")).to_be_visible()
    expect(page.locator("#composer .p-ring")).to_be_hidden()


def test_the_calls_behind_a_reply_open_at_the_right_one_by_one(stage: Stage, show: Callable[..., Page]) -> None:
    stage.evidence = lambda words: inspector_html("r-1", [ANSWER, TITLE], words, opened=opened())
    page = show("answered")
    page.locator("#chat a.p-inspect").last.click()
    expect(page.locator("#page .p-inspect .p-calls li")).to_have_count(2)
    stage.until(lambda: any(one["do"] == "inspect" and one.get("message") for one in stage.asked))
    page.locator("#page [role=tab]").nth(2).click()
    stage.until(lambda: stage.asked[-1] == {"do": "inspect", "message": "r-1", "call": "c2", "stage": "received"})
