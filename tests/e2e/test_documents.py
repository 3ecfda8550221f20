"""Documents: handed over, asked about, and checked on the page they came from."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pymupdf
from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import ask, ask_and_wait, chat, wait_for_script, wait_for_state

CLAUSE = "The deductible for water damage is four hundred and twenty euros."


def make_pdf(path: Path, *pages: str, password: str = "") -> Path:
    document = pymupdf.open()
    for text in pages:
        document.new_page().insert_textbox((72, 72, 520, 770), text, fontsize=12)
    locked = {"encryption": pymupdf.PDF_ENCRYPT_AES_256, "user_pw": password, "owner_pw": password} if password else {}  # pyright: ignore[reportAttributeAccessIssue]
    document.save(path, **locked)
    return path


def add(page: Page, *paths: Path) -> None:
    """Add files to the composer and wait until they have arrived."""
    with page.expect_response(lambda response: "/gradio_api/upload?" in response.url):
        page.locator("#composer input[type=file]").first.set_input_files(list(paths))


def test_an_answer_about_a_pdf_has_a_mark_that_opens_the_page(page: Page, tmp_path: Path) -> None:
    filler = "This policy covers the contents of one flat. " * 30
    add(page, make_pdf(tmp_path / "policy.pdf", filler, f"Section 7. {CLAUSE}"))
    ask(page, "What is the deductible for water damage?")
    expect(chat(page)).to_contain_text("four hundred and twenty euros")
    wait_for_state(page, "idle")
    expect(chat(page)).to_contain_text("policy.pdf")
    expect(chat(page)).to_contain_text("ask_documents")
    mark = chat(page).locator("a.cite").first
    expect(mark).to_have_attribute("title", "policy.pdf, page 2")
    mark.click()
    evidence = page.locator("#evidence")
    expect(evidence).to_contain_text("Page 2 of 2")
    expect(evidence).to_contain_text("four hundred and twenty euros")
    picture = evidence.get_by_role("img", name="Page 2 of policy.pdf")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 500
    expect(evidence.locator(".p-hl.p-on").first).to_be_visible()
    evidence.get_by_role("button", name="Previous page").click()
    expect(evidence).to_contain_text("Page 1 of 2")
    evidence.get_by_role("button", name="Close").click()
    expect(evidence.locator(".p-page")).to_have_count(0)


def test_the_card_of_an_archive_opens_the_files_in_it(page: Page, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "papers.zip", "w") as archive:
        archive.writestr("letters/frog.txt", "The frog sings at dusk.")
        archive.writestr("policy.txt", CLAUSE)
        archive.writestr("tool.exe", b"MZ\0\0")
    add(page, tmp_path / "papers.zip")
    ask(page, "What is the deductible for water damage?")
    wait_for_state(page, "idle")
    chat(page).get_by_role("button", name="Look inside").click()
    evidence = page.locator("#evidence")
    expect(evidence).to_contain_text("What was read of the files in papers.zip: 3")
    expect(evidence).to_contain_text("files of this kind are not read")
    evidence.locator("a.cite", has_text="policy.txt").click()
    expect(evidence.locator(".p-here")).to_contain_text(CLAUSE)


def test_a_summary_rests_on_all_pages_and_says_so(page: Page, tmp_path: Path) -> None:
    filler = "This policy covers the contents of one flat, as far as they belong to those who live in it. " * 12
    parts = [f"Section {number} speaks of room {number * 7}. {filler}" for number in range(1, 31)]
    add(page, make_pdf(tmp_path / "policy.pdf", *parts))
    ask(page, "List all sections of this document.")
    expect(chat(page)).to_contain_text("Read the whole document")
    wait_for_state(page, "idle")
    expect(chat(page).locator(".p-covered")).to_have_text("Read 30 of 30 pages")
    mark = chat(page).locator("a.cite").first
    mark.click()
    expect(page.locator("#evidence")).to_contain_text("of 30")


def test_a_document_stays_with_its_conversation(page: Page, tmp_path: Path) -> None:
    add(page, make_pdf(tmp_path / "lamp.pdf", "The lamp in the hall has a bulb of seven watts."))
    ask(page, "How many watts has the bulb of the lamp?")
    expect(chat(page)).to_contain_text("seven watts")
    wait_for_state(page, "idle")
    page.reload(wait_until="domcontentloaded")
    wait_for_script(page)
    ask(page, "How many watts has the bulb of the lamp?")
    expect(chat(page).locator("a.cite")).to_have_count(2)
    page.locator("#house").get_by_text("New chat").first.click()
    expect(chat(page)).not_to_contain_text("seven watts")
    ask_and_wait(page, "How many watts has the bulb of the lamp?", "You said: How many watts")
    expect(chat(page).locator("a.cite")).to_have_count(0)


def test_a_sentence_that_the_document_does_not_say_is_marked_and_searched_for_again(page: Page, tmp_path: Path) -> None:
    add(page, make_pdf(tmp_path / "policy.pdf", f"Section 7. {CLAUSE} The lighthouse is open on Sundays."))
    ask(page, "What is the deductible? Add something of your own.")
    expect(chat(page)).to_contain_text(re.compile(r"[23] of [34] sentences resemble a passage"))
    sign = chat(page).get_by_role("button", name="“950” is in no passage that was found. Search for it again.")
    expect(sign).to_contain_text("?")
    sign.click()
    evidence = page.locator("#evidence")
    expect(evidence).to_contain_text(
        "Searched again for “Besides, the lighthouse keeper collects 950 rare stamps.”: no passage clearly says it."
    )
    expect(evidence).to_contain_text("The lighthouse is open on Sundays.")
    expect(evidence.get_by_role("img", name="Page 1 of policy.pdf")).to_be_visible()
    page.reload(wait_until="domcontentloaded")
    expect(chat(page)).to_contain_text(re.compile(r"[23] of [34] sentences resemble a passage"))


def test_a_starter_brings_its_document_along(page: Page) -> None:
    page.get_by_role("button", name="Within how many days must damage be reported").click()
    expect(chat(page)).to_contain_text("policy.pdf")
    expect(chat(page).locator("a.cite").first).to_be_visible()
    wait_for_state(page, "idle")


def test_a_chinese_document_answers_a_chinese_question(page: Page, tmp_path: Path) -> None:
    text = tmp_path / "租约.txt"
    text.write_text("本公寓的押金为三个月租金。\n\n房东应在退租后十四天内退还押金。\n", encoding="utf-8")
    add(page, text)
    ask(page, "押金是多少？")
    expect(chat(page)).to_contain_text("三个月租金")
    expect(chat(page)).to_contain_text("租约.txt")
    wait_for_state(page, "idle")


def test_a_file_can_be_taken_out_of_the_composer_again(page: Page, tmp_path: Path) -> None:
    kept, dropped = tmp_path / "kept.txt", tmp_path / "dropped.txt"
    kept.write_text("Kept words about a heron.")
    dropped.write_text("Dropped words about a crane.")
    for path in (kept, dropped):
        add(page, path)
        expect(page.get_by_role("button", name=f"Remove {path.name}")).to_be_visible()
    page.get_by_role("button", name="Remove dropped.txt").click()
    ask(page, "What is in the file?")
    expect(chat(page)).to_contain_text("kept.txt")
    wait_for_state(page, "idle")
    expect(chat(page)).not_to_contain_text("dropped.txt")
