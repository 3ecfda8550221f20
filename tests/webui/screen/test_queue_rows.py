"""Enter while a reply is written lets the message wait above the composer, where it can be changed, removed, sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import composer
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]

_ENTER_BY_HAND = """(element, events) => {
  element.focus();
  for (const [type, more] of events) element.dispatchEvent(type.startsWith('comp')
    ? new CompositionEvent(type, {bubbles: true, data: '好'})
    : new KeyboardEvent(type, {key: 'Enter', bubbles: true, cancelable: true, ...more}));
}"""


def test_enter_while_a_reply_is_written_sends_into_the_queue(show: Show, stage: Stage) -> None:
    page = show("running")
    composer(page).fill("Now as a chart")
    composer(page).press("Enter")
    stage.until(lambda: stage.sent)
    assert [sent["text"] for sent in stage.sent] == ["Now as a chart"]
    assert "now" not in stage.sent[0]
    expect(composer(page)).to_have_value("")


def test_ctrl_enter_while_a_reply_is_written_sends_now(show: Show, stage: Stage) -> None:
    page = show("running")
    composer(page).fill("No, shorter")
    composer(page).press("Control+Enter")
    stage.until(lambda: stage.sent)
    assert [(sent["text"], sent["now"]) for sent in stage.sent] == [("No, shorter", True)]


def test_ctrl_enter_sends_once_where_no_reply_is_written(show: Show, stage: Stage) -> None:
    page = show("answered")
    composer(page).fill("Plainly")
    composer(page).press("Control+Enter")
    stage.until(lambda: stage.sent)
    expect(composer(page)).to_have_value("")  # kept: until then it is on its way, and another one has to wait
    composer(page).fill("And on")
    composer(page).press("Enter")
    stage.until(lambda: len(stage.sent) > 1)
    assert [(sent["text"], "now" in sent) for sent in stage.sent] == [("Plainly", False), ("And on", False)]


def test_nothing_waits_where_nothing_is_written(show: Show, stage: Stage) -> None:
    page = show("running")
    composer(page).press("Enter")
    composer(page).press("Control+Enter")
    composer(page).fill("Something")
    composer(page).press("Enter")
    stage.until(lambda: stage.sent)
    assert [sent["text"] for sent in stage.sent] == ["Something"]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([["keydown", {"isComposing": True, "keyCode": 229}], ["compositionend", {}]], id="key first"),
        pytest.param([["compositionend", {}], ["keydown", {"keyCode": 229}]], id="end first"),
        pytest.param(
            [["compositionend", {}], ["keydown", {"keyCode": 13}], ["keypress", {}]], id="end first, plain key"
        ),
    ],
)
def test_enter_that_ends_the_choice_of_a_character_never_sends(
    show: Show, stage: Stage, events: list[list[object]]
) -> None:
    page = show("answered", locale="zh-CN")
    composer(page).fill("你好")
    composer(page).evaluate(_ENTER_BY_HAND, events)
    expect(composer(page)).to_have_value("你好")
    composer(page).press("Enter")
    stage.until(lambda: stage.sent)
    assert [sent["text"] for sent in stage.sent] == ["你好"]


def test_escape_closes_what_is_open_and_then_stops_the_reply(show: Show, stage: Stage) -> None:
    page = show("running")
    page.locator("#history .p-menu").first.click()
    expect(page.locator(".p-float")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".p-float")).to_have_count(0)
    assert stage.stops == 0
    page.keyboard.press("Escape")
    stage.until(lambda: stage.stops)
    assert stage.stops == 1


@pytest.mark.parametrize(("locale", "when"), [("en-US", "sent when this reply ends"), ("zh-CN", "本次回答结束后发送")])
def test_what_waits_stands_above_the_composer_in_its_order(show: Show, locale: str, when: str) -> None:
    rows = show("queued", locale=locale).locator("#queue li")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("Now as a chart, one bar per size.")
    expect(rows.first).to_contain_text("sizes.csv")
    expect(rows.first).to_contain_text(when)
    expect(rows.nth(1)).to_contain_text("<b>the mean</b> *under* it.")
    expect(rows.first.get_by_role("button")).to_have_count(3)


def test_a_row_goes_back_into_the_composer_with_its_file_before_what_is_written_there(show: Show, stage: Stage) -> None:
    page = show("queued")
    composer(page).fill("and then?")
    page.locator("#queue .p-requeue").first.click()
    expect(composer(page)).to_have_value("Now as a chart, one bar per size.\n\nand then?")
    expect(composer(page)).to_be_focused()
    expect(page.locator("#composer .p-chip .p-name")).to_have_text(["sizes.csv"])
    assert stage.asked == [{"do": "take", "id": "w1"}]


def test_a_row_that_was_sent_meanwhile_stays_out_of_the_composer_and_says_so(show: Show) -> None:
    page = show("queued")
    page.locator("#queue .p-requeue").first.evaluate("button => { button.dataset.id = 'sent'; }")
    page.locator("#queue .p-requeue").first.click()
    expect(page.locator(".p-hint")).to_have_text("It was sent already.")
    expect(composer(page)).to_have_value("")


def test_a_row_can_be_removed_and_one_that_waits_for_its_owner_sent(show: Show, stage: Stage) -> None:
    page = show("standing")
    expect(page.locator("#queue li").first).to_contain_text("waits for you")
    page.locator("#queue").get_by_role("button", name="Send", exact=True).click()
    stage.until(lambda: stage.asked)
    page.locator("#queue .p-unqueue").nth(1).click()
    stage.until(lambda: len(stage.asked) == 2)
    assert stage.asked == [{"do": "sendqueued", "id": "w1"}, {"do": "unqueue", "id": "w2"}]


def test_on_a_phone_the_first_row_keeps_room_for_its_words(show: Show) -> None:
    for locale in ("en-US", "zh-CN"):
        page = show("queued", width=390, height=844, locale=locale)
        first = page.locator("#queue li").first
        said, when = first.locator(".p-said").bounding_box(), first.locator(".p-when").bounding_box()
        assert said is not None
        assert when is not None
        assert said["width"] >= 150
        assert when["y"] >= said["y"] + said["height"] - 8
        assert when["height"] < 32  # one line


@pytest.mark.parametrize("width", [360, 1440])
def test_the_rows_neither_reach_over_the_composer_nor_beyond_the_page(show: Show, width: int) -> None:
    page = show("standing", width=width, height=800)
    rows, field = page.locator(".p-queue").bounding_box(), page.locator("#composer").bounding_box()
    assert rows is not None
    assert field is not None
    assert rows["y"] + rows["height"] <= field["y"]
    assert rows["x"] >= 0
    assert rows["x"] + rows["width"] <= width
    for button in page.locator("#queue button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 32
        assert box["x"] + box["width"] <= width


# ---- their order


def _handles(page: Page) -> Any:
    return page.locator("#queue .p-movequeued")


def _middle(page: Page, row: int) -> tuple[float, float]:
    box = _handles(page).nth(row).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_row_is_dragged_to_the_line_that_shows_where_it_comes(show: Show, stage: Stage) -> None:
    page = show("queued")
    rows = page.locator("#queue li")
    (x, first), (_, second) = _middle(page, 0), _middle(page, 1)
    page.mouse.move(x, first)
    page.mouse.down()
    page.mouse.move(x + 40, first + 6)
    expect(rows.first).to_have_class(re.compile("p-dragged"))
    expect(page.locator("#queue :is(.p-before, .p-after)")).to_have_count(0)  # there it is already
    page.mouse.move(x + 40, second + 12)
    expect(rows.nth(1)).to_have_class(re.compile("p-after"))
    page.mouse.up()
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "movequeued", "id": "w1", "before": ""}]
    expect(page.locator("#queue :is(.p-dragged, .p-before, .p-after)")).to_have_count(0)
    expect(page.locator(".p-hint")).to_have_text("Now in place 2 of 2.")


def test_escape_lets_a_dragged_row_go_where_it_was_and_stops_no_reply(show: Show, stage: Stage) -> None:
    page = show("queued")
    (x, first), (_, second) = _middle(page, 0), _middle(page, 1)
    page.mouse.move(x, second)
    page.mouse.down()
    page.mouse.move(x, first - 12)
    expect(page.locator("#queue li").first).to_have_class(re.compile("p-before"))
    page.keyboard.press("Escape")
    expect(page.locator("#queue :is(.p-dragged, .p-before)")).to_have_count(0)
    page.mouse.up()
    page.locator("#queue .p-unqueue").first.click()
    stage.until(lambda: stage.asked)
    assert (stage.asked, stage.stops) == ([{"do": "unqueue", "id": "w1"}], 0)


def test_a_finger_drags_a_row_by_its_handle(show: Show, stage: Stage) -> None:
    page = show("queued", width=390, height=780, has_touch=True, is_mobile=True)
    (x, first), (_, second) = _middle(page, 0), _middle(page, 1)
    finger = page.context.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        given = [{"x": at, "y": down} for at, down in points]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": given})

    touch("touchStart", (x, second))
    for y in (second - 8, second - 24, first - 10):
        touch("touchMove", (x, y))
    expect(page.locator("#queue li").first).to_have_class(re.compile("p-before"))
    touch("touchEnd")
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "movequeued", "id": "w2", "before": "w1"}]
    box = _handles(page).first.bounding_box()
    assert box is not None
    assert box["width"] >= 40
    assert box["x"] >= 0


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_arrow_keys_move_a_row_and_the_keyboard_stays_on_its_handle(show: Show, stage: Stage, locale: str) -> None:
    page = show("queued", locale=locale)
    handle = page.locator('#queue .p-movequeued[data-id="w1"]')
    handle.focus()
    page.keyboard.press("ArrowUp")  # it is the first
    page.keyboard.press("ArrowDown")
    expect(handle).to_be_focused()
    expect(page.locator("#queue li").nth(1)).to_have_attribute("data-row", "w1")
    page.keyboard.press("ArrowUp")
    expect(handle).to_be_focused()
    stage.until(lambda: len(stage.asked) == 2)
    assert stage.asked == [{"do": "movequeued", "id": "w1", "before": before} for before in ("", "w2")]
