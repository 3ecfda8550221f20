"""Documents that take their time, or a password: seen, steered and opened on the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import NAMED, ask, chat, wait_for_state
from tests.e2e.test_documents import CLAUSE, add, make_pdf


def test_a_long_document_is_seen_being_read_asked_before_its_end_and_called_off(
    server: AppProcess, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    first = open_page(server)
    sheet: Any = pymupdf.open()
    for number in range(1, 21):
        text = f"Section {number}. {CLAUSE} " + "This policy covers the contents of one flat. " * 40
        sheet.new_page().insert_textbox((72, 72, 520, 770), text, fontsize=11)
    book: Any = pymupdf.open()
    for _ in range(200):  # long enough for any machine to be asked in the midst of it
        book.insert_pdf(sheet)
    book.save(tmp_path / "book.pdf")
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7\n1 0 obj")
    add(first, tmp_path / "book.pdf", broken)
    ask(first, "What is the deductible for water damage?")
    expect(first).to_have_url(NAMED)
    page = open_page(server, first.url.removeprefix(server.url), context=first.context)
    book_card = chat(page).locator(".p-doc", has_text="book.pdf")
    expect(book_card).to_contain_text(re.compile(r"page \d+ of 4000 · \d+ passages"))
    expect(chat(page)).to_contain_text("Waiting until book.pdf is read")
    chat(page).get_by_role("button", name="Ask now with what is ready").click()
    expect(chat(page)).to_contain_text("Answered without broken.pdf, which could not be read.")
    expect(chat(page)).to_contain_text(re.compile(r"book\.pdf was still being read: only \d+ of its 4000 pages"))
    expect(chat(page)).to_contain_text("four hundred and twenty euros")
    wait_for_state(page, "idle")
    first.close()
    cancel, far = book_card.get_by_role("button", name="Cancel"), book_card.locator(".p-far")
    cancel.hover()
    page.mouse.down()
    expect(far).not_to_have_text(far.inner_text())  # the card is drawn anew under the finger
    page.mouse.up()
    expect(book_card).to_contain_text("stopped after")
    book_card.get_by_role("button", name="Read the rest").press("Enter")
    expect(cancel).to_be_focused()
    expect(far).to_contain_text(re.compile(r"page \d+ of 4000 · \d+ passages"))
    page.keyboard.press("Enter")  # the keyboard is where it was, on a card that was drawn anew many times
    expect(book_card).to_contain_text("stopped after")


def test_an_encrypted_document_is_opened_with_its_password(page: Page, server: AppProcess, tmp_path: Path) -> None:
    add(page, make_pdf(tmp_path / "locked.pdf", CLAUSE, password="heron-in-the-alder"))
    ask(page, "What is the deductible for water damage?")
    expect(chat(page)).to_contain_text("locked.pdf is protected by a password")
    wait_for_state(page, "error")
    chat(page).get_by_role("button", name="Enter password").click()
    dialog = page.get_by_role("dialog", name="locked.pdf asks for its password")
    dialog.get_by_label("Password").fill("heron-in-the-elder")
    dialog.get_by_role("button", name="Open").click()
    expect(dialog).to_contain_text("That is not the password of locked.pdf")
    dialog.get_by_label("Password").fill("heron-in-the-alder")
    dialog.get_by_label("Password").press("Enter")
    expect(dialog).to_have_count(0)
    expect(chat(page)).to_contain_text("four hundred and twenty euros")
    wait_for_state(page, "idle")
    expect(chat(page).locator(".p-doc")).to_contain_text("1 page · 1 passage")
    assert "heron-in-the" not in page.content()
    assert "heron-in-the" not in server.log.read_text("utf-8")
