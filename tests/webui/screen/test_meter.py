"""The ring in the composer and the panel behind a reply, as a reader meets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from core.workspace.metering import Meter, SecondPrice
from core.workspace.saving import Saving
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


@pytest.mark.parametrize(
    ("locale", "said"),
    [("en-US", "Web: 1,310 tokens in each message while it is on"), ("zh-CN", "网络：开启时每条消息 1,310 词元")],
)
def test_a_chip_says_what_its_tools_cost_and_keeps_saying_it_when_it_was_pressed(
    stage: Stage, show: Callable[..., Page], locale: str, said: str
) -> None:
    stage.meter = {**meter_data(METER, Words(locale[:2])), "chips": {"web": 1310}}
    page = show("answered", locale=locale)
    chip = page.locator("#toolbar .p-tap-web")
    expect(chip).to_have_attribute("title", said)
    chip.click()
    expect(chip).to_have_attribute("title", said)
    expect(chip).to_have_accessible_description(said)
    expect(page.locator("#toolbar .p-tap-code")).to_have_attribute("title", Words(locale[:2])("bar.code"))


def test_the_ring_is_there_after_a_reload_in_the_middle_of_a_reply(stage: Stage, show: Callable[..., Page]) -> None:
    stage.meter = meter_data(METER, Words("en"))
    page = show("running")
    expect(page.locator("#status [data-state=running]")).to_be_attached()
    expect(page.locator("#composer .p-ring")).to_be_visible()


SAVINGS = (
    Saving("passages", "", 3_600, names=("otsl-tables.pdf",)),
    Saving("summary", "m8", 1_720, 8, pending=True, free=False, cost=0.0012),
    Saving("tools", "mcp:files", 940, 7),
)


@pytest.mark.parametrize(("locale", "undo"), [("en-US", "Undo"), ("zh-CN", "撤销")])
def test_a_saving_is_one_press_and_one_press_takes_it_back_by_keyboard(
    stage: Stage, show: Callable[..., Page], locale: str, undo: str
) -> None:
    stage.meter = meter_data(replace(METER, savings=SAVINGS), Words(locale[:2]))
    page = show("answered", locale=locale)
    page.locator("#composer .p-ring").click()
    rows = page.locator(".p-meter-savings li")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("− 1,720")
    expect(rows.nth(1)).to_contain_text("$0.0012")
    expect(rows.first).to_contain_text("otsl-tables.pdf")
    expect(rows.nth(2)).to_contain_text("files")
    expect(page.locator("#talk > .p-meter")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    back = rows.nth(1).get_by_role("button", name=undo)
    expect(back).to_be_focused()
    expect(page.locator(".p-meter [role=status]")).to_contain_text("1,720")
    page.keyboard.press("Enter")
    expect(rows.nth(1).locator(".p-save")).to_be_focused()
    assert stage.asked == [{"do": "save", "key": "summary:m8", "on": on} for on in (True, False)]
    page.keyboard.press("Escape")
    expect(page.locator("#composer .p-ring")).to_be_focused()


def test_where_there_is_nothing_to_save_nothing_is_offered(stage: Stage, show: Callable[..., Page]) -> None:
    stage.meter = meter_data(METER, Words("en"))
    page = show("answered")
    page.locator("#composer .p-ring").click()
    expect(page.locator(".p-meter-row").first).to_be_visible()
    expect(page.locator(".p-meter-savings")).to_have_count(0)


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, True)])
def test_the_savings_can_be_reached_on_a_phone_and_in_the_dark(
    stage: Stage, show: Callable[..., Page], width: int, *, dark: bool
) -> None:
    stage.meter = meter_data(replace(METER, savings=SAVINGS), Words("en"))
    page = show("answered", width=width, height=760, color_scheme="dark" if dark else "light")
    page.locator("#composer .p-ring").click()
    last = page.locator(".p-meter-savings li").last
    last.scroll_into_view_if_needed()
    box = last.locator("button").bounding_box()
    assert box is not None
    assert box["height"] >= 44
    assert 0 <= box["x"] <= box["x"] + box["width"] <= width


def test_two_models_have_their_prices_side_by_side(stage: Stage, show: Callable[..., Page]) -> None:
    second = SecondPrice("GPT-5 mini", cost=0.002)
    stage.meter = meter_data(replace(METER, label="Qwen3 30B", second=second), Words("en"))
    page = show("answered")
    page.locator("#composer .p-ring").click()
    prices = page.locator(".p-meter-prices .p-meter-row")
    expect(prices).to_have_count(3)
    expect(prices.first).to_have_text("The next messageQwen3 30Babout $0.0045")
    expect(prices.nth(1)).to_have_text("The next messageGPT-5 miniabout $0.0020")


@pytest.mark.parametrize(
    ("free", "second", "shown"),
    [
        (True, None, []),
        (True, SecondPrice("b", free=True), []),
        (True, SecondPrice("b"), ["free", "price unknown"]),
        (False, SecondPrice("b", free=True), ["about $0.0045", "free"]),
    ],
)
def test_a_price_is_told_wherever_one_of_two_models_may_cost_something(
    free: bool, second: SecondPrice | None, shown: list[str]
) -> None:
    told = meter_data(replace(METER, free=free, paid=False, second=second), Words("en"))
    assert [one["cost"] for one in told.get("next", [])] == shown


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
