"""Conversations: found, named, deleted, and addressed."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import NAMED, ask, ask_and_wait, chat, wait_for_script, wait_for_state


def open_menu(page: Page, title: str) -> None:
    """Open the menu of a conversation."""
    page.locator("#history").get_by_text(title).first.hover()
    page.get_by_role("button", name=f"Options for “{title}”").click()


def test_a_conversation_is_called_by_the_first_words_of_its_question(page: Page) -> None:
    ask_and_wait(page, "Tell me about herons, and how they fish in winter", "You said: Tell me")
    expect(page.locator("#history")).to_contain_text("Tell me about herons")
    expect(page.locator("#top")).to_contain_text("Tell me about herons")


def test_a_conversation_is_renamed(page: Page) -> None:
    ask_and_wait(page, "Before the new name", "You said: Before")
    open_menu(page, "Before the new name")
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_role("textbox", name="Title").fill("<b>Birds</b> & 鸟 😀")
    page.get_by_role("textbox", name="Title").press("Enter")
    expect(page.locator("#history")).to_contain_text("<b>Birds</b> & 鸟 😀")
    expect(page.locator("#top")).to_contain_text("<b>Birds</b> & 鸟 😀")
    page.reload(wait_until="domcontentloaded")
    expect(page.locator("#history")).to_contain_text("<b>Birds</b> & 鸟 😀")


def test_a_conversation_is_pinned_filed_and_found_there(page: Page) -> None:
    ask_and_wait(page, "Keep this near", "You said: Keep this near")
    history = page.locator("#history")
    open_menu(page, "Keep this near")
    page.get_by_role("menuitem", name="Pin", exact=True).click()
    expect(history.get_by_role("heading", name="Pinned")).to_be_visible()
    open_menu(page, "Keep this near")
    page.get_by_role("menuitem", name="Unpin").click()
    expect(history.get_by_role("heading", name="Pinned")).to_have_count(0)
    open_menu(page, "Keep this near")
    page.get_by_role("menuitem", name="Move to…").click()
    page.get_by_role("menuitem", name="New folder…").click()
    page.get_by_role("textbox", name="Name of the folder").fill("Birds <b> 鸟")
    page.get_by_role("textbox", name="Name of the folder").press("Enter")
    folder = history.get_by_role("button", name="Birds <b> 鸟", exact=True)
    row = history.locator("a[data-open]", has_text="Keep this near")
    expect(folder).to_have_attribute("aria-expanded", "false")
    expect(row).to_be_hidden()
    folder.click()
    expect(row).to_be_visible()
    page.reload(wait_until="domcontentloaded")
    expect(row).to_be_visible()
    page.get_by_role("button", name="Options for “Birds <b> 鸟”").click(force=True)
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(folder).to_have_count(0)
    expect(row).to_be_visible()


def test_a_conversation_branches_off_at_any_reply(page: Page) -> None:
    ask_and_wait(page, "The first way", "You said: The first way")
    ask_and_wait(page, "The second way", "You said: The second way")
    chat(page).get_by_role("button", name="Branch off", exact=True).first.click()
    expect(chat(page)).not_to_contain_text("The second way")
    expect(chat(page)).to_contain_text("You said: The first way")
    ask_and_wait(page, "Another way", "You said: Another way")
    rows = page.locator("#history a[data-open]", has_text="The first way")
    expect(rows).to_have_count(2)
    rows.last.click()
    expect(chat(page)).to_contain_text("You said: The second way")
    expect(chat(page)).not_to_contain_text("Another way")


def test_what_is_archived_leaves_the_list_and_comes_back_with_undo_or_from_the_archive(page: Page) -> None:
    ask_and_wait(page, "Put this away", "You said: Put this away")
    row = page.locator("#history a[data-open]", has_text="Put this away")
    row.focus()
    page.keyboard.press("e")
    expect(row).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="Archived “Put this away”")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(row).to_be_visible()
    open_menu(page, "Put this away")
    page.get_by_role("menuitem", name="Archive").click()
    expect(row).to_have_count(0)
    page.locator("#history").get_by_role("button", name="Archived").click()
    expect(row).to_be_visible()
    open_menu(page, "Put this away")
    page.get_by_role("menuitem", name="Bring back").click()
    page.locator("#history").get_by_role("button", name="Back to all conversations").click()
    expect(row).to_be_visible()


def test_a_conversation_is_deleted_with_all_that_belongs_to_it(page: Page) -> None:
    ask_and_wait(page, "Soon to be gone", "You said: Soon to be gone")
    expect(page).to_have_url(NAMED)
    address = page.url
    open_menu(page, "Soon to be gone")
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#history")).not_to_contain_text("Soon to be gone")
    expect(chat(page)).not_to_contain_text("Soon to be gone")
    page.goto(address, wait_until="domcontentloaded")
    wait_for_script(page)
    expect(page.locator("#status [data-room=empty]")).to_be_attached()
    ask_and_wait(page, "A fresh start", "You said: A fresh start")


def test_a_conversation_has_an_address_and_the_browsers_back_works(page: Page) -> None:
    ask_and_wait(page, "The first address", "You said: The first address")
    expect(page).to_have_url(NAMED)
    first = page.url
    page.locator("#house").get_by_text("New chat").first.click()
    expect(page.locator("#status [data-room=empty]")).to_be_attached()
    ask_and_wait(page, "The second address", "You said: The second address")
    page.locator("#history").get_by_text("The first address").first.click()
    expect(chat(page)).to_contain_text("You said: The first address")
    expect(page).to_have_url(first)
    page.go_back()
    expect(chat(page)).to_contain_text("You said: The second address")


def test_a_message_is_found_by_its_words_and_opened_where_it_stands(page: Page) -> None:
    ask_and_wait(page, "The kingfisher of the canal", "You said: The kingfisher")
    for number in range(3):
        ask_and_wait(page, f"Something else {number}\n" + "and more\n" * 7, f"You said: Something else {number}")
    page.get_by_role("button", name="Edit", exact=True).last.click()
    page.get_by_role("textbox", name="Edit your question").fill("Another question")
    page.locator(".p-editing").get_by_role("button", name="Send").click()
    expect(chat(page)).to_contain_text("You said: Another question")
    wait_for_state(page, "idle")
    page.locator("#house").get_by_text("New chat").first.click()
    expect(page.locator("#status [data-room=empty]")).to_be_attached()
    palette = page.get_by_role("dialog", name="Search")
    for typed, shown in (("KINGFÍSHER can", "The kingfisher of the canal"), ("else 2", "Something else 2")):
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Search").fill(typed)
        hit = palette.get_by_role("option").filter(has=page.locator(".p-who", has_text="you")).first
        expect(hit).to_contain_text(shown)
        hit.click()
        expect(chat(page).locator(".user-row", has_text=shown)).to_be_in_viewport()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search").fill("no such words anywhere")
    expect(palette.get_by_role("option", name="Nothing found. Ask the model instead, Enter.")).to_be_visible()
    page.keyboard.press("Enter")
    expect(chat(page)).to_contain_text("You said: no such words anywhere")
    expect(chat(page)).not_to_contain_text("Something else")


def test_another_conversation_tells_that_it_replies_and_then_that_nobody_saw_it(
    server: AppProcess, open_page: Callable[..., Page]
) -> None:
    page = open_page(server)
    ask(page, "count calmly, unseen")
    expect(chat(page)).to_contain_text("word5 ")
    page.locator("#house").get_by_text("New chat").first.click()
    row = page.locator("#history li").filter(has_text="count calmly, unseen")
    expect(row.get_by_role("img", name="replying")).to_be_visible()
    expect(row.get_by_role("img", name="new reply")).to_be_visible()
    row.get_by_text("count calmly, unseen").click()
    expect(chat(page)).to_contain_text("word200")
    expect(row.get_by_role("img")).to_have_count(0)
    wait_for_state(page, "idle")


def test_long_conversations_show_their_end_and_earlier_turns_on_demand(page: Page) -> None:
    for number in range(1, 24):
        ask(page, f"Question number {number}.")
        expect(chat(page)).to_contain_text(f"You said: Question number {number}.")
        wait_for_state(page, "idle")
    page.reload(wait_until="domcontentloaded")
    wait_for_script(page)
    expect(chat(page)).to_contain_text("You said: Question number 23.")
    expect(chat(page)).not_to_contain_text("You said: Question number 2.")
    page.locator("#chat [role=log]").hover()
    page.mouse.wheel(0, -20_000)  # a page that is at its end stays there; a reader moves up first
    expect(chat(page).get_by_text("Show earlier messages")).to_be_in_viewport()
    chat(page).get_by_text("Show earlier messages").click()
    expect(chat(page)).to_contain_text("You said: Question number 2.")
    expect(chat(page)).to_contain_text("You said: Question number 23.")
