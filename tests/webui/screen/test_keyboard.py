"""The page without a mouse: one stop for the list of conversations, and a list of all keys."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.chat_steps import focus
from tests.webui.screen.stage import Stage
from webui.words import LANGUAGES, Words

Show = Callable[..., Page]
OPEN = "#history a[data-open=conv]"
OTHER = "#history a[data-open=old]"


def composer(page: Page) -> Locator:
    return page.locator("#composer textarea")


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_whoever_opens_the_page_can_write_at_once(show: Show) -> None:
    page = show("answered")
    expect(composer(page)).to_be_focused()
    page.keyboard.type("Hello")
    expect(composer(page)).to_have_value("Hello")


def test_a_finger_that_opens_the_page_raises_no_keyboard(show: Show) -> None:
    page = show("answered", width=390, height=844, has_touch=True, is_mobile=True)
    expect(page.locator(OTHER)).to_have_attribute("tabindex", "-1")  # the script has done all it does at the start
    expect(composer(page)).not_to_be_focused()


def test_within_another_page_the_keyboard_is_left_to_that_one(show: Show, stage: Stage) -> None:
    page = show()

    def serve(route: Route) -> None:
        if route.request.url.endswith("/outer"):
            return route.fulfill(
                content_type="text/html", body=f"<input autofocus><iframe src='{stage.url}/'></iframe>"
            )
        answer = route.fetch()
        refusing = {"content-security-policy", "x-frame-options"}
        return route.fulfill(response=answer, headers={k: v for k, v in answer.headers.items() if k not in refusing})

    page.route(re.compile(r"/(outer)?$"), serve)
    page.goto(f"{stage.url}/outer")
    inside = page.frame_locator("iframe")
    expect(inside.locator(OTHER)).to_have_attribute("tabindex", "-1")
    expect(page.locator("input")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_stop_leads_past_the_conversations_and_is_seen_while_it_has_the_keyboard(
    show: Show, scheme: str
) -> None:
    page = show("answered", color_scheme=scheme)
    skip = page.get_by_role("link", name="Skip to the message field")
    assert skip.evaluate("e => getComputedStyle(e).clipPath") != "none"
    focus(page.locator("#house .p-new"))
    press(page, "Shift+Tab")
    expect(skip).to_be_focused()
    assert skip.evaluate("e => getComputedStyle(e).clipPath") == "none"
    assert skip.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    press(page, "Enter")
    expect(composer(page)).to_be_focused()


def test_the_list_of_conversations_is_one_stop_with_arrows_within(show: Show) -> None:
    page = show("answered")
    focus(page.locator("#p-find"))
    press(page, "Tab")
    expect(page.locator(OPEN)).to_be_focused()
    press(page, "Tab")
    expect(page.locator("#history .p-shelf").first).to_be_focused()
    press(page, "Shift+Tab", "ArrowDown")
    expect(page.locator(OTHER)).to_be_focused()
    press(page, "ArrowDown")
    expect(page.locator(OTHER)).to_be_focused()
    for key, row in (("Home", OPEN), ("End", OTHER), ("ArrowUp", OPEN)):
        press(page, key)
        expect(page.locator(row)).to_be_focused()
    press(page, "ArrowUp")
    expect(page.locator("#p-find")).to_be_focused()


def test_what_a_row_can_do_is_done_from_the_row(show: Show, stage: Stage) -> None:
    page = show("answered")
    focus(page.locator(OPEN))
    press(page, "ArrowRight")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    press(page, "Escape")
    expect(page.locator(f"li:has({OPEN.removeprefix('#history ')}) .p-menu")).to_be_focused()
    press(page, "ArrowLeft")
    expect(page.locator(OPEN)).to_be_focused()
    press(page, "F2")
    expect(page.get_by_role("dialog", name="Rename")).to_be_visible()
    press(page, "Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    focus(page.locator(OPEN))
    press(page, "Delete")
    expect(page.get_by_role("dialog", name="Delete “About <b>it</b>”?")).to_be_visible()
    press(page, "Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    focus(page.locator(OTHER))
    press(page, "Enter")
    stage.until(lambda: {"do": "open", "id": "old"} in stage.asked)


def test_a_list_that_is_drawn_anew_keeps_the_keyboard_on_its_row(show: Show) -> None:
    page = show("answered")
    focus(page.locator(OTHER))
    page.evaluate("document.querySelectorAll('#history nav').forEach((one) => { one.innerHTML += ''; })")
    expect(page.locator(OTHER)).to_be_focused()
    press(page, "ArrowUp")
    expect(page.locator(OPEN)).to_be_focused()


def test_a_drawer_that_a_finger_opens_and_closes_leaves_the_keyboard_at_its_button(show: Show) -> None:
    page = show("answered", width=390, height=844, has_touch=True, is_mobile=True)
    page.get_by_role("button", name="Conversations").tap()
    expect(page.locator("#house .p-new")).to_be_focused()
    page.touchscreen.tap(375, 400)
    expect(page.locator("html")).to_have_attribute("data-drawer", "closed")
    expect(page.get_by_role("button", name="Conversations")).to_be_focused()


def test_a_question_mark_lists_the_keys_where_nobody_writes(show: Show) -> None:
    page = show("answered")
    expect(composer(page)).to_be_focused()
    press(page, "?")
    expect(composer(page)).to_have_value("?")
    focus(page.locator("#top .p-open-models"))
    press(page, "?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog).to_be_visible()
    for _ in range(4):
        press(page, "Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    press(page, "Control+k", "Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator("#top .p-open-models")).to_be_focused()
    focus(composer(page))
    press(page, "Control+/")
    expect(dialog).to_be_visible()
    press(page, "Escape")
    expect(composer(page)).to_be_focused()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_list_names_every_key_in_the_readers_language(show: Show, lang: str) -> None:
    page = show("answered", locale={"en": "en-US", "zh": "zh-CN"}[lang])
    press(page, "Control+/")
    words = Words(lang)  # pyright: ignore[reportArgumentType]
    dialog = page.get_by_role("dialog", name=words("js.keys_title"))
    expect(dialog.locator("dd")).to_have_count(21)
    expect(dialog.locator("dt", has_text="K")).to_have_text("Ctrl+K")
    expect(dialog).to_contain_text(words("js.keys_find"))
    assert "keys_" not in dialog.inner_text()


@pytest.mark.parametrize(
    ("choice", "sending", "new_line"), [("", "Enter", "Shift+Enter"), ("line", "Ctrl+Enter", "Enter")]
)
def test_the_list_says_which_key_sends_as_its_reader_chose_it(
    show: Show, choice: str, sending: str, new_line: str
) -> None:
    page = show("answered")
    page.evaluate("choice => localStorage.setItem('p-enter', choice)", choice)
    press(page, "Control+/")
    dialog, words = page.get_by_role("dialog"), Words("en")
    for what, keys in (("send", sending), ("line", new_line), ("again", sending)):
        row = dialog.locator("dl > div").filter(has=page.get_by_text(words(f"js.keys_{what}"), exact=True))
        expect(row.locator("dt")).to_have_text(keys)
    page.evaluate("localStorage.removeItem('p-enter')")


def test_a_new_conversation_begins_with_keys_alone(show: Show, stage: Stage) -> None:
    page = show("answered")
    focus(page.locator(OPEN))
    press(page, "Control+Shift+O")
    stage.until(lambda: stage.asked == [{"do": "new"}])
    expect(composer(page)).to_be_focused()


def test_with_alt_the_arrows_go_through_the_conversations(show: Show, stage: Stage) -> None:
    page = show("answered")
    focus(composer(page))
    press(page, "Alt+ArrowDown")
    stage.until(lambda: stage.asked == [{"do": "open", "id": "old"}])


def test_in_the_empty_field_the_arrow_up_changes_the_last_question(show: Show) -> None:
    page = show("answered")
    composer(page).fill("some words")
    press(page, "ArrowUp")
    expect(page.locator("#chat .p-editing")).to_have_count(0)
    composer(page).fill("")
    press(page, "ArrowUp")
    expect(page.locator("#chat .p-editing textarea")).to_have_value("还有呢？")


@pytest.mark.parametrize("scene", ["", "everything", "asking_form"])
def test_nothing_has_an_english_name_on_a_chinese_page(show: Show, scene: str) -> None:
    page = show(scene, locale="zh-CN")
    expect(page.locator("#composer [role=group]")).to_have_attribute("aria-label", Words("zh")("js.question"))
    found: list[str] = page.evaluate(
        """() => ['aria-label', 'title', 'placeholder', 'alt', 'aria-roledescription'].flatMap((name) =>
            [...document.querySelectorAll(`[${name}]`)]
                .filter((one) => one.checkVisibility({ visibilityProperty: true }))
                .filter((one) => !one.closest('#history li, .katex')).map((one) => one.getAttribute(name)))"""
    )
    assert [said for said in found if re.search("[A-Za-z]{3}", said) and not re.search("[\u4e00-\u9fff]", said)] == []
