"""What stands in the composer when the page is loaded again: what was not sent, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.chat_steps import wait_for_script
from tests.webui.screen.stage import Stage
from tests.webui.screen.test_folders import drop

Show = Callable[..., Page]
PASTE = """(field, text) => { const data = new DataTransfer(); data.setData('text/plain', text);
    field.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true})); }"""
LONG = "Sing, goddess, the wrath. " * 12_000
CALLED = "Pasted text, 312,000 characters.txt"
TAKE_AWAY = "row => row.remove()"
EMPTY_UNHEARD = """field => {
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(field, '');
    document.body.append(document.createComment('Gradio draws as it does so')); }"""


@pytest.mark.parametrize("arrived", [True, False], ids=["arrived", "lost on its way"])
def test_a_question_that_was_sent_as_the_page_was_left_is_a_draft_only_where_it_did_not_arrive(
    show: Show, stage: Stage, *, arrived: bool
) -> None:
    page = show("answered")
    held: list[Route] = []  # the page is left before the first request is answered
    page.route("**/queue/join*", lambda route: route.continue_() if held else held.append(route))
    last = page.locator("#chat .user-row").last
    expect(last).to_contain_text("还有呢？")
    if arrived:  # the page that is left did not show it yet, the next one does
        last.evaluate(TAKE_AWAY)
    composer = page.locator("#composer textarea")
    composer.fill("还有呢？")
    composer.press("Enter")
    page.goto(f"{stage.url}/?scene=answered", wait_until="domcontentloaded")
    expect(page.locator("#chat .user-row").last).to_contain_text("还有呢？")
    expect(composer).to_be_focused()  # the draft is put back before that
    expect(composer).to_have_value("" if arrived else "还有呢？")
    page.unroute("**/queue/join*")


def _before_it_knows_its_conversation(page: Page, address: str) -> list[Route]:
    """Load the page; what it asks stays unanswered, so it does not know what it shows."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/queue/join*", hold)
    page.goto(address, wait_until="domcontentloaded")
    wait_for_script(page)
    expect(page.locator("#composer textarea")).to_be_attached()
    return held


def test_what_is_typed_before_the_page_knows_its_conversation_outlives_a_reload_with_what_was_there(
    show: Show, stage: Stage
) -> None:
    page = show()
    composer = page.locator("#composer textarea")
    _before_it_knows_its_conversation(page, stage.url)
    composer.fill("Half a thought")
    page.reload(wait_until="domcontentloaded")
    wait_for_script(page)
    composer.fill("and another")  # before the first one came back
    composer.press_sequentially(" one")
    page.unroute("**/queue/join*")
    page.reload(wait_until="domcontentloaded")
    expect(composer).to_have_value("Half a thought\nand another one")
    composer.fill("")
    page.reload(wait_until="domcontentloaded")
    expect(composer).to_be_focused()  # a draft would be put back before that
    expect(composer).to_have_value("")


def test_what_is_typed_before_the_draft_came_back_stands_after_it_and_belongs_to_what_is_shown(
    show: Show, stage: Stage
) -> None:
    page = show("answered")
    composer = page.locator("#composer textarea")
    composer.fill("Half a thought")
    held = _before_it_knows_its_conversation(page, f"{stage.url}/?scene=answered")
    composer.fill("and more")
    composer.press("ArrowLeft")
    composer.dispatch_event("compositionstart")
    held.pop().continue_()
    expect(page.locator("#chat .user-row").last).to_contain_text("还有呢？")
    page.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 0))")
    expect(composer).to_have_value("and more")  # nothing moves below a character that is being chosen
    composer.dispatch_event("compositionend")
    expect(composer).to_have_value("Half a thought\nand more")
    composer.press_sequentially("X")  # where the cursor was
    expect(composer).to_have_value("Half a thought\nand morXe")
    page.unroute("**/queue/join*")
    page.goto(stage.url, wait_until="domcontentloaded")
    expect(composer).to_be_focused()
    expect(composer).to_have_value("")  # the new conversation's is another


