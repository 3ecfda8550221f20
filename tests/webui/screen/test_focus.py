"""The keyboard is never lost: what closes, or is drawn anew, gives it back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import focus
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]


def test_a_menu_that_closes_gives_the_keyboard_back_to_its_button(show: Show) -> None:
    page = show("answered")
    button = page.locator("#history .p-menu").first
    for key in ("Escape", "Tab"):
        focus(button)
        page.keyboard.press("Enter")
        expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
        for item in ("Pin", "Move to…", "Share…", "Export…", "Select", "Archive", "Delete"):
            page.keyboard.press("ArrowDown")
            expect(page.get_by_role("menuitem", name=item, exact=True)).to_be_focused()
        page.keyboard.press(key)
        expect(page.get_by_role("menu")).to_have_count(0)
        if key == "Escape":
            expect(button).to_be_focused()
        expect(page.locator("#history *:focus")).to_have_count(1)


def test_a_conversation_is_exported_from_its_menu_with_the_keyboard_alone(show: Show) -> None:
    page = show("answered")
    button = page.locator("#history .p-menu").first
    focus(button)
    for at, item in enumerate(("Rename", "Pin", "Move to…", "Share…", "Export…")):
        page.keyboard.press("ArrowDown" if at else "Enter")
        expect(page.get_by_role("menuitem", name=item)).to_be_focused()
    page.keyboard.press("Enter")
    forms = [
        "Bundle, to keep or pass on",
        "HTML, to read anywhere",
        "PDF, to print",
        "Markdown, to read",
        "JSON, with everything",
    ]
    expect(page.get_by_role("menuitem")).to_have_text(forms)
    expect(page.get_by_role("menuitem", name=forms[0])).to_be_focused()
    for form in forms[1:]:
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("menuitem", name=form)).to_be_focused()
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    assert saved.value.url.endswith(f"/conversations/{button.get_attribute('data-id')}/export?as=json")
    expect(button).to_be_focused()


def test_the_question_whether_to_delete_has_a_name_and_no_is_chosen(show: Show) -> None:
    page = show("answered")
    focus(page.locator("#history .p-menu").first)
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Delete").press("Enter")
    dialog = page.get_by_role("dialog", name="Delete “About <b>it</b>”?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator("#history .p-menu").first).to_be_focused()


def test_a_row_that_is_drawn_anew_gets_the_keyboard_back(show: Show, stage: Stage) -> None:
    page = show("answered")
    focus(page.locator("#history .p-menu").first)
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Rename").press("Enter")
    page.get_by_label("Title").fill("Better")
    page.keyboard.press("Enter")
    expect(page.locator("#history .p-menu").first).to_be_focused()
    # As the server does it a moment later: the same row, as another element.
    page.evaluate(
        """() => { const list = document.querySelector('#history ul');
            list.innerHTML = list.innerHTML.replaceAll('About', 'Better about'); }"""
    )
    expect(page.locator("#history .p-menu").first).to_be_focused()


def test_when_its_row_is_gone_the_keyboard_goes_to_the_next_one(show: Show) -> None:
    page = show("answered")
    focus(page.locator("#history .p-menu").first)
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Delete").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Delete").press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.evaluate("document.querySelector('#history li').remove()")
    expect(page.locator("#house .p-new")).to_be_focused()


def test_an_open_drawer_keeps_the_keyboard_and_gives_it_back(show: Show) -> None:
    page = show("answered", width=390, height=780)
    button = page.get_by_role("button", name="Conversations")
    focus(button)
    page.keyboard.press("Enter")
    expect(page.locator("#house .p-new")).to_be_focused()
    for _ in range(page.locator("#side :is(a, button)").count() + 2):
        page.keyboard.press("Tab")
        assert not page.evaluate("document.activeElement.closest('#talk, #evidence')")
    page.locator("#house .p-new").focus()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()


@pytest.mark.parametrize(("width", "height"), [(1024, 768), (390, 780)])
def test_evidence_over_the_page_has_the_keyboard_keeps_it_and_gives_it_back(
    show: Show, width: int, height: int
) -> None:
    page = show("answered", width=width, height=height)
    mark = page.locator("#chat sup > a.cite").first
    focus(mark)
    page.keyboard.press("Enter")
    expect(page.locator("#page .p-close")).to_be_focused()
    for _ in range(page.locator("#page :is(a, button, summary)").count() + 3):
        page.keyboard.press("Tab")
        assert not page.evaluate("document.activeElement.closest('#talk, #side')")
    page.locator("#page .p-close").focus()
    page.keyboard.press("Escape")
    expect(mark).to_be_focused()
    page.set_viewport_size({"width": 1280, "height": 800})
    focus(page.locator("#composer textarea"))
    expect(page.locator("#composer textarea")).to_be_focused()


def test_a_panel_beside_the_conversation_takes_the_keyboard_that_opened_it_and_gives_it_back(show: Show) -> None:
    page = show("answered", width=1280)
    button = page.locator("#top .p-open-steer")
    focus(button)
    page.keyboard.press("Enter")
    expect(page.locator("#page .p-steer .p-close")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    button.click()
    expect(page.locator("#page .p-steer")).to_be_visible()
    expect(button).to_be_focused()


def test_a_page_that_grows_wide_while_the_drawer_is_open_can_be_used(show: Show) -> None:
    page = show("answered", width=390, height=780)
    page.get_by_role("button", name="Conversations").click()
    expect(page.locator("#house .p-new")).to_be_focused()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator("#composer textarea").click()
    expect(page.locator("#composer textarea")).to_be_focused()


def test_a_reader_who_goes_elsewhere_is_left_alone(show: Show) -> None:
    page = show("answered")
    focus(page.locator("#history .p-menu").first)
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    page.locator("#composer textarea").click()
    expect(page.locator("#composer textarea")).to_be_focused()
    page.evaluate("document.querySelector('#history ul').innerHTML += ''")
    expect(page.locator("#composer textarea")).to_be_focused()
