"""When Parlour is away, and when a file or a microphone cannot be had: said in the page's language, nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Error, Page, Route, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, ask_and_wait, button, chat, composer, until, wait_for_state, words_of
from tests.e2e.test_restart import GONE

AWAY = {
    "en-US": "Connection lost. Your text is saved; the page comes back by itself.",
    "zh-CN": "连接已断开。你的文字已保留，页面会自动恢复。",
}


# One language in the gate: that both have each sentence is held by tests of the words.
@pytest.mark.parametrize("locale", ["zh-CN", pytest.param("en-US", marks=pytest.mark.slow)])
def test_a_lost_connection_is_said_in_the_pages_language_and_the_text_comes_back(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], locale: str
) -> None:
    app = start_app()
    page = open_page(app, expected=GONE, locale=locale)
    ask(page, "count at leisure until the lights go out")
    expect(chat(page)).to_contain_text("word10 ")
    composer(page).fill("What I was about to ask")
    app.kill()
    expect(page.get_by_text(AWAY[locale])).to_be_visible()
    expect(page.get_by_text("Attempting reconnection")).to_have_count(0)
    expect(page.locator("#top .p-said")).to_have_text(AWAY[locale][: 15 if locale == "en-US" else 5])
    app.start()
    wait_for_state(page, "idle")
    expect(composer(page)).to_have_value("What I was about to ask")
    expect(page.locator("html")).not_to_have_attribute("data-connection", "lost")


def came(page: Page, url: str) -> bool:
    """Go to a page; false where the browser's own page, which says that nobody answers, just tried the same."""
    try:
        page.goto(url)
    except Error as error:
        if "interrupted by another navigation" not in error.message:
            raise
        return False
    return True


