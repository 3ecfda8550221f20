"""Each conversation has a draft of its own, its text and its files, and so has a new one."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import ask_and_wait, composer, wait_for_state


def begin(page: Page) -> None:
    page.get_by_role("link", name="New chat").or_(page.get_by_role("button", name="New chat")).first.click()


def go(page: Page, title: str) -> None:
    """Press the row of a conversation, and wait for what it shows."""
    page.locator("#history a[data-open]", has_text=title).first.click()
    expect(page.locator("#chat .user-row").first).to_contain_text(title)


def attach(page: Page, path: Path) -> None:
    path.write_text("The wren sings.")
    page.locator("#composer input[type=file]").first.set_input_files(path)
    expect(page.locator("#composer .p-chip:not(.p-sending)", has_text=path.name)).to_be_visible()


def test_what_was_written_in_one_conversation_stands_in_no_other_and_is_there_on_coming_back(
    page: Page, tmp_path: Path
) -> None:
    ask_and_wait(page, "First of wrens", "You said: First of wrens")
    begin(page)
    ask_and_wait(page, "Second of herons", "You said: Second of herons")
    chips = page.locator("#composer .p-chip .p-name")
    composer(page).fill("About herons")
    attach(page, tmp_path / "heron.txt")
    go(page, "First of wrens")
    expect(composer(page)).to_have_value("")
    expect(chips).to_have_count(0)
    composer(page).fill("About wrens")
    begin(page)
    expect(composer(page)).to_have_value("")
    composer(page).fill("Something new")
    attach(page, tmp_path / "new.txt")
    go(page, "Second of herons")
    expect(composer(page)).to_have_value("About herons")
    expect(chips).to_have_text(["heron.txt"])
    page.go_back()
    expect(composer(page)).to_have_value("Something new")
    expect(chips).to_have_text(["new.txt"])
    attach(page, tmp_path / "newer.txt")
    page.go_back()
    expect(composer(page)).to_have_value("About wrens")
    expect(chips).to_have_count(0)
    begin(page)
    expect(composer(page)).to_have_value("Something new")
    expect(chips).to_have_text(["new.txt", "newer.txt"])
    go(page, "First of wrens")
    expect(composer(page)).to_have_value("About wrens")
    page.reload(wait_until="domcontentloaded")
    expect(composer(page)).to_have_value("About wrens")
    go(page, "Second of herons")
    expect(composer(page)).to_have_value("About herons")
    composer(page).press("Enter")
    wait_for_state(page, "idle")
    begin(page)
    expect(composer(page)).to_have_value("Something new")
    go(page, "Second of herons")
    expect(composer(page)).to_have_value("")


def test_what_is_typed_on_while_a_new_conversation_gets_its_name_stays_in_it(page: Page) -> None:
    composer(page).fill("Begin with a kite")
    composer(page).press("Enter")
    composer(page).press_sequentially("and go on")
    wait_for_state(page, "idle")
    expect(composer(page)).to_have_value("and go on")
    begin(page)
    expect(composer(page)).to_have_value("")
    go(page, "Begin with a kite")
    expect(composer(page)).to_have_value("and go on")


def test_what_is_typed_before_the_new_conversation_is_shown_is_a_draft_of_it(page: Page) -> None:
    ask_and_wait(page, "Talk of owls", "You said: Talk of owls")
    begin(page)
    composer(page).fill("Typed at once")
    expect(page.locator("#status [data-room=empty]")).to_be_attached()
    expect(composer(page)).to_have_value("Typed at once")
    go(page, "Talk of owls")
    expect(composer(page)).to_have_value("")
