"""Dictation by recording: the button says where the sound goes, and what was said comes to where one writes.

The recorder is Chromium's own; in the place of the microphone stands a tone that the page makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.axe import findings_everywhere
from tests.e2e.chat_steps import TONE, composer
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]

WAY = {
    "as": "service openai https://api.openai.com/v1 whisper-1",
    "title": "Dictate. What you say is recorded and goes to OpenAI (api.openai.com), which turns it into text",
    "first": "Your recording goes to OpenAI (api.openai.com), and whisper-1 turns it into text: a minute costs $0.006.",
}
_REFUSED = """(name) => {
  navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', name); };
}"""


def button_of(page: Page) -> Locator:
    return page.locator("#composer .p-dictate")


def bar_of(page: Page) -> Locator:
    return page.locator("#talk .p-recording")


def announced(show: Show, stage: Stage, **options: Any) -> Page:
    """A page whose button has said where a recording goes."""
    stage.dictation = {"browser": False, "way": WAY, "longest": 300}
    page = show("answered", **options)
    page.evaluate(TONE)
    button_of(page).click()
    expect(page.locator(".p-hint")).to_contain_text(WAY["first"])
    return page


def recording(show: Show, stage: Stage, **options: Any) -> Page:
    page = announced(show, stage, **options)
    button_of(page).click()
    expect(bar_of(page).get_by_role("timer")).to_contain_text(re.compile("0:0[1-9]"))
    return page


def test_the_first_press_says_where_the_recording_goes_and_records_nothing(show: Show, stage: Stage) -> None:
    page = announced(show, stage)
    expect(page.locator(".p-hint")).to_contain_text("Press again to begin.")
    expect(button_of(page)).to_have_attribute("title", WAY["title"])
    expect(button_of(page)).to_have_attribute("aria-pressed", "false")
    expect(bar_of(page)).to_have_count(0)
    assert page.evaluate("window.microphone === undefined")
    stage.dictation = {**stage.dictation, "way": {**WAY, "as": "another", "first": "It goes to another place."}}
    page.reload(wait_until="domcontentloaded")
    button_of(page).click()
    expect(page.locator(".p-hint")).to_contain_text("It goes to another place.")


def test_what_was_said_comes_to_the_cursor_and_is_not_sent(show: Show, stage: Stage) -> None:
    stage.heard = {"text": "old and new"}
    page = recording(show, stage)
    composer(page).fill("Dear reader.")
    composer(page).evaluate("(field) => field.setSelectionRange(4, 4)")
    expect(button_of(page)).to_have_attribute("aria-pressed", "true")
    expect(button_of(page)).to_have_attribute("aria-label", "Done")
    button_of(page).click()
    expect(composer(page)).to_have_value("Dear old and new reader.")
    assert composer(page).evaluate("(field) => field.selectionStart") == len("Dear old and new")
    expect(bar_of(page)).to_have_count(0)
    ((about, sound),) = stage.recordings
    assert (about["type"], about["as"], about["talk"]) == ("audio/webm", WAY["as"], "conv")
    assert float(about["seconds"]) >= 1
    assert sound.startswith(b"\x1aE\xdf\xa3")
    assert b"A_OPUS" in sound
    assert not stage.sent
    assert page.evaluate("window.microphone.getTracks().every((one) => one.readyState === 'ended')")


def test_while_it_records_time_and_loudness_are_seen_and_escape_discards_it(show: Show, stage: Stage) -> None:
    page = recording(show, stage)
    expect(bar_of(page).get_by_role("timer")).to_contain_text("of 5:00")
    page.wait_for_function("+getComputedStyle(document.querySelector('.p-level')).getPropertyValue('--loud') > 0.2")
    assert findings_everywhere(page) == []
    page.keyboard.press("Escape")
    expect(bar_of(page)).to_have_count(0)
    expect(button_of(page)).to_have_attribute("aria-pressed", "false")
    assert not stage.recordings
    assert page.evaluate("window.microphone.getTracks().every((one) => one.readyState === 'ended')")


def test_escape_while_it_is_turned_into_text_lets_go_of_it_and_stops_no_reply(show: Show, stage: Stage) -> None:
    stage.searching.clear()
    page = recording(show, stage)
    bar_of(page).get_by_role("button", name="Done").click()
    stage.until(lambda: stage.recordings)
    expect(bar_of(page)).to_contain_text("being turned into text")
    expect(button_of(page)).to_be_disabled()
    page.keyboard.press("Escape")
    expect(bar_of(page)).to_have_count(0)
    stage.heard = {"text": "too late"}
    stage.searching.set()
    expect(button_of(page)).to_be_enabled()
    expect(composer(page)).to_have_value("")
    assert stage.stops == 0


def test_a_recording_ends_by_itself_when_its_time_is_over(show: Show, stage: Stage) -> None:
    stage.heard = {"text": "in time"}
    stage.dictation = {"browser": False, "way": WAY, "longest": 2}
    page = show("answered")
    page.evaluate(TONE)
    button_of(page).click()
    expect(page.locator(".p-hint")).not_to_be_empty()
    button_of(page).click()
    expect(composer(page)).to_have_value("in time")


def test_nothing_is_lost_where_it_fails_it_is_tried_again_or_saved(show: Show, stage: Stage) -> None:
    stage.heard = {"failed": "OpenAI cannot be reached."}
    page = recording(show, stage)
    bar_of(page).get_by_role("button", name="Done").click()
    expect(bar_of(page).get_by_role("alert")).to_have_text("OpenAI cannot be reached. The recording is kept.")
    assert findings_everywhere(page) == []
    with page.expect_download() as saved:
        bar_of(page).get_by_role("link", name="Download").click()
    assert saved.value.suggested_filename == "Dictation.webm"
    assert saved.value.path().read_bytes() == stage.recordings[0][1]
    stage.heard = {"text": "at last"}
    bar_of(page).get_by_role("button", name="Try again").click()
    expect(composer(page)).to_have_value("at last")
    assert stage.recordings[0][1] == stage.recordings[1][1]
    expect(bar_of(page)).to_have_count(0)


def test_where_something_else_was_chosen_meanwhile_it_is_told_before_the_recording_goes_there(
    show: Show, stage: Stage
) -> None:
    stage.heard = {"failed": "Something else is chosen for dictation by now.", "changed": True}
    page = recording(show, stage)
    bar_of(page).get_by_role("button", name="Done").click()
    expect(bar_of(page).get_by_role("alert")).to_contain_text("Something else is chosen")
    stage.dictation = {"browser": False, "way": {"as": "here", "title": "", "first": "Here it stays."}, "longest": 300}
    again = bar_of(page).get_by_role("button", name="Try again")
    again.click()
    expect(bar_of(page).get_by_role("alert")).to_contain_text("Here it stays.")
    assert len(stage.recordings) == 1
    stage.heard = {"text": "here"}
    again.click()
    expect(composer(page)).to_have_value("here")
    assert stage.recordings[1][0]["as"] == "here"


@pytest.mark.parametrize(
    ("name", "said"),
    [("NotAllowedError", "does not let this page use the microphone"), ("NotFoundError", "No microphone can be used")],
)
def test_a_microphone_that_is_refused_or_missing_is_told(show: Show, stage: Stage, name: str, said: str) -> None:
    page = announced(show, stage)
    page.evaluate(_REFUSED, name)
    button_of(page).click()
    expect(page.locator(".p-hint")).to_contain_text(said)
    expect(bar_of(page)).to_have_count(0)
    expect(button_of(page)).to_have_attribute("aria-pressed", "false")


def test_where_nothing_can_be_used_the_button_says_why(show: Show, stage: Stage) -> None:
    stage.dictation = {"browser": False, "problem": "What was chosen cannot be used any more.", "longest": 300}
    page = show("answered")
    button_of(page).click()
    expect(page.locator(".p-hint")).to_have_text("What was chosen cannot be used any more.")


def test_a_browser_without_recognition_has_the_button_where_there_is_a_service(show: Show, stage: Stage) -> None:
    stage.dictation = {"browser": True, "way": WAY, "longest": 300}
    page = show("answered", reduced_motion="reduce")  # a page of its own, which keeps the script to itself
    page.add_init_script("delete window.webkitSpeechRecognition; delete window.SpeechRecognition;")
    page.reload(wait_until="domcontentloaded")
    expect(button_of(page)).to_be_visible()
    expect(button_of(page)).to_have_attribute("title", WAY["title"])
    stage.dictation = {"browser": True, "longest": 300}
    page.reload(wait_until="domcontentloaded")
    expect(page.locator("#composer[data-hears], #composer:not([data-dictates])")).to_be_visible()
    expect(button_of(page)).to_have_count(0)


def test_it_all_stands_on_a_phone_in_chinese(show: Show, stage: Stage) -> None:
    stage.heard = {"failed": "连接不上 OpenAI。"}
    page = recording(show, stage, locale="zh-CN", width=390, height=780)
    expect(bar_of(page)).to_contain_text("正在录音")
    bar_of(page).get_by_role("button", name="完成").click()
    expect(bar_of(page).get_by_role("alert")).to_have_text("连接不上 OpenAI。录音还在。")
    box = bar_of(page).bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    bar_of(page).get_by_role("button", name="放弃").click()
    expect(bar_of(page)).to_have_count(0)
