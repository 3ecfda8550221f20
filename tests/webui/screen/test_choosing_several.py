"""Several conversations at once: chosen by key, click and finger, moved, archived and deleted, and taken back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.axe import findings_everywhere
from tests.e2e.chat_steps import until
from tests.webui.screen.stage import Stage
from webui.words import Words

Show = Callable[..., Page]


def row(page: Page, name: str) -> Locator:
    return page.locator(f"#history a[data-open={name}]")


def asked(stage: Stage, **wanted: Any) -> None:
    stage.until(lambda: wanted in stage.asked)


def test_with_ctrl_and_shift_a_click_chooses_and_escape_ends_it(show: Show, stage: Stage) -> None:
    page = show("filed")
    row(page, "a").click(modifiers=["Control"])
    row(page, "c").click(modifiers=["Shift"])
    expect(page.locator(".p-chosen-head .p-said")).to_have_text("3 selected")
    expect(row(page, "b")).to_have_attribute("aria-checked", "true")
    row(page, "b").click()
    expect(page.locator(".p-chosen-head .p-said")).to_have_text("2 selected")
    assert not [one for one in stage.asked if one["do"] == "open"], "choosing opens nothing"
    assert findings_everywhere(page, "#side") == []
    page.keyboard.press("Escape")
    expect(page.locator(".p-chosen-head")).to_be_hidden()
    expect(row(page, "a")).not_to_have_attribute("role", "checkbox")


def test_what_is_chosen_by_x_is_archived_and_brought_back(show: Show, stage: Stage) -> None:
    page = show("filed")
    row(page, "a").focus()
    page.keyboard.press("x")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    page.locator(".p-chosen-bar").get_by_role("button", name="Archive").click()
    asked(stage, do="archive", ids=["a", "b"], on=True)
    expect(page.locator(".p-undo.p-there:not(.p-bringing)")).to_contain_text("2 archived")
    page.locator(".p-undo.p-there:not(.p-bringing) button").click()
    asked(stage, do="archive", ids=["a", "b"], on=False)


def test_several_are_moved_and_go_back_to_where_each_came_from(show: Show, stage: Stage) -> None:
    page = show("filed")
    row(page, "a").click(modifiers=["Control"])
    row(page, "d").click(modifiers=["Control"])
    page.locator(".p-chosen-bar").get_by_role("button", name="Move to…").click()
    page.get_by_role("menuitem", name="Home").click()
    asked(stage, do="move", ids=["a", "d"], folder="home")
    page.locator(".p-undo.p-there:not(.p-bringing) button").click()
    asked(stage, do="move", ids=["a"], folder="")
    asked(stage, do="move", ids=["d"], folder="work")


def test_several_are_deleted_without_a_question_and_kept_after_all(show: Show, stage: Stage) -> None:
    page = show("filed")
    row(page, "a").focus()
    page.keyboard.press("x")
    page.keyboard.press("Delete")
    asked(stage, do="delete_all", ids=["a"])
    expect(page.locator(".p-undo.p-there:not(.p-bringing)")).to_contain_text("1 deleted")
    page.locator(".p-undo.p-there:not(.p-bringing) button").click()
    asked(stage, do="keep", ids=["a"])


def test_other_tabs_look_again_at_once_when_one_is_deleted_and_when_it_is_kept(show: Show, stage: Stage) -> None:
    page = show("filed")
    page.evaluate("""() => {
        window.told = 0;
        new BroadcastChannel('parlour').onmessage = () => { window.told += 1; };
    }""")
    row(page, "a").focus()
    page.keyboard.press("Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    asked(stage, do="delete", id="a")
    until(lambda: page.evaluate("window.told") == 1)
    page.locator(".p-undo.p-there:not(.p-bringing) button").click()
    asked(stage, do="keep", ids=["a"])
    until(lambda: page.evaluate("window.told") == 2)


# As the server does once a conversation is deleted, wherever that was.
TURN_TO_A_NEW_ONE = "document.querySelector('#status [data-state]').dataset.conversation = ''"
DRAW = "document.body.append(document.createElement('i'))"


@pytest.mark.parametrize("lang", ["en-US", "zh-CN"])
def test_a_window_whose_conversation_is_deleted_in_another_one_says_so_and_keeps_what_is_typed(
    show: Show, lang: str
) -> None:
    page = show("answered", locale=lang)
    field = page.locator("#composer textarea")
    expect(field).to_be_focused()
    page.keyboard.type("What else?")
    page.evaluate(f"{TURN_TO_A_NEW_ONE}; {DRAW}")
    expect(page.locator(".p-left-out")).to_have_text(Words(lang[:2])("js.deleted_elsewhere"))
    expect(field).to_have_value("What else?")


@pytest.mark.parametrize("leave", [False, True], ids=["deleted here", "left"])
def test_who_deletes_a_conversation_or_leaves_it_is_told_of_no_other_window(
    show: Show, stage: Stage, leave: bool
) -> None:
    page = show("filed")
    page.evaluate(f"document.querySelector('#status [data-state]').dataset.conversation = 'a'; {DRAW}")
    page.wait_for_url("**/?c=a")
    if leave:
        page.locator("#house .p-new").click()
        asked(stage, do="new")
    else:
        row(page, "a").focus()
        page.keyboard.press("Delete")
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        asked(stage, do="delete", id="a")
    page.evaluate(DRAW)
    page.evaluate(f"new Promise((done) => setTimeout(done, 300)).then(() => {{ {TURN_TO_A_NEW_ONE}; {DRAW} }})")
    page.wait_for_function("!location.search.includes('c=')")
    expect(page.locator(".p-left-out")).to_have_count(0)


def test_several_are_exported_as_one_archive(show: Show) -> None:
    page = show("filed")
    row(page, "a").click(modifiers=["Control"])
    row(page, "b").click(modifiers=["Control"])
    page.get_by_role("button", name="Export…").click()
    page.route("**/conversations/export?*", lambda route: route.fulfill(body="x", content_type="application/zip"))
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Markdown, to read").click()
    assert download.value.url.endswith("/conversations/export?as=md&id=a&id=b")
    expect(page.locator(".p-chosen-bar")).to_be_visible()  # they stay chosen


def test_a_menu_begins_choosing_and_all_are_chosen_by_one_press(show: Show) -> None:
    page = show("filed", width=390, height=780, has_touch=True)
    page.locator("#top .p-open-menu").click()
    page.locator("#history .p-menu[data-id=a]").click()
    page.get_by_role("menuitem", name="Select").click()
    page.get_by_role("button", name="All 6").click()
    expect(page.locator(".p-chosen-head .p-said")).to_have_text("6 selected")


def test_a_folders_menu_begins_a_conversation_in_it(show: Show, stage: Stage) -> None:
    page = show("filed")
    page.locator("#history .p-menu[data-of=home]").click(force=True)
    page.get_by_role("menuitem", name="New chat here").click()
    asked(stage, do="new", folder="home")
    expect(page.locator("#composer textarea")).to_be_focused()


def test_a_folder_is_exported_in_each_form_that_a_conversation_has(show: Show) -> None:
    page = show("filed")
    page.route("**/conversations/export?*", lambda route: route.fulfill(body="x", content_type="application/zip"))
    menu = page.locator("#history .p-menu[data-of='work']")
    menu.click()
    page.get_by_role("menuitem", name="Export…").click()
    words = Words("en")
    forms = [words(f"js.export_{form}") for form in ("bundle", "html", "pdf", "md", "json")]
    expect(page.get_by_role("menuitem")).to_have_text(forms)
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="PDF, to print").click()
    assert download.value.url.endswith("/conversations/export?as=pdf&folder=work")
    expect(menu).to_be_focused()


def test_on_a_phone_what_holds_for_a_folder_is_shown_in_the_place_of_the_list(show: Show, stage: Stage) -> None:
    page = show("filed", width=390, height=844, has_touch=True, is_mobile=True)
    page.get_by_role("button", name="Conversations").tap()
    page.locator("#history .p-menu[data-of=home]").tap()
    page.get_by_role("menuitem", name="Instructions and documents…").tap()
    asked(stage, do="steering", folder="home")
    expect(page.locator("html")).not_to_have_attribute("data-drawer", "open")


def test_a_row_is_dragged_onto_a_folder(show: Show, stage: Stage) -> None:
    page = show("filed")
    row(page, "a").drag_to(page.locator("#history a[data-folder=home]"))
    asked(stage, do="move", ids=["a"], folder="home")


def test_on_a_phone_the_number_in_a_folder_stands_beside_its_menu(show: Show) -> None:
    page = show("filed", width=390, height=844, has_touch=True, is_mobile=True)
    page.get_by_role("button", name="Conversations").tap()
    row = page.locator("#history .p-folder > div", has=page.locator(".p-many")).first
    number, menu = row.locator(".p-many").bounding_box(), row.locator(".p-menu").bounding_box()
    assert number is not None
    assert menu is not None
    assert number["x"] + number["width"] <= menu["x"]


def test_a_new_reply_does_not_show_through_the_dots_of_an_open_menu(show: Show) -> None:
    page = show("filed")
    dots = page.locator("#history .p-menu[data-id=a]")
    dots.evaluate("""menu => menu.insertAdjacentHTML('beforebegin', '<span class="p-st p-ok" role="img"></span>')""")
    dots.click()
    expect(page.get_by_role("menuitem").first).to_be_visible()
    page.mouse.move(700, 400)
    on_top, colour = dots.evaluate(
        """menu => {
            const box = menu.previousElementSibling.getBoundingClientRect();
            const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
            return [top === menu, getComputedStyle(menu).backgroundColor];
        }"""
    )
    assert on_top
    assert colour.startswith("rgb("), colour
