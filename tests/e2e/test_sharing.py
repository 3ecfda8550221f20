"""A conversation is shared by a link, somebody else goes on in a copy of it, and the link is revoked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, ask_and_wait, chat, wait_for_script, wait_for_state
from tests.e2e.test_documents import CLAUSE, add, make_pdf
from tests.e2e.test_history import open_menu

QUESTION = "What is the deductible for water damage?"
Start = Callable[..., AppProcess]
Open = Callable[..., Page]


def _shared(page: Page, folder: Path) -> str:
    """Ask about a document, and share what is said; returns the address of the link."""
    filler = "This policy covers the contents of one flat. " * 30
    add(page, make_pdf(folder / "policy.pdf", filler, f"Section 7. {CLAUSE}"))
    ask(page, QUESTION)
    expect(chat(page)).to_contain_text("four hundred and twenty euros")
    wait_for_state(page, "idle")
    open_menu(page, QUESTION)
    page.get_by_role("menuitem", name="Share…").click()
    dialog = page.get_by_role("dialog", name=f"Share “{QUESTION}”")
    expect(dialog.get_by_role("list", name="It holds")).to_contain_text("names of files: policy.pdf")
    dialog.get_by_role("button", name="Make a link").click()
    address = dialog.get_by_role("textbox", name="Link").input_value()
    dialog.get_by_role("button", name="Close").click()
    return address


def _copied(page: Page, address: str) -> None:
    """Open the link as one who has conversations here, and go on in a copy."""
    page.goto(address)
    expect(page.locator("main")).to_contain_text("four hundred and twenty euros")
    page.get_by_role("link", name="Continue as a copy").click()
    wait_for_script(page)
    dialog = page.get_by_role("dialog", name=f"Continue “{QUESTION}”")
    expect(dialog.get_by_role("list", name="It holds")).to_contain_text("1 page or text of a document")
    dialog.get_by_role("button", name="Continue as a copy").click()
    expect(page.locator("#history")).to_contain_text(QUESTION)
    expect(chat(page)).to_contain_text("four hundred and twenty euros")
    expect(page).not_to_have_url(address)


def _page_shown(page: Page) -> None:
    chat(page).locator("a.cite").first.click()
    picture = page.locator("#evidence").get_by_role("img", name="Page 2 of policy.pdf")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 500
    expect(page.locator("#evidence .p-hl.p-on").first).to_be_visible()


def test_somebody_else_goes_on_in_a_copy_and_a_revoked_link_says_that_it_is_gone(
    start_app: Start, open_page: Open, browser: Browser, tmp_path: Path
) -> None:
    app = start_app(RETRIEVAL="keyword", OWNERS="cookie")
    first = open_page(app)
    address = _shared(first, tmp_path)
    other = open_page(app, expected=("404",))  # of the link that is gone, at the end
    expect(other.locator("#history")).not_to_contain_text(QUESTION)
    with browser.new_context() as context:
        stranger = context.new_page()
        stranger.goto(address)
        expect(stranger.locator("main")).to_contain_text("four hundred and twenty euros")
        expect(stranger.get_by_role("link", name="Continue as a copy")).to_have_count(0)
    _copied(other, address)
    _page_shown(other)
    ask_and_wait(other, "And for fire damage, please", "You said: And for fire damage")
    expect(first.locator("#history a[data-open]")).to_have_count(1)
    expect(chat(first)).not_to_contain_text("fire damage")
    first.goto(f"{app.url}/settings/data")
    wait_for_script(first)
    links = first.get_by_role("group", name="Shared links")
    expect(links).to_contain_text(QUESTION)
    links.get_by_role("button", name="Revoke").press("Enter")
    expect(links).to_contain_text("There are none.")
    other.goto(address)
    expect(other.get_by_role("heading", name="This link leads nowhere any more")).to_be_visible()
    other.goto(app.url)
    expect(other.locator("#history")).to_contain_text(QUESTION)  # what was copied stays


def test_a_temporary_chat_is_not_in_the_list_until_it_is_kept(page: Page) -> None:
    page.get_by_role("button", name="Temporary chat").click()
    note = page.get_by_role("note").filter(has_text="not in the list or in search")
    expect(note).to_be_visible()
    question = "Where do the quiet swifts sleep"
    ask_and_wait(page, question, f"You said: {question}")
    expect(page.locator("#history")).not_to_contain_text(question)
    page.reload(wait_until="domcontentloaded")
    wait_for_script(page)
    expect(chat(page)).to_contain_text(f"You said: {question}")
    expect(page.locator("#history")).not_to_contain_text(question)
    note.get_by_role("button", name="Keep this chat").click()
    expect(page.locator("#history")).to_contain_text(question)
    expect(note).to_have_count(0)
