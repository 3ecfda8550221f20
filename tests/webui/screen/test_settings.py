"""The settings on a screen: an address for each part, what is changed at once, what is found, and the way back."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.axe import findings_everywhere
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]


def opened(page: Page) -> None:
    page.locator("#history .p-open-settings").click()
    expect(page.locator("#p-settings .p-set").first).to_be_visible()


def test_the_settings_have_addresses_and_back_and_forward_lead_through_them(show: Show, stage: Stage) -> None:
    page = show("answered")
    opened(page)
    assert page.url == f"{stage.url}/settings/general?c=conv"
    expect(page).to_have_title("Settings · Parlour")
    expect(page.locator("#composer")).to_be_hidden()
    page.locator("#p-settings nav a[data-section=data]").click()
    assert page.url == f"{stage.url}/settings/data?c=conv"
    expect(page.get_by_role("heading", name="Privacy and data")).to_be_in_viewport()
    page.go_back()
    expect(page.locator("#p-settings nav a[aria-current]")).to_have_text("General")
    page.go_back()
    expect(page.locator("#p-settings")).to_have_count(0)
    expect(page.locator("#composer")).to_be_visible()
    assert page.url.endswith("?c=conv")
    page.go_forward()
    expect(page.locator("#p-settings .p-set").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#p-settings")).to_have_count(0)
    opened(page)
    page.locator("#history a[data-open=old]").click()
    expect(page.locator("#p-settings")).to_have_count(0)
    assert page.url == f"{stage.url}/?c=old"
    stage.until(lambda: {"do": "open", "id": "old"} in stage.asked)


def test_the_part_in_which_one_works_is_marked_while_it_is_in_sight(show: Show) -> None:
    page = show("answered")
    opened(page)
    page.locator("#p-settings nav a[data-section=tools]").click()
    marked = page.locator("#p-settings nav a[aria-current]")
    expect(marked).to_have_text("Tools")
    page.locator("#p-settings .p-add-key").evaluate("button => button.focus({ preventScroll: true })")
    page.locator("#p-settings .p-scroll").evaluate("""scroll => {
        const button = scroll.querySelector('.p-add-key').getBoundingClientRect();
        scroll.scrollTop += button.bottom - scroll.getBoundingClientRect().bottom + 20;
    }""")
    expect(marked).to_have_text("Keys for programs")
    page.locator("#p-settings nav a[data-section=tools]").click()
    expect(marked).to_have_text("Tools")


def test_a_choice_shows_that_it_opens_and_words_keep_off_the_edge(show: Show) -> None:
    page = show("answered")
    opened(page)
    choice = page.locator("#p-settings select").first
    expect(choice).to_have_css("background-image", re.compile("^url"))
    expect(choice).to_have_css("padding-right", "36px")
    expect(page.locator("#p-settings textarea").first).to_have_css("padding-top", "8px")


def test_a_scroll_whose_event_comes_after_the_settings_were_closed_breaks_nothing(show: Show) -> None:
    page = show("answered")
    opened(page)
    scroll = page.locator("#p-settings .p-scroll").element_handle()
    page.keyboard.press("Escape")
    expect(page.locator("#p-settings")).to_have_count(0)
    scroll.evaluate("(element) => element.dispatchEvent(new Event('scroll'))")


def test_an_address_of_a_part_opens_it_with_all_files_in_place(show: Show, stage: Stage) -> None:
    page = show(path="/settings/keyboard")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_in_viewport()
    expect(page.locator("#p-settings .p-keys-here")).to_contain_text("Ctrl")
    assert page.url == f"{stage.url}/settings/keyboard"


def test_an_address_of_no_part_opens_the_first_one_and_says_so(show: Show, stage: Stage) -> None:
    page = show(path="/settings/xyz-9")
    expect(page.locator("#p-settings .p-told")).to_have_text(
        "There is no part of the settings with this address. This is the first one."
    )
    expect(page.get_by_role("heading", name="General")).to_be_in_viewport()
    assert page.url == f"{stage.url}/settings/general"
    page.locator("#p-settings nav a[data-section=tools]").click()
    expect(page.locator("#p-settings .p-told")).to_be_empty()


def test_theme_and_size_hold_at_once_and_after_a_reload_and_the_switches_tell_the_server(
    show: Show, stage: Stage
) -> None:
    page = show("answered")
    opened(page)
    page.get_by_role("radio", name="Dark").check(force=True)
    page.get_by_role("radio", name="19 px").check(force=True)
    expect(page.locator("html")).to_have_class(re.compile("dark"))
    expect(page.locator("html")).to_have_attribute("data-size", "5")
    page.get_by_role("switch", name="Name conversations automatically").uncheck(force=True)
    about = page.get_by_role("textbox", name="About you")
    expect(about).to_have_value("I look after <b>four</b> houses.")
    about.fill("Be brief.")
    stage.until(lambda: len(stage.preferred) == 2)
    assert stage.preferred == [
        ("change", {"name": "titles", "value": False}),
        ("change", {"name": "about_me", "value": "Be brief."}),
    ]
    expect(page.locator("#p-settings .p-told")).to_have_text("kept")
    page.reload(wait_until="domcontentloaded")
    expect(page.locator("html")).to_have_class(re.compile("dark"))
    expect(page.get_by_role("radio", name="Dark")).to_be_checked()
    page.get_by_role("radio", name="System").check(force=True)
    page.get_by_role("radio", name="16 px").check(force=True)
    expect(page.locator("html")).not_to_have_attribute("data-size", "5")


def test_another_language_is_spoken_by_the_whole_page_at_once(show: Show, stage: Stage) -> None:
    page = show("", reduced_motion="reduce")
    opened(page)
    page.get_by_label("Language").select_option("zh")
    expect(page.get_by_role("heading", name="通用")).to_be_visible()
    expect(page.locator("#house .p-new")).to_have_text("新对话")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.get_by_label("语言").select_option("")
    expect(page.get_by_role("heading", name="General")).to_be_visible()


def test_a_setting_is_found_by_its_words_and_marked(show: Show) -> None:
    page = show()
    opened(page)
    field = page.get_by_role("searchbox", name="Find a setting")
    field.fill("size text")
    expect(page.locator("#p-settings .p-set:visible")).to_have_count(1)
    assert page.evaluate("CSS.highlights.get('p-found').size") >= 2
    field.fill("zebra")
    expect(page.locator("#p-settings .p-nothing")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#p-settings .p-set:visible")).not_to_have_count(1)
    expect(page.locator("#p-settings .p-nothing")).to_be_hidden()


def test_what_leaves_comes_in_again_from_the_same_place(show: Show) -> None:
    page = show()
    opened(page)
    page.set_viewport_size({"width": 390, "height": 844})
    out = page.locator("#p-settings .p-ways-out a")
    assert out.all_inner_texts() == ["Bundle", "HTML", "PDF", "Markdown", "JSON"]
    assert all(
        box and box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in (one.bounding_box() for one in out.all())
    )
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a file…").click()
    assert not chooser.value.is_multiple()


def test_deleting_everything_wants_its_word(show: Show, stage: Stage) -> None:
    page = show()
    opened(page)
    page.get_by_role("button", name="Delete all…").click()
    dialog = page.locator("dialog[open]")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_role("textbox", name="Type “delete” to delete them").fill("delete")
    dialog.get_by_label("Delete the assistant’s notes as well").check()
    dialog.get_by_role("button", name="Delete everything").click()
    stage.until(lambda: stage.preferred)
    assert stage.preferred == [("delete", {"word": "delete", "notes": True})]


def test_where_enter_starts_a_line_ctrl_enter_sends(show: Show, stage: Stage) -> None:
    page = show()
    opened(page)
    page.get_by_role("radio", name="starts a new line").check(force=True)
    sending = page.locator("#p-settings .p-keys-here dl > div", has_text="Send; while a reply is written")
    expect(sending.locator("dt")).to_have_text("Ctrl+Enter")
    page.locator("#p-settings header .p-close").click()
    field = page.locator("#composer textarea")
    field.click()
    page.keyboard.type("One")
    page.keyboard.press("Enter")
    page.keyboard.type("two")
    expect(field).to_have_value("One\ntwo")
    page.keyboard.press("Control+Enter")
    stage.until(lambda: stage.sent)
    assert stage.sent[0]["text"] == "One\ntwo"
    page.evaluate("localStorage.removeItem('p-enter')")


@pytest.mark.parametrize(
    ("width", "options"), [(1440, {}), (390, {"locale": "zh-CN", "color_scheme": "dark"})], ids=["wide", "phone"]
)
def test_axe_finds_nothing_to_mend_in_the_settings(
    width: int, options: dict[str, str], show: Show, stage: Stage
) -> None:
    page = show(path="/settings/general", width=width, **options)
    expect(page.locator("#p-settings .p-set").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert findings_everywhere(page, "#p-settings") == []


def test_a_service_for_dictation_is_chosen_and_then_its_model(show: Show, stage: Stage) -> None:
    page = show("answered", reduced_motion="reduce")
    opened(page)
    model = page.get_by_label("Model for dictation")
    expect(model).to_have_count(0)
    page.get_by_label("Dictation", exact=True).focus()
    page.get_by_label("Dictation", exact=True).select_option("Groq")
    expect(model).to_have_attribute("placeholder", "whisper-large-v3-turbo")
    expect(page.get_by_label("Dictation", exact=True)).to_be_focused()
    model.fill("whisper-large-v3")
    model.press("Tab")
    stage.until(lambda: len(stage.preferred) == 2)
    assert stage.preferred == [
        ("change", {"name": "dictation", "value": "groq"}),
        ("change", {"name": "dictation_model", "value": "whisper-large-v3"}),
    ]
    assert findings_everywhere(page) == []