def test_an_empty_value_that_nobody_typed_takes_no_draft_away(show: Show) -> None:
    page = show()
    composer = page.locator("#composer textarea")
    composer.fill("Half a thought")
    page.reload(wait_until="domcontentloaded")
    expect(composer).to_have_value("Half a thought")
    composer.evaluate(EMPTY_UNHEARD)
    expect(composer).to_have_value("Half a thought")
    for taken in (EMPTY_UNHEARD, "field => field.remove()"):
        with page.expect_navigation(wait_until="domcontentloaded"):
            composer.evaluate(f"field => {{ ({taken})(field); location.reload(); }}")
        expect(composer).to_have_value("Half a thought")


@pytest.mark.parametrize("lang", ["en-US", "zh-CN"])
def test_a_draft_goes_with_its_conversation_and_comes_back_with_it(show: Show, stage: Stage, lang: str) -> None:
    page = show("answered", locale=lang)
    composer = page.locator("#composer textarea")
    composer.fill("Half a thought")
    page.locator("#history .p-menu").first.click()
    page.get_by_role("menuitem").last.click()
    page.get_by_role("dialog").locator(".p-danger").click()
    expect(composer).to_have_value("")
    line = page.locator(".p-undo.p-there:not(.p-bringing)")
    expect(line).to_contain_text("Deleted “About <b>it</b>”" if lang == "en-US" else "已删除“About <b>it</b>”")
    line.get_by_role("button").click()
    expect(composer).to_have_value("Half a thought")
    stage.until(lambda: len(stage.asked) > 2)
    assert stage.asked == [
        {"do": "delete", "id": "conv"},
        {"do": "keep", "ids": ["conv"]},
        {"do": "open", "id": "conv"},
    ]


def test_an_address_of_no_conversation_says_so_and_a_new_ones_does_not(show: Show, stage: Stage) -> None:
    page = show(path="/?c=nothing")
    line = page.locator(".p-left-out")
    expect(line).to_have_text("There is no such conversation: it was deleted, or it is somebody else’s.")
    line.get_by_role("button").click()
    expect(line).to_have_count(0)


def test_what_was_pasted_comes_back_with_its_draft_and_is_sent_as_it_was(show: Show, stage: Stage) -> None:
    page = show()
    composer, chips = page.locator("#composer textarea"), page.locator("#composer .p-chip .p-name")
    composer.fill("What is it about?")
    composer.evaluate(PASTE, LONG)
    expect(chips).to_have_text([CALLED])
    for _ in range(2):
        page.reload()
        expect(chips).to_have_text([CALLED])
        expect(page.locator(".p-left-out")).to_have_count(0)
        expect(composer).to_have_value("What is it about?")
    expect(page.get_by_role("button", name=f"Remove {CALLED}")).to_be_visible()  # it has arrived
    sent_before = len(stage.sent)
    composer.press("Enter")
    stage.until(lambda: len(stage.sent) > sent_before)
    (path,) = stage.sent[-1]["files"]
    assert Path(path).read_text("utf-8") == LONG
    expect(composer).to_have_value("")
    _is_gone_for_good(page, stage)


def test_what_was_pasted_and_removed_does_not_come_back(show: Show, stage: Stage) -> None:
    page = show()
    page.locator("#composer textarea").evaluate(PASTE, LONG)
    page.get_by_role("button", name=f"Remove {CALLED}").click()
    _is_gone_for_good(page, stage)


def _is_gone_for_good(page: Page, stage: Stage) -> None:
    chips = page.locator("#composer .p-chip")
    expect(chips).to_have_count(0)
    assert page.evaluate("Object.keys(sessionStorage).filter((one) => one.startsWith('p-paste:'))") == []
    page.goto(stage.url)
    expect(page.locator("#composer textarea")).to_be_focused()
    expect(page.locator("#composer .p-chips")).to_be_attached()
    expect(chips).to_have_count(0)
    expect(page.locator(".p-left-out")).to_have_count(0)


