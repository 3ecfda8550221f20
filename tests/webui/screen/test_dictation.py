"""Dictation: what is said stands in the field as text, and is sent by hand.

Chromium's own recognition asks a service of its maker, which cannot be had here: an object with its face stands in.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.e2e.chat_steps import composer
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]

_HEARS = """() => {
  window.SpeechRecognition = class {
    constructor() { window.heard = this; this.runs = false; }
    start() { this.runs = true; }
    stop() { this.runs = false; this.onend?.(); }
  };
}"""
_SAID = """(results) => {
  const list = results.map(([words, isFinal]) => Object.assign([{ transcript: words }], { isFinal }));
  window.heard.onresult({ results: list, resultIndex: list.length - 1 });
}"""


def dictating(show: Show, **options: str) -> tuple[Page, Locator]:
    page = show("answered", **options)
    page.evaluate(_HEARS)
    button = page.locator("#composer .p-dictate")
    button.click()
    expect(page.locator(".p-hint")).not_to_be_empty()
    return page, button


def listening(button: Locator) -> None:
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")


def test_the_first_press_says_where_the_sound_may_go_and_records_nothing(show: Show) -> None:
    page, button = dictating(show)
    expect(page.locator(".p-hint")).to_contain_text("may send the sound to the service of its maker")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("window.heard === undefined")
    expect(button).to_have_attribute("title", re.compile("Your browser turns speech into text.*Google"))


def test_what_is_said_goes_on_where_the_text_ends_and_is_not_sent(show: Show, stage: Stage) -> None:
    page, button = dictating(show)
    composer(page).fill("Dear reader,")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(button).to_have_attribute("aria-label", "Stop dictating")
    page.evaluate(_SAID, [["how are", False]])
    expect(composer(page)).to_have_value("Dear reader, how are")
    page.evaluate(_SAID, [["how are you", True], [" today", False]])
    expect(composer(page)).to_have_value("Dear reader, how are you today")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("!window.heard.runs")
    assert not stage.sent


def test_words_typed_meanwhile_stay(show: Show) -> None:
    page, button = dictating(show)
    listening(button)
    page.evaluate(_SAID, [["one", True]])
    composer(page).fill("one, by hand")
    page.evaluate(_SAID, [["one", True], ["two", False]])
    expect(composer(page)).to_have_value("one, by hand two")


def test_escape_ends_the_dictation_and_not_the_reply(show: Show, stage: Stage) -> None:
    page = show("running")
    page.evaluate(_HEARS)
    button = page.locator("#composer .p-dictate")
    button.click()
    listening(button)
    page.keyboard.press("Escape")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert stage.stops == 0


def test_what_goes_wrong_is_told_in_the_readers_language(show: Show) -> None:
    page, button = dictating(show, locale="zh-CN")
    listening(button)
    assert page.evaluate("window.heard.lang").startswith("zh")
    page.evaluate("() => { window.heard.onerror({ error: 'network' }); window.heard.onend(); }")
    expect(page.locator(".p-hint")).to_contain_text("浏览器的语音服务没有响应")
    expect(button).to_have_attribute("aria-pressed", "false")


def test_in_a_frame_that_gets_no_microphone_the_first_press_says_so_and_leads_out(show: Show) -> None:
    page = show("answered")
    page.evaluate(_HEARS)
    page.evaluate(
        "() => { window.parent = {}; document.featurePolicy.allowsFeature = (name) => name !== 'microphone'; }"
    )
    button = page.locator("#composer .p-dictate")
    button.click()
    hint = page.locator(".p-hint")
    expect(hint).to_have_text(
        "The page around this one does not let it use the microphone. Open it in a window of its own"
    )
    expect(hint.get_by_role("link")).to_have_attribute("target", "_blank")
    assert page.evaluate("window.heard === undefined")
    page.evaluate("document.featurePolicy.allowsFeature = () => true")
    button.click()
    expect(hint).to_contain_text("Press again to begin.")
    listening(button)
    page.evaluate("() => { window.heard.onerror({ error: 'not-allowed' }); window.heard.onend(); }")
    expect(hint).to_have_text("The browser does not let this page use the microphone. Allow it in the address bar.")
