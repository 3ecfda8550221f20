"""What goes wrong is one clear sentence on the page; the conversation is intact, and the next message works."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, expect

from core.testing.model_server import ModelServer
from core.testing.script import Reply
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, ask_and_wait, chat, composer, until, wait_for_state
from tests.e2e.test_documents import add, make_pdf


def still_works(page: Page, earlier: str = "") -> None:
    """The next message is answered, and what was said before is there."""
    composer(page).fill("")
    ask(page, "Do you still work?")
    # With a document in the conversation the scripted model speaks of what was found in it.
    expect(chat(page)).to_contain_text(
        re.compile(r"Do you still work\?.*(You said: Do you still|The result:)", re.DOTALL)
    )
    wait_for_state(page, "idle")
    if earlier:
        expect(chat(page)).to_contain_text(earlier)


def begin_anew(page: Page) -> None:
    """Leave the conversation for an empty one."""
    page.locator("#house").get_by_text("New chat").first.click()
    expect(page.locator("#status [data-room=empty]")).to_be_attached()


def test_an_empty_message_is_not_sent(page: Page) -> None:
    ask(page, "   ")
    expect(page.get_by_text("There is nothing to send")).to_be_visible()
    expect(page.locator("#status [data-state]")).to_have_attribute("data-conversation", "")
    still_works(page)


def test_a_megabyte_of_text_is_taken_and_answered(page: Page) -> None:
    composer(page).fill("heron " * 170_000)
    composer(page).press("Enter")
    expect(chat(page)).to_contain_text("heron")
    wait_for_state(page, "idle")
    still_works(page, "heron")


def test_more_text_than_a_message_may_have_is_refused_and_stays(page: Page) -> None:
    composer(page).fill("x" * 2_000_001)
    composer(page).press("Enter")
    expect(page.get_by_text("The message is longer than")).to_be_visible()
    until(lambda: len(composer(page).input_value()) == 2_000_001)
    still_works(page)


def encrypted(folder: Path) -> Path:
    return make_pdf(folder / "locked.pdf", "Nobody reads this.", password="open sesame")


def truncated(folder: Path) -> Path:
    whole = make_pdf(folder / "whole.pdf", *["A page of words. " * 50] * 3).read_bytes()
    (folder / "truncated.pdf").write_bytes(whole[: len(whole) // 5])
    return folder / "truncated.pdf"


def empty(folder: Path) -> Path:
    (folder / "empty.pdf").touch()
    return folder / "empty.pdf"


def unsupported(folder: Path) -> Path:
    (folder / "program.exe").write_bytes(b"MZ\x90\x00" + bytes(200))
    return folder / "program.exe"


def scanned(folder: Path) -> Path:
    return make_pdf(folder / "scan.pdf", "")


def test_a_document_that_cannot_be_read_is_named_with_the_reason(page: Page, tmp_path: Path) -> None:
    for make, said in (
        (encrypted, "locked.pdf is protected by a password"),
        (truncated, "truncated.pdf is damaged"),
        (scanned, "scan.pdf has pages but no text"),
    ):
        begin_anew(page)
        add(page, make(tmp_path))
        ask(page, "What does it say?")
        expect(page.get_by_text(said).first).to_be_visible()
        wait_for_state(page, "error")
        expect(chat(page)).to_contain_text("What does it say?")
        still_works(page, "What does it say?")


def test_files_that_are_not_taken_are_named_and_hold_up_neither_the_others_nor_the_question(
    page: Page, tmp_path: Path
) -> None:
    archive, large = tmp_path / ("a" * 120 + ".7z"), tmp_path / "film.mov"
    archive.write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(200))
    with large.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    lamp = make_pdf(tmp_path / "lamp.pdf", "The lamp glows amber.")
    page.locator("#composer input[type=file]").first.set_input_files(
        [unsupported(tmp_path), large, archive, lamp, empty(tmp_path)]
    )
    line = page.locator(".p-left-out")
    expect(line).to_have_count(1)
    expect(line).to_contain_text(f"Parlour cannot read program.exe, {archive.name}.")
    expect(line).to_contain_text("film.mov is 200 MB; the limit is 50 MB.")
    expect(line).to_contain_text("empty.pdf is empty.")
    assert line.inner_text().count("It reads PDF") == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.locator("#composer .p-chip")).to_have_text(["lamp.pdfPDF"])
    ask(page, "What glows?")
    expect(chat(page)).to_contain_text("The lamp glows amber.")
    expect(line).to_have_count(0)
    wait_for_state(page, "idle")
    begin_anew(page)
    expect(page.locator("#composer .p-chip")).to_have_count(0)


_CHOOSE = """(files) => {
    const data = new DataTransfer();
    for (const { name, type, text } of files) data.items.add(new File([text], name, { type }));
    const input = document.querySelector('#composer input[type=file]');
    input.files = data.files;
    input.dispatchEvent(new Event('change', { bubbles: true }));
}"""
# What browsers call a program, a note and a table, each after the tables of its machine.
NAMED_TYPES = [
    ("", "", ""),
    ("application/octet-stream", "application/octet-stream", "application/octet-stream"),
    ("application/x-msdownload", "text/markdown", "application/vnd.ms-excel"),
    ("text/plain", "application/x-msdownload", "image/png"),
]


def test_whatever_type_a_browser_names_a_file_is_taken_or_refused_for_what_it_is(page: Page) -> None:
    for program, note, prices in NAMED_TYPES:
        begin_anew(page)
        page.evaluate(
            _CHOOSE,
            [
                {"name": "program.exe", "type": program, "text": "MZ\0\0 not a document"},
                {"name": "wren.md", "type": note, "text": "The wren sings."},
                {"name": "prices.csv", "type": prices, "text": "bird,price\nowl,7\n"},
            ],
        )
        expect(page.locator(".p-left-out")).to_contain_text("Parlour cannot read program.exe.")
        expect(page.locator("#composer .p-chip")).to_have_text(["wren.mdMD", "prices.csvCSV"])
        ask(page, "What sings?")
        expect(chat(page)).to_contain_text("The wren sings.")
        expect(chat(page).locator(".user-row")).to_contain_text("prices.csv")
        wait_for_state(page, "idle")


def test_a_line_about_files_that_were_not_taken_can_be_closed(page: Page, tmp_path: Path) -> None:
    page.locator("#composer input[type=file]").first.set_input_files(unsupported(tmp_path))
    page.locator(".p-left-out").get_by_role("button", name="Close").click()
    expect(page.locator(".p-left-out")).to_have_count(0)
    still_works(page)


def test_any_name_is_taken_and_shown_as_it_is(page: Page) -> None:
    for name, shown in (
        ("..\\..\\evil 😀 名字.txt", "evil 😀 名字.txt"),
        ("x" * 200 + ".txt", "x" * 50),
        ("保险单 (最终).txt", "保险单 (最终).txt"),
        ("<img src=x onerror=alert(1)>.txt", "img src=x onerror=alert(1)"),
    ):
        begin_anew(page)
        with page.expect_response(lambda response: "/gradio_api/upload?" in response.url):
            page.locator("#composer input[type=file]").first.set_input_files(
                {"name": name, "mimeType": "text/plain", "buffer": b"A heron stands in the reeds."}
            )
        ask(page, "What stands in the reeds?")
        expect(chat(page)).to_contain_text("A heron stands")
        expect(chat(page).locator(".user-row")).to_contain_text(shown)
        wait_for_state(page, "idle")
        still_works(page)


def test_of_a_picture_without_words_it_is_said_that_the_model_knows_the_name_alone(page: Page, tmp_path: Path) -> None:
    Image.new("RGB", (64, 64), "green").save(tmp_path / "leaf.png")
    page.locator("#composer input[type=file]").first.set_input_files(tmp_path / "leaf.png")
    expect(page.locator("#composer .p-chip")).to_have_count(1)
    ask(page, "What is this?")
    expect(chat(page)).to_contain_text("in leaf.png no text was recognised")
    wait_for_state(page, "idle")
    still_works(page)


def test_a_model_that_fails_is_told_in_place_of_the_reply(page: Page) -> None:
    for question, said in (
        ("fail 401", "does not accept the API key"),
        ("fail 500", "The model service answered with an error (500)"),
        ("reply in html", "answered with a web page"),
        ("cut off", "cut off the reply"),
    ):
        begin_anew(page)
        ask_and_wait(page, "First of all", "You said: First of all")
        ask(page, question)
        expect(chat(page)).to_contain_text(said)
        wait_for_state(page, "error")
        expect(page.get_by_role("button", name="Regenerate").and_(page.locator(".p-word"))).to_be_visible()
        still_works(page, "You said: First of all")


def test_a_model_that_never_answers_can_be_stopped(page: Page) -> None:
    ask(page, "hang forever")
    wait_for_state(page, "running")
    page.locator("#composer").get_by_role("button", name="Stop", exact=True).click()
    wait_for_state(page, "idle")
    still_works(page)


def test_a_model_server_that_is_down_is_told_and_comes_back(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    model = ModelServer(Reply(text="I am back.")).start()
    port = int(model.base_url.split(":")[2].split("/")[0])
    model.stop()
    app = start_app(None, BASE_URL=f"http://127.0.0.1:{port}/v1", MODEL="scripted", API_KEY="any")
    page = open_page(app)
    ask(page, "Is anybody there?")
    expect(chat(page)).to_contain_text("cannot be reached")
    wait_for_state(page, "error")
    expect(page.locator("#top .p-said")).to_have_text("Error")
    with ModelServer(Reply(text="I am back."), port=port):
        page.get_by_role("button", name="Regenerate").click()
        expect(chat(page)).to_contain_text("I am back.")
        wait_for_state(page, "idle")
        expect(page.locator("#top .p-said")).to_have_text("Ready")


def test_two_messages_at_once_are_answered_once(page: Page) -> None:
    composer(page).fill("Only once, please")
    composer(page).press("Enter")
    composer(page).press("Enter")
    expect(chat(page)).to_contain_text("You said: Only once, please")
    wait_for_state(page, "idle")
    expect(chat(page).get_by_text("You said: Only once, please")).to_have_count(1)
    still_works(page)
