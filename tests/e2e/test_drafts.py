"""Each conversation has a draft of its own, its text and its files, and so has a new one."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import ask_and_wait, composer, until, wait_for_state


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


def test_that_a_new_chat_is_temporary_and_what_else_is_chosen_for_it_comes_back_with_its_draft(page: Page) -> None:
    ask_and_wait(page, "Talk of terns", "You said: Talk of terns")
    begin(page)
    expect(page.locator("#history")).to_contain_text("Talk of terns")
    stored = page.locator("#history a[data-open]").count()
    passing = page.get_by_role("button", name="Temporary chat")
    web = page.locator("#toolbar [data-do=bar-web]")
    usual, other = ("true", "false") if web.get_attribute("aria-pressed") == "true" else ("false", "true")
    passing.click()
    expect(passing).to_have_attribute("aria-pressed", "true")
    web.click()
    until(lambda: '"tools"' in page.evaluate("sessionStorage.getItem('p-chosen')"))  # it is pressed before it is kept
    composer(page).fill("Nobody shall keep this")
    page.reload(wait_until="domcontentloaded")
    expect(composer(page)).to_have_value("Nobody shall keep this")
    expect(passing).to_have_attribute("aria-pressed", "true")
    expect(web).to_have_attribute("aria-pressed", other)
    go(page, "Talk of terns")
    expect(passing).to_have_count(0)
    begin(page)
    expect(composer(page)).to_have_value("Nobody shall keep this")
    expect(passing).to_have_attribute("aria-pressed", "true")
    begin(page)
    expect(passing).to_have_attribute("aria-pressed", "true")
    page.reload(wait_until="domcontentloaded")
    expect(composer(page)).to_have_value("Nobody shall keep this")
    composer(page).press("Enter")  # whether the page shows it already or not
    expect(page.get_by_role("button", name="Keep this chat")).to_be_visible()
    wait_for_state(page, "idle")
    expect(page.locator("#history a[data-open]")).to_have_count(stored)
    begin(page)
    expect(passing).to_have_attribute("aria-pressed", "false")
    expect(web).to_have_attribute("aria-pressed", usual)


def test_a_new_chat_that_was_left_without_a_draft_is_as_any_other_on_coming_back(page: Page) -> None:
    ask_and_wait(page, "Talk of gulls", "You said: Talk of gulls")
    begin(page)
    passing = page.get_by_role("button", name="Temporary chat")
    passing.click()
    expect(passing).to_have_attribute("aria-pressed", "true")
    page.reload(wait_until="domcontentloaded")
    expect(passing).to_have_attribute("aria-pressed", "true")
    begin(page)
    expect(passing).to_have_attribute("aria-pressed", "false")
    passing.click()
    expect(passing).to_have_attribute("aria-pressed", "true")
    go(page, "Talk of gulls")
    begin(page)
    expect(passing).to_have_attribute("aria-pressed", "false")


def test_a_question_that_is_being_changed_outlives_a_reload_until_it_is_sent_or_put_away(page: Page) -> None:
    ask_and_wait(page, "Tell me of wrens", "You said: Tell me of wrens")
    sheet = page.get_by_role("textbox", name="Edit your question")

    def change(text: str) -> None:
        page.locator("#chat .user-row").last.hover()
        page.locator("#chat a.p-edit").last.click()
        sheet.press("Control+a")
        page.keyboard.type(text)

    def load_again() -> None:
        page.reload(wait_until="domcontentloaded")
        expect(page.locator("#chat .user-row")).to_be_visible()
        wait_for_state(page, "idle")

    change("Tell me of herons")
    load_again()
    expect(sheet).to_have_value("Tell me of herons")
    page.locator(".p-editing").get_by_role("button", name="Cancel").click()
    load_again()
    expect(sheet).to_have_count(0)
    change("Tell me of owls")
    load_again()
    page.locator(".p-editing").get_by_role("button", name="Send").click()
    expect(page.locator("#chat")).to_contain_text("You said: Tell me of owls")
    wait_for_state(page, "idle")
    load_again()
    expect(page.locator("#chat a.p-edit")).to_have_count(1)
    expect(sheet).to_have_count(0)
