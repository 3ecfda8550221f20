"""A conversation leaves the page as a bundle, is read without Parlour, and comes back with its evidence."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, until, wait_for_state
from tests.e2e.test_documents import CLAUSE, add, make_pdf
from tests.e2e.test_history import open_menu

QUESTION = "What is the deductible for water damage?"


def _asked(page: Page, folder: Path) -> None:
    filler = "This policy covers the contents of one flat. " * 30
    add(page, make_pdf(folder / "policy.pdf", filler, f"Section 7. {CLAUSE}"))
    ask(page, QUESTION)
    expect(chat(page)).to_contain_text("four hundred and twenty euros")
    wait_for_state(page, "idle")


def _bundle(page: Page, folder: Path) -> Path:
    open_menu(page, QUESTION)
    page.get_by_role("menuitem", name="Export…").click()
    with page.expect_download(timeout=60_000) as download:
        page.get_by_role("menuitem", name="Bundle, to keep or pass on").click()
    path = folder / "talk.zip"
    download.value.save_as(path)
    return path


def _read_from_disk(page: Page, bundle: Path, folder: Path) -> None:
    """Open it as a file: a mark shows the page with the places on it, and nothing is fetched."""
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "index.html").as_uri())
    mark = page.locator("article a.mark").first
    mark.click()
    picture = page.locator(".page:has(:target) img")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 500
    expect(page.locator(".page:has(:target) rect").first).to_be_attached()
    assert all(one.startswith("file:") for one in asked)
    shutil.rmtree(folder)


def test_a_bundle_is_read_without_parlour_and_brings_the_reply_and_its_evidence_back(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page(start_app(RETRIEVAL="keyword"))  # of its own: elsewhere the same was asked before
    _asked(page, tmp_path)
    bundle = _bundle(page, tmp_path)
    other = page.context.new_page()
    _read_from_disk(other, bundle, tmp_path / "there")
    other.close()
    open_menu(page, QUESTION)
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("#history")).not_to_contain_text(QUESTION)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(">import")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("option", name="Import conversations").first.click()
    chooser.value.set_files(bundle)
    told = page.locator(".p-bringing")
    expect(told).to_contain_text("1 conversation came in from Parlour: 2 messages, 1 file.", timeout=60_000)
    told.get_by_role("button", name="Open").click()
    expect(chat(page)).to_contain_text("four hundred and twenty euros")
    evidence = page.locator("#evidence")
    picture = evidence.get_by_role("img", name="Page 2 of policy.pdf")

    def shown() -> bool:
        chat(page).locator("a.cite").first.click()
        expect(evidence).to_contain_text("policy.pdf")
        return picture.is_visible()

    until(shown)  # its document is read anew