def test_a_draft_outlives_a_reload_while_parlour_is_away(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    app = start_app()
    page = open_page(app, expected=GONE)
    composer(page).fill("A long question")
    app.kill()
    page.keyboard.press("Enter")
    for _ in range(2):
        with suppress(Error):  # nobody answers; the browser shows its own page for that
            page.reload()
    app.start()
    until(lambda: came(page, app.url))
    page.goto(app.url, wait_until="commit")  # and away again, before the draft can have come back
    page.goto(app.url)
    expect(composer(page)).to_have_value("A long question")
    ask_and_wait(page, "A long question", "You said: A long question")
    page.reload()
    wait_for_state(page, "idle")
    expect(composer(page)).to_have_value("")


def test_a_file_that_breaks_off_on_its_way_leaves_no_chip_and_the_question_waits_for_those_that_come(
    server: AppProcess, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page(server, expected=("ERR_FAILED", "Failed to fetch"))
    for name in ("lost.txt", "kept.txt"):
        (tmp_path / name).write_text("The wren sings.")
    page.route("**/gradio_api/upload?*", lambda route: route.abort())
    page.locator("#composer input[type=file]").first.set_input_files(tmp_path / "lost.txt")
    line = page.locator(".p-left-out")
    expect(line).to_contain_text("lost.txt was not sent: Parlour did not answer.")
    expect(page.locator("#composer .p-chip")).to_have_count(0)
    line.get_by_role("button", name="Close").click()
    page.unroute("**/gradio_api/upload?*")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/gradio_api/upload?*", hold)
    page.locator("#composer input[type=file]").first.set_input_files(tmp_path / "kept.txt")
    expect(page.locator("#composer .p-chip.p-sending")).to_have_text("kept.txtuploading")
    ask(page, "What sings?")
    expect(page.get_by_text("Your question is sent as soon as its files are there.")).to_be_visible()
    expect(composer(page)).to_have_value("What sings?")
    held[0].continue_()
    expect(chat(page)).to_contain_text("The wren sings.")
    wait_for_state(page, "idle")


def test_a_file_that_nobody_took_stays_at_hand_after_a_question_and_goes_up_with_the_next(
    server: AppProcess, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    page = open_page(server, expected=("ERR_FAILED", "Failed to fetch"))
    for name in ("lost.txt", "late.txt", "last.txt"):
        (tmp_path / name).write_text("The wren sings.")
    files, chips = page.locator("#composer input[type=file]").first, page.locator("#composer .p-chip:not(.p-sending)")
    page.route("**/gradio_api/upload?*", lambda route: route.abort())
    files.set_input_files(tmp_path / "lost.txt")
    line = page.locator(".p-left-out")
    expect(line).to_contain_text("lost.txt was not sent")
    ask_and_wait(page, "Hello?", "You said: Hello?")
    expect(line).to_contain_text("lost.txt was not sent")
    page.unroute("**/gradio_api/upload?*")
    files.set_input_files(tmp_path / "late.txt")
    expect(chips).to_contain_text(["lost.txt", "late.txt"])
    expect(line).to_have_count(0)
    page.route("**/gradio_api/upload?*", lambda route: route.abort())
    files.set_input_files(tmp_path / "last.txt")
    expect(line).to_contain_text("last.txt was not sent")
    page.get_by_role("button", name="Remove late.txt").click()
    page.unroute("**/gradio_api/upload?*")
    line.get_by_role("button", name="Send again").click()
    expect(chips).to_contain_text(["lost.txt", "last.txt"])
    files.set_input_files(tmp_path / "late.txt")  # the very file that was taken out
    expect(chips).to_contain_text(["lost.txt", "last.txt", "late.txt"])


def test_files_that_nobody_took_are_named_and_go_up_again_at_a_click(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    app = start_app()
    page = open_page(app, expected=GONE)
    for name in ("wren.txt", "heron.txt"):
        (tmp_path / name).write_text(f"The {name[:-4]} sings.")
    app.kill()
    files = [tmp_path / name for name in ("wren.txt", "heron.txt")]
    page.locator("#composer input[type=file]").first.set_input_files(files)
    line = page.locator(".p-left-out")
    expect(line).to_contain_text("wren.txt, heron.txt were not sent: Parlour did not answer.")
    expect(page.get_by_text("errored out")).to_have_count(0)
    expect(page.locator("#composer .p-chip")).to_have_count(0)
    app.start()
    line.get_by_role("button", name="Send again").click()
    expect(line).to_have_count(0)
    expect(page.locator("#composer .p-chip:not(.p-sending)")).to_have_count(2)


_HIDDEN_AND_SHOWN = """() => {
    let looks = 0;
    Object.defineProperty(document, 'visibilityState', { get: () => looks++ % 2 ? 'hidden' : 'visible' });
    // While the page is busy, several messages come together.
    setInterval(() => { const began = performance.now(); while (performance.now() - began < 300); }, 400);
    window.outOfOrder = [];
    const chat = document.querySelector('#chat');
    new MutationObserver(() => {
        const seen = chat.innerText.match(/word\\d+ /g) ?? [];
        if (!seen.every((word, index) => word === `word${index + 1} `)) window.outOfOrder.push(seen.join(''));
    }).observe(chat, { subtree: true, childList: true, characterData: true });
}"""


def test_a_reply_grows_word_by_word_while_its_tab_is_hidden_and_shown_again(page: Page) -> None:
    page.evaluate(_HIDDEN_AND_SHOWN)
    ask(page, "count slowly while nobody looks")
    wait_for_state(page, "running")
    wait_for_state(page, "idle")
    assert words_of(page) == [f"word{number}" for number in range(1, 201)]
    assert not page.evaluate("window.outOfOrder")


def test_a_recording_is_offered_for_a_model_that_hears_and_a_missing_microphone_is_said(
    page: Page, start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    expect(button(page, "Record")).to_be_hidden()
    hearing = start_app(MODEL_OPTIONS='{"audio": true}')
    page = open_page(hearing, expected=("Failed to access microphone",))
    button(page, "Record").click()
    expect(page.locator(".p-hint")).to_contain_text("icrophone")
    ask_and_wait(page, "Go on", "You said: Go on")
