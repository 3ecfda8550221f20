"""A question stands as it was typed, long ones folded, and is changed where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from core.messages.message import Message
from core.reading.attachments import checked_text
from tests.webui.screen.page_scenes import TYPED
from tests.webui.screen.stage import Stage
from webui.render.markup import verbatim

Show = Callable[..., Page]


def editing(page: Page, number: int = 0) -> Locator:
    """The field that a question becomes."""
    page.locator("#chat .user-row a.p-edit").nth(number).dispatch_event("click")  # it is seen where a pointer is
    field = page.locator("#chat .p-editing textarea")
    expect(field).to_be_focused()
    return field


@pytest.mark.parametrize(
    ("text", "kept"),
    [("  - a\n    b  ", "  - a\n    b"), ("\n \n\tcode\n\n", "\tcode"), ("a\n\n\nb", "a\n\n\nb"), (" ", "")],
)
def test_what_a_question_is_indented_by_is_kept_and_empty_lines_around_it_are_not(text: str, kept: str) -> None:
    assert checked_text(text, 1).text == kept


def test_a_question_is_shown_as_it_was_typed(show: Show) -> None:
    page = show("typed")
    asked = page.locator("#chat .p-asked").first
    assert asked.inner_text() == TYPED
    assert asked.locator("li, em, b, h1, code").count() == 0
    assert Message("user", TYPED).get_text_content() == TYPED
    assert "<br>" in verbatim("a\nb")


def test_a_long_question_is_folded_until_it_is_wanted(show: Show) -> None:
    page = show("typed")
    long = page.locator("#chat .p-long")
    folded = long.bounding_box()
    page.get_by_role("button", name="Show all, 40 lines").click()
    opened = long.bounding_box()
    assert folded is not None
    assert opened is not None
    assert opened["height"] > 4 * folded["height"]
    page.get_by_role("button", name="Show less").click()
    expect(page.get_by_role("button", name="Show all, 40 lines")).to_be_visible()


def test_a_question_is_changed_in_place_and_ctrl_enter_sends_it_letter_for_letter(show: Show, stage: Stage) -> None:
    page = show("typed")
    field = editing(page)
    expect(field).to_have_value(TYPED)
    expect(page.locator(".p-editing")).to_contain_text("Becomes version 2")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("#chat .bot-row").first).to_be_visible()
    field.press_sequentially("!")
    field.press("Control+Enter")
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "edit", "id": "q-r0", "text": TYPED + "!"}]


@pytest.mark.parametrize(
    ("choice", "sending", "new_line"), [("", "Enter", "Shift+Enter"), ("line", "Control+Enter", "Enter")]
)
def test_enter_does_in_a_question_that_is_changed_what_it_does_in_the_composer(
    show: Show, stage: Stage, choice: str, sending: str, new_line: str
) -> None:
    page = show("typed")
    page.evaluate("choice => localStorage.setItem('p-enter', choice)", choice)
    field = editing(page)
    field.fill("one")
    field.press(new_line)
    field.press_sequentially("two")
    expect(field).to_have_value("one\ntwo")
    assert stage.asked == []
    field.press(sending)
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "edit", "id": "q-r0", "text": "one\ntwo"}]
    page.evaluate("localStorage.removeItem('p-enter')")


def test_the_enter_that_ends_the_choice_of_a_character_sends_no_changed_question(show: Show, stage: Stage) -> None:
    page = show("typed")
    field = editing(page)
    field.fill("你好")
    for composing in ({"isComposing": True}, {"keyCode": 229}):
        field.dispatch_event("keydown", {"key": "Enter", **composing})
    expect(field).to_be_editable()
    assert stage.asked == []
    field.press("Enter")
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "edit", "id": "q-r0", "text": "你好"}]


def test_escape_leaves_a_change_and_says_nothing_to_the_server(show: Show, stage: Stage) -> None:
    page = show("versions")
    field = editing(page, 1)
    expect(page.locator(".p-editing")).to_contain_text("Becomes version 3")
    field.fill("Something else")
    field.press("Escape")
    expect(page.locator(".p-editing")).to_have_count(0)
    expect(page.locator("#chat .p-asked").nth(1)).to_have_text("还有呢？")
    assert stage.asked == []


def test_a_version_that_another_tab_made_meanwhile_is_counted(show: Show) -> None:
    page = show("versions")
    editing(page, 1)
    expect(page.locator(".p-editing")).to_contain_text("Becomes version 3")
    page.locator("#chat .user-row").nth(1).locator(".p-number").evaluate("e => { e.textContent = '3 / 3'; }")
    expect(page.locator(".p-editing")).to_contain_text("Becomes version 4")


@pytest.mark.parametrize("begun", [True, False])
def test_a_change_that_was_begun_is_there_again_with_its_conversation(show: Show, begun: bool) -> None:
    page = show("versions")
    field = editing(page)
    if begun:
        field.fill("Half of a tho")
    for other in (True, False):
        page.locator("#status [data-state]").evaluate(
            "(e, other) => { e.dataset.conversation = other ? 'other' : 'conv'; e.append(''); }", other
        )
        expect(page.locator(".p-editing")).to_have_count(1 if begun and not other else 0)
    if begun:
        expect(field).to_have_value("Half of a tho")
        field.press("Escape")
        expect(page.locator(".p-editing")).to_have_count(0)
        expect(editing(page)).not_to_have_value("Half of a tho")


def test_a_change_stays_where_a_reply_is_being_written(show: Show, stage: Stage) -> None:
    page = show("running")
    field = editing(page)
    field.fill("Go back")
    field.press("Control+Enter")
    expect(page.locator(".p-hint")).to_contain_text("Your change stays here")
    expect(field).to_have_value("Go back")
    assert stage.asked == []


def test_the_pencil_stands_beside_the_text_where_there_is_room_and_below_it_where_there_is_none(show: Show) -> None:
    for width, beside in ((1440, True), (390, False)):
        page = show("answered", width=width)
        text, pencil = (page.locator(f"#chat .user-row {one}").first.bounding_box() for one in (".p-asked", ".p-edit"))
        assert text is not None
        assert pencil is not None
        assert (pencil["x"] >= text["x"] + text["width"]) is beside
        assert (pencil["y"] < text["y"] + text["height"]) is beside


def test_a_question_says_when_it_was_asked_and_names_the_day_once_it_is_over(show: Show) -> None:
    page = show("answered", timezone_id="UTC")  # a window of its own, whose clock can be set
    for time in (page.locator(f"#chat .{row} .p-time").first for row in ("user-row", "bot-row")):
        page.clock.set_fixed_time(_now())
        page.evaluate("dispatchEvent(new Event('visibilitychange'))")
        expect(time).to_have_text(re.compile(r"^\d+:\d\d\s[AP]M$"))
        page.clock.set_fixed_time(_now() + timedelta(days=1))
        page.evaluate("dispatchEvent(new Event('visibilitychange'))")
        expect(time).to_have_text(re.compile(rf"^\w+ \d+, {_now():%Y}, \d+:\d\d\s[AP]M$"))


def _now() -> datetime:
    return datetime.now(UTC)


PASTE = """(field, text) => { const data = new DataTransfer(); data.setData('text/plain', text);
    field.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true})); }"""


@pytest.mark.parametrize(
    ("text", "chip"),
    [
        ("a\n" * 41, "Pasted text, 41 lines.txt"),
        ("x" * 324_000, "Pasted text, 324,000 characters.txt"),
        ("🌊\n" + "x" * 3000, "Pasted text, 3,002 characters.txt"),
        ("a\n" * 40, ""),
    ],
)
def test_a_long_paste_becomes_a_file_and_a_short_one_stays_text(show: Show, text: str, chip: str) -> None:
    page = show()
    field = page.locator("#composer textarea")
    field.evaluate(PASTE, text)
    expect(page.locator("#composer .p-chip .p-name")).to_have_text([chip] if chip else [])
    expect(field).to_have_value("")  # a paste that is made up types nothing by itself


def test_pasted_text_opens_in_place_as_it_is(show: Show) -> None:
    page = show("pasted")
    page.get_by_role("button", name="Pasted text, 400 lines").click()
    expect(page.locator("#chat .p-pasted-text")).to_have_text("in f1")
    page.get_by_role("button", name="Pasted text, 400 lines").click()
    expect(page.locator("#chat .p-pasted-text")).to_have_count(0)