def test_what_was_pasted_comes_back_in_its_own_conversation_alone(show: Show, stage: Stage) -> None:
    page = show("answered")
    chips, line = page.locator("#composer .p-chip .p-name"), page.locator(".p-left-out")
    page.locator("#composer textarea").evaluate(PASTE, LONG)
    expect(chips).to_have_text([CALLED])
    page.goto(stage.url)
    expect(page.locator("#composer textarea")).to_be_focused()
    expect(page.locator("#composer .p-chips")).to_be_attached()
    expect(chips).to_have_count(0)
    expect(line).to_have_count(0)
    page.goto(f"{stage.url}/?scene=answered")
    expect(chips).to_have_text([CALLED])
    expect(line).to_have_count(0)


def test_files_that_were_not_sent_are_named_in_their_own_conversation_alone(
    show: Show, stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "here.txt").write_text("The wren sings.", "utf-8")
    page = show("answered")
    line = page.locator(".p-left-out")
    page.locator("#composer input[type=file]").first.set_input_files(tmp_path / "here.txt")
    expect(page.get_by_role("button", name="Remove here.txt")).to_be_visible()
    page.goto(stage.url)
    expect(page.locator("#composer textarea")).to_be_focused()
    expect(page.locator("#composer .p-chips")).to_be_attached()
    expect(line).to_have_count(0)
    page.goto(f"{stage.url}/?scene=answered")
    expect(line).to_have_text("here.txt was not sent before the page was left. Attach it again.")
    page.locator("#house .p-new").click()
    expect(line).to_have_count(0)


def test_what_was_pasted_and_is_too_long_to_be_kept_says_that_it_is_to_be_pasted_again(show: Show) -> None:
    page = show()
    page.evaluate("""() => { const set = Storage.prototype.setItem;
        Storage.prototype.setItem = function (name, value) {
            if (value.length > 1e5) throw new DOMException('full', 'QuotaExceededError');
            set.call(this, name, value); }; }""")
    page.locator("#composer textarea").evaluate(PASTE, LONG)
    expect(page.get_by_role("button", name=f"Remove {CALLED}")).to_be_visible()
    page.reload()
    said = f"{CALLED} was too long to be kept while the page was left. Paste it again."
    expect(page.locator(".p-left-out")).to_have_text(said)


def test_that_files_were_too_many_is_said_again_with_the_draft_until_it_is_sent(show: Show, stage: Stage) -> None:
    page = show("answered")
    line, composer = page.locator(".p-left-out"), page.locator("#composer textarea")
    composer.fill("What is in them?")
    drop(page, {"many": {f"{number:03}.txt": "x" for number in range(42)}})
    said = "Up to 40 files can be added at once; add the other 2 after these: 040.txt, 041.txt"
    expect(line).to_have_text(said)
    expect(page.locator("#composer .p-chip .p-icon")).to_have_count(40)
    page.goto(stage.url)
    expect(page.locator("#composer .p-chips")).to_be_attached()
    expect(line).to_have_count(0)
    page.goto(f"{stage.url}/?scene=answered")
    expect(composer).to_have_value("What is in them?")
    expect(line).to_contain_text(said)
    expect(line).to_contain_text("039.txt")  # which was not sent
    sent_before = len(stage.sent)
    composer.press("Enter")
    stage.until(lambda: len(stage.sent) > sent_before)
    expect(composer).to_have_value("")
    composer.fill("And besides?")
    page.goto(f"{stage.url}/?scene=answered")
    expect(composer).to_have_value("And besides?")
    expect(line).to_have_count(0)


def test_that_files_were_too_many_is_said_again_also_where_another_draft_is_sent_first(
    show: Show, stage: Stage
) -> None:
    page = show("answered")
    line, composer = page.locator(".p-left-out"), page.locator("#composer textarea")
    drop(page, {"many": {f"{number:03}.txt": "x" for number in range(41)}})
    said = "Up to 40 files can be added at once; add the other 1 after these: 040.txt"
    expect(line).to_have_text(said)
    expect(page.locator("#composer .p-chip .p-icon")).to_have_count(40)
    page.goto(stage.url)
    expect(page.locator("#composer .p-chips")).to_be_attached()
    sent_before = len(stage.sent)
    composer.fill("Something else")
    composer.press("Enter")
    stage.until(lambda: len(stage.sent) > sent_before)
    page.goto(f"{stage.url}/?scene=answered")
    expect(line).to_contain_text(said)
