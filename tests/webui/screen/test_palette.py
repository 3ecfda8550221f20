"""The palette: one field over conversations, messages, documents, libraries and commands, by keyboard and by finger."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.axe import findings_everywhere
from tests.e2e.chat_steps import focus, until
from tests.webui.screen.stage import Stage
from webui.words import LANGUAGES, Words

Show = Callable[..., Page]


def conversation(name: str, title: str, *hits: dict[str, Any], **more: Any) -> dict[str, Any]:
    base = {"id": name, "title": title, "marks": [], "archived": False, "folder": "", "at": time.time() - 10**6}
    return {**base, "hits": list(hits), **more}


def hit(message: str, who: str, text: str, *marks: tuple[int, int]) -> dict[str, Any]:
    return {"message": message, "who": who, "text": text, "marks": marks}


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "name": name, "marks": [], "conversation": None, "library": None, "within": "", **more}


LATEST = {
    "conversations": [conversation(f"c{number}", f"Number {number}") for number in range(5)],
    "documents": [],
    "libraries": [named("Papers <b>")],
}
FOUND = {
    "conversations": [
        conversation(
            "conv",
            "The <b>policy</b> 😀 claim",
            hit("r-1", "reply", "You pay 😀 of each claim.", (18, 23)),
            hit("q2", "you", "and the claim?", (8, 13)),
            marks=[(20, 25)],
            folder="Household",
        ),
        conversation("old", "House rules", archived=True),
        *(conversation(f"x{number}", f"More {number}") for number in range(2)),
    ],
    "documents": [named("claim.pdf", conversation="old", within="House rules"), named("b.pdf", library="Papers")],
    "libraries": [],
}
NOTHING: dict[str, Any] = {"conversations": [], "documents": [], "libraries": []}


INSIDE = {
    "passages": [
        {"document": f"d{n}", "chunk": n, "where": f"<i>{n}.pdf, page {n}", "within": "House", "text": "😀 a claim <b>",
         "marks": [(4, 9)]}
        for n in range(1, 6)
    ],
    "more": True,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _found(stage: Stage) -> None:
    stage.found = lambda sought: LATEST if not sought else NOTHING if "zebra" in sought else FOUND


def opened(page: Page, typed: str = "", key: str = "Control+k") -> Locator:
    """The palette, once it shows what was typed."""
    page.keyboard.press(key)
    palette = page.locator("dialog.p-palette")
    expect(palette.get_by_role("option").first).to_be_visible()
    if typed:
        page.keyboard.type(typed)
        expect(palette.get_by_role("option").filter(has_text="Number 0")).to_have_count(0)
    expect(palette.get_by_role("listbox")).to_have_attribute("aria-busy", "false")
    return palette


def field(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Search")


def chosen(palette: Locator) -> Locator:
    return palette.locator("[role=option][aria-selected=true]")


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_it_opens_with_keys_and_from_the_list_and_gives_the_keyboard_back(show: Show) -> None:
    page = show("answered")
    for key in ("Control+k", "/"):
        focus(page.locator("#top .p-open-models"))
        palette = opened(page, key=key)
        expect(field(page)).to_be_focused()
        press(page, "Escape")
        expect(palette).to_have_count(0)
        expect(page.locator("#top .p-open-models")).to_be_focused()
    page.locator("#p-find").click()
    expect(field(page)).to_be_focused()
    expect(page.locator("dialog.p-palette").get_by_role("option").first).to_be_visible()
    press(page, "Escape")
    expect(page.locator("#p-find")).to_be_focused()
    focus(page.locator("#composer textarea"))
    press(page, "/")
    expect(page.locator("#composer textarea")).to_have_value("/")


def test_the_page_below_cannot_be_reached_until_a_press_beside_it_closes_it(show: Show) -> None:
    page = show("answered")
    focus(page.locator("#top .p-open-models"))
    palette = opened(page)
    for key in ("Tab", "Shift+Tab", "Tab", "Tab"):
        press(page, key)
        assert palette.evaluate("one => one.contains(document.activeElement)")
    room = page.viewport_size
    assert room is not None
    x, y = room["width"] - 30, room["height"] - 40
    assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).className", [x, y]) == "p-palette-scrim"
    page.mouse.click(x, y)
    expect(palette).to_have_count(0)
    expect(page.locator(".p-palette-scrim")).to_have_count(0)
    expect(page.locator("#top .p-open-models")).to_be_focused()


def test_on_a_phone_tab_goes_round_within_it(show: Show) -> None:
    page = show("answered", width=390, height=844, has_touch=True, is_mobile=True)
    palette = opened(page)
    names: list[str] = []
    for _ in range(7):
        press(page, "Tab")
        names.append(palette.evaluate("() => document.activeElement.textContent || document.activeElement.ariaLabel"))
    assert names == ["Close", "Everywhere", "Conversations", "Documents", "Libraries", "Commands", "Search"]


def test_before_anything_is_typed_it_has_the_latest_conversations_and_the_commands(show: Show) -> None:
    palette = opened(show("answered"))
    expect(palette.get_by_role("group", name="Latest conversations").get_by_role("option")).to_have_count(5)
    commands = palette.get_by_role("group", name="Commands").get_by_role("option")
    names = ["New chat", "Libraries", "Tools", "Model settings", "Keyboard shortcuts", "Switch to Dark"]
    expect(commands).to_contain_text([*names, "Export this conversation"])


def test_titles_and_lines_are_text_with_their_words_marked(show: Show) -> None:
    palette = opened(show("answered"), "claim")
    row = palette.get_by_role("option").first
    expect(row.locator(".p-name")).to_have_text("The <b>policy</b> 😀 claim")
    expect(row.locator("mark")).to_have_text(["claim", "claim"])
    expect(row.locator(".p-who")).to_have_text("reply")
    expect(row.locator(".p-note")).to_contain_text("Household, ")
    expect(palette.get_by_role("option").nth(1).locator("mark")).to_have_text("claim")
    expect(palette.get_by_role("option", name="House rules").first.locator(".p-note")).to_have_text("archived")
    expect(palette.get_by_role("status")).to_have_text("7 found")


def test_arrows_home_and_end_go_through_all_rows_and_enter_opens_the_message(show: Show, stage: Stage) -> None:
    page = show("answered")
    palette = opened(page, "claim")
    count = palette.get_by_role("option").count()
    for key, at in (("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", count - 1), ("ArrowDown", 0), ("End", count - 1)):
        press(page, key)
        expect(palette.get_by_role("option").nth(at)).to_have_attribute("aria-selected", "true")
        expect(chosen(palette)).to_have_count(1)
        expect(field(page)).to_have_attribute("aria-activedescendant", f"p-option-{at}")
    press(page, "Home", "Enter")
    expect(palette).to_have_count(0)
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "open", "id": "conv", "message": "r-1"}]
    assert page.evaluate("CSS.highlights.get('p-sought')?.size") >= 1
    expect(page.locator("#chat .p-do[href='#do-copy-r-1']")).to_be_in_viewport()
    expect(page.locator("#chat .message-row.p-sought")).to_have_count(0)
    assert page.evaluate("CSS.highlights.has('p-sought')")  # the words are looked for longer


def test_the_second_line_of_a_conversation_opens_at_its_own_message(show: Show, stage: Stage) -> None:
    page = show("answered")
    opened(page, "claim")
    press(page, "ArrowDown", "Enter")
    stage.until(lambda: stage.asked == [{"do": "open", "id": "conv", "message": "q2"}])


def test_groups_show_a_few_and_the_last_row_opens_the_rest(show: Show) -> None:
    page = show("answered")
    palette = opened(page, "claim")
    group = palette.get_by_role("group", name="Conversations")
    expect(group).to_contain_text("3 of 4")
    expect(group).not_to_contain_text("More 1")
    group.get_by_role("option", name="Show all 4").click()
    expect(group).to_contain_text("More 1")
    expect(field(page)).to_be_focused()


def test_where_more_was_found_than_is_told_it_is_not_said_to_be_all(show: Show, stage: Stage) -> None:
    found = stage.found
    stage.found = lambda q: {**found(q), "more": ["conversations"]}
    page = show("answered")
    group = opened(page, "claim").get_by_role("group", name="Conversations")
    expect(group).to_contain_text("3 of 4+")
    group.get_by_role("option", name="Show the first 4").click()
    expect(group.locator(".p-count")).to_have_text("4+")
    stage.found = found


def test_signs_narrow_it_to_commands_or_libraries(show: Show) -> None:
    page = show("answered")
    palette = opened(page)
    field(page).fill(">key")
    expect(palette.get_by_role("option")).to_have_text(["Keyboard shortcuts?"])
    press(page, "Enter")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    press(page, "Escape", "Control+k")
    expect(field(page)).to_have_value(">key")
    field(page).fill("@")
    expect(palette.get_by_role("option")).to_have_text(["Papers <b>"])
    field(page).fill(">zebra")
    expect(palette.get_by_role("option")).to_have_count(0)
    expect(palette).to_contain_text("Nothing found.")


def test_what_was_looked_for_last_stands_there_again_and_is_replaced_by_typing(show: Show) -> None:
    page = show("answered")
    opened(page, "claim")
    press(page, "Escape", "Control+k")
    expect(field(page)).to_have_value("claim")
    page.keyboard.type("zebra")
    expect(field(page)).to_have_value("zebra")


def test_where_nothing_is_found_enter_asks_the_model_in_a_new_conversation(show: Show, stage: Stage) -> None:
    page = show()
    palette = opened(page, "zebra stripes")
    expect(palette.get_by_role("option")).to_have_text(["Nothing found. Ask the model instead, Enter."])
    press(page, "Enter")
    stage.until(lambda: stage.sent)
    assert stage.sent[0]["text"] == "zebra stripes"


def test_ctrl_enter_asks_with_the_words_and_a_draft_is_there_again_afterwards(show: Show, stage: Stage) -> None:
    page = show()
    page.locator("#composer textarea").fill("A draft")
    opened(page, "claim")
    press(page, "Control+Enter")
    stage.until(lambda: stage.sent)
    assert stage.sent[0]["text"] == "claim"
    expect(page.locator("#composer textarea")).to_have_value("A draft")


def test_until_an_answer_comes_the_former_results_stay_and_enter_waits_for_it(show: Show, stage: Stage) -> None:
    page = show("answered")
    palette = opened(page)
    held: list[str] = []
    answer = stage.found
    stage.found = lambda sought: held.append(sought) or answer(sought)
    stage.searching.clear()
    page.keyboard.type("claim")
    until(lambda: page.evaluate("1") and held)
    expect(palette).to_contain_text("Number 0")
    press(page, "Enter")
    expect(palette).to_be_visible()
    stage.searching.set()
    expect(palette).to_have_count(0)
    stage.until(lambda: stage.asked == [{"do": "open", "id": "conv", "message": "r-1"}])


def test_a_search_that_fails_says_so_and_leaves_the_commands(show: Show, stage: Stage) -> None:
    page = show("answered")
    stage.found = lambda _: {"failed": "The disk failed."}
    press(page, "Control+k")
    page.keyboard.type("tools")
    palette = page.locator("dialog.p-palette")
    expect(palette).to_contain_text("Tools")


def test_on_a_phone_it_is_the_whole_screen_with_a_cross_and_chips(show: Show) -> None:
    page = show("answered", width=390, height=844, has_touch=True, is_mobile=True)
    page.get_by_role("button", name="Conversations").tap()
    page.locator("#p-find").tap()
    palette = page.locator("dialog.p-palette")
    box = palette.bounding_box()
    assert box is not None
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 390, 844)
    palette.get_by_role("button", name="Commands").tap()
    expect(palette.get_by_role("group")).to_have_count(2)  # the chips, and the commands
    expect(palette.get_by_role("button", name="Commands")).to_have_attribute("aria-pressed", "true")
    palette.get_by_role("button", name="Close").tap()
    expect(palette).to_have_count(0)


@pytest.mark.parametrize(
    "lang", [lang if lang == "zh" else pytest.param(lang, marks=pytest.mark.slow) for lang in LANGUAGES]
)
def test_axe_finds_nothing_in_it_in_any_language(show: Show, lang: str) -> None:
    page = show("answered", locale={"en": "en-US", "zh": "zh-CN"}[lang])
    palette = opened(page, "claim")
    expect(palette).to_have_attribute("aria-label", Words(lang)("js.palette_title"))
    assert "palette_" not in palette.inner_text()
    assert findings_everywhere(page, "dialog") == []
    page.keyboard.press("Control+k")
    page.keyboard.type("zebra")
    expect(palette.get_by_role("option")).to_have_count(1)
    assert findings_everywhere(page, "dialog") == []


def test_what_stands_in_documents_comes_below_the_rest_marked_and_opens_at_its_page(show: Show, stage: Stage) -> None:
    stage.inside = lambda _: INSIDE
    page = show("answered")
    palette = opened(page, "claim")
    press(page, "ArrowDown")
    group = palette.get_by_role("group", name="In documents")
    expect(group.get_by_role("option").first).to_contain_text("<i>1.pdf, page 1")
    expect(group.locator("mark").first).to_have_text("claim")
    expect(group).to_contain_text("3 of 5+")
    expect(palette.get_by_role("option").nth(1)).to_have_attribute("aria-selected", "true")  # nothing jumped
    group.get_by_role("option", name="Show the first 5").click()
    expect(group.get_by_role("option")).to_have_count(5)
    group.get_by_role("option").nth(1).click()
    expect(palette).to_have_count(0)
    stage.until(lambda: stage.asked == [{"do": "found", "document": "d2", "n": 2, "text": "claim"}])


def test_where_only_documents_have_the_words_enter_waits_for_them(show: Show, stage: Stage) -> None:
    held = threading.Event()
    stage.inside = lambda sought: INSIDE if sought != "zebra" or held.wait(30) else {}
    page = show("answered")
    palette = opened(page, "zebra")
    expect(palette.get_by_role("option")).to_have_text(["Looking into the documents…"])
    press(page, "Enter")
    expect(palette).to_be_visible()
    held.set()
    expect(palette).to_have_count(0)
    stage.until(lambda: stage.asked == [{"do": "found", "document": "d1", "n": 1, "text": "zebra"}])


def test_back_closes_what_lies_over_the_page_and_stays_in_the_conversation(show: Show) -> None:
    page = show("answered")
    expect(page).to_have_url(re.compile(r"\?c=conv"))
    here = page.url

    def back(over: Locator) -> None:
        expect(over).to_be_visible()
        page.evaluate("history.back()")
        expect(over).not_to_be_visible()
        expect(page).to_have_url(here)
        expect(page.locator("#p-settings")).to_have_count(0)

    opened(page)
    back(page.locator("dialog.p-palette"))  # the page was opened here: nothing of ours was before it
    page.locator("#history .p-open-settings").click()
    expect(page.locator("#p-settings .p-set").first).to_be_visible()
    press(page, "Escape")  # now the entry before is the settings'
    press(page, "?")
    back(page.locator("dialog.p-keys"))
    page.locator("#history .p-menu").first.click()
    back(page.locator(".p-float"))
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("#top .p-open-menu").click()
    back(page.locator("#side"))
    page.locator("#chat sup > a.cite").first.click()
    back(page.locator("#page .p-evidence"))
    page.evaluate("history.back()")
    expect(page.locator("#p-settings .p-set").first).to_be_visible()
    page.evaluate("history.back()")
    expect(page.locator("#p-settings")).to_have_count(0)
    page.evaluate("history.forward()")
    expect(page.locator("#p-settings .p-set").first).to_be_visible()


def test_back_closes_one_thing_at_a_time_on_the_first_page_too(show: Show) -> None:
    page = show("answered", width=390, height=844)
    expect(page).to_have_url(re.compile(r"\?c=conv"))
    here = page.url
    page.locator("#top .p-open-menu").click()
    page.locator("#history .p-menu").first.click()
    menu, drawer = page.locator(".p-float"), page.locator("#side")
    expect(menu).to_be_visible()
    page.evaluate("() => { steps = 0; navigation.addEventListener('currententrychange', () => { steps += 1; }); }")
    for steps, gone in ((2, menu), (4, drawer)):
        expect(drawer).to_be_visible()
        page.evaluate("history.back()")
        page.wait_for_function("wanted => steps >= wanted", arg=steps)  # and forth again
        expect(gone).not_to_be_visible()
        expect(page).to_have_url(here)
