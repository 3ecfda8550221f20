"""The page in a browser, under its real headers: what the style depends on, what hostile text cannot do, what the
script does."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.chat_steps import focus, switch_theme, until, wait_for_script
from tests.webui.screen.stage import HOSTILE, PASSAGE, Stage
from webui.panels.evidence import Lists, ShownPage, evidence_html

Show = Callable[..., Page]

# Gradio's own selectors that the style and the script depend on: a new Gradio that has others breaks the look.
SELECTORS = """
    gradio-app | .gradio-container | .gradio-container .main.app | .gradio-container .wrap:has(> .contain)
    .contain > .column | #room > #side | #room > #talk | #room > #evidence | #history .prose .md | #chat .wrapper
    #chat [role=log].panel-wrap | #chat .message-wrap > .message-row.panel.user-row | #chat .bot-row .bot.message
    #chat .message-content | #chat [data-testid=user] | #chat [data-testid=bot] | #chat .prose.chatbot.md
    #chat .thought-group > .title | #chat .title.expanded | #chat .title .arrow > button
    #chat .thought-group > .content | #chat .content > .children | #chat .children > .thought-group
    #chat .code_wrap .copy_code_button | #chat .token.number | #chat span.katex | #chat span.katex-display
    #composer .full-container > .input-container | #composer .input-wrapper | #composer .textarea-wrapper
    #composer textarea | #composer .input-row > .upload-button | #composer .input-row > .microphone-button
    #composer .input-row > .submit-button | #composer .input-row > .stop-button | #composer input[type=file]
    #bus textarea | #bus-go | .toast-wrap
"""
KNOWN = """
    a p span div sup sub strong em ul ol li table thead tbody tr th td pre code blockquote h1 h2 h3 hr br del svg s
    details summary kbd math semantics mrow mi mo mn mfrac msub msup msubsup munderover mstyle annotation mtext mspace
    mover munder
"""


# Wheels roll on for a moment.
STANDS_STILL = """e => new Promise((done) => { let before = NaN; const look = () => {
    if (e.scrollTop === before) return done();
    before = e.scrollTop;
    requestAnimationFrame(() => requestAnimationFrame(look)); }; look(); })"""
AT_END = "e => e.scrollTop + e.clientHeight > e.scrollHeight - 20"


def test_every_selector_the_style_depends_on_is_in_the_page(show: Show) -> None:
    page = show("answered")
    titles = page.locator("#chat .message > div > .thought-group > .title")
    expect(titles).not_to_have_count(0)
    for title in titles.all():
        title.click()
    expect(page.locator("#chat .children > .thought-group")).to_have_count(4)
    page.locator("#chat .children .title").first.click()
    wanted = [selector.strip() for line in SELECTORS.strip().splitlines() for selector in line.split("|")]
    assert not [selector for selector in wanted if not page.locator(selector).count()]


def test_files_in_the_composer_have_gradios_tiles_and_our_chips(show: Show, tmp_path: Path) -> None:
    page = show()
    paths = [tmp_path / name for name in ("über uns.txt", "政策.md")]
    for path in paths:
        path.write_text("x", "utf-8")
    page.locator("#composer input[type=file]").first.set_input_files(paths)
    expect(page.locator("#composer .thumbnails .thumbnail-wrapper .delete-button")).to_have_count(2)
    expect(page.locator("#composer .p-chips .p-name")).to_have_text(["über uns.txt", "政策.md"])
    expect(page.locator("#composer .thumbnail-wrapper").first).to_be_hidden()
    page.get_by_role("button", name="Remove über uns.txt").click()
    expect(page.locator("#composer .p-chips .p-name")).to_have_text(["政策.md"])
    expect(page.locator("#composer .thumbnail-wrapper")).to_have_count(1)


def test_the_question_can_be_written_and_sent_however_many_files_come_with_it(show: Show, tmp_path: Path) -> None:
    page = show()
    paths = [tmp_path / f"note {number}.txt" for number in range(30)]
    for path in paths:
        path.write_text("x", "utf-8")
    for width, height in ((1360, 860), (360, 640)):
        page.set_viewport_size({"width": width, "height": height})
        page.locator("#composer input[type=file]").first.set_input_files(paths)
        expect(page.locator("#composer .p-chips .p-name").first).to_be_attached()
        page.locator("#composer textarea").click(timeout=5_000)
        box = page.locator("#composer").bounding_box()
        assert box is not None
        assert box["y"] > height / 3
        page.get_by_role("button", name="Remove note 29.txt").first.scroll_into_view_if_needed()
        expect(page.get_by_role("button", name="Remove note 29.txt").first).to_be_in_viewport()


def test_hostile_text_leaves_no_element_that_could_paint_or_ask(show: Show) -> None:
    page = show("hostile")
    titles = page.locator("#chat .thought-group > .title")
    expect(titles).not_to_have_count(0)
    titles.evaluate_all("(all) => all.forEach((title) => title.click())")
    expect(page.locator("#chat .copy_code_button").first).to_be_visible()
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('#chat .md *')]
            .filter((element) => !element.closest('svg, .copy_code_button, .p-code-head, .p-code-more'))
            .map((element) => element.localName)"""
    )
    assert not set(found) - set(KNOWN.split())
    assert page.locator("#chat .md :not(.mermaid *, svg *)[id], #chat .md input").count() == 0
    assert page.locator("#chat .md [style*='position']:not(svg, svg *)").count() == 0
    expect(page.locator("#chat .mermaid svg").first).to_contain_text("<style>")
    expect(page.locator("#composer")).to_be_visible()


def test_a_hostile_question_that_is_shown_as_markdown_is_shown_once_and_paints_nothing(show: Show) -> None:
    page = show("formatted")
    typed, drawn = page.locator("#chat .p-asked"), page.locator("#chat .p-formatted")
    expect(drawn.first).to_be_visible()
    assert typed.count() == drawn.count() == len(HOSTILE)
    assert not any(one.is_visible() for one in typed.all())
    assert typed.all_text_contents()[0] == HOSTILE[0], "there to be changed as it was typed"
    assert drawn.first.inner_text().strip() == HOSTILE[0]
    found: list[str] = drawn.evaluate_all(
        """(all) => all.flatMap((one) => [...one.querySelectorAll('*')])
            .filter((element) => !element.closest('svg, .copy_code_button, .p-code-head, .p-code-more'))
            .map((element) => element.localName)"""
    )
    assert not set(found) - set(KNOWN.split())
    assert page.locator("#chat .p-formatted img, #chat .p-formatted a[href^='javascript']").count() == 0


def test_forged_links_do_nothing(show: Show, stage: Stage) -> None:
    page = show("hostile")
    page.get_by_role("link", name="forged").first.click()
    page.locator("#chat a[href='#cite-x-1']").first.click()
    page.locator("#history a[data-open=old]").click()
    stage.until(lambda: stage.asked)
    expect(page.locator("#page .p-evidence")).to_have_count(0)
    assert stage.asked == [{"do": "open", "id": "old"}]


def test_a_mark_opens_its_passage(show: Show, stage: Stage) -> None:
    page = show("answered")
    page.locator("#chat sup > a.cite").first.click()
    expect(page.locator("#page .p-hl.p-on")).to_be_visible()
    expect(page.locator("#evidence")).to_be_in_viewport()
    assert stage.asked == [{"do": "cite", "message": "r-1", "n": 1, "at": 0}]
    page.get_by_role("button", name="Next page").click()
    expect(page.locator("#evidence")).to_contain_text("Page 3 of 3")
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#evidence")).to_be_hidden()
    stage.until(lambda: len(stage.asked) == 3)
    assert stage.asked[1:] == [{"do": "page", "document": "doc", "n": 3, "part": 0}, {"do": "close"}]


def test_a_page_that_is_still_being_read_comes_by_itself(show: Show, stage: Stage) -> None:
    passages, lists = [{**PASSAGE, "number": 1}], Lists(nothing="unread")
    stage.evidence = lambda words: evidence_html(passages, 1, words, message_id="r-1", page=None, lists=lists)
    page = show("answered")
    page.locator("#chat sup > a.cite").first.click()
    expect(page.locator("#page .p-none")).to_contain_text("still being read")
    stage.until(lambda: stage.asked.count({"do": "again"}) > 1)
    stage.evidence = None
    expect(page.locator("#page .p-hl.p-on")).to_be_visible()


@pytest.mark.parametrize("turned", [False, True])
def test_what_is_cited_is_marked_and_comes_into_sight_once_its_page_was_read_unless_somebody_reads_elsewhere(
    show: Show, stage: Stage, turned: bool
) -> None:
    lines = tuple((72.0, 80.0 + 18.0 * line, 523.0, 92.0 + 18.0 * line) for line in range(38))
    passages = [{**PASSAGE, "number": 1, "rectangles": lines}]
    sheet = ShownPage("doc", "policy.pdf", 2, 3, (595.0, 842.0), (72.0, 80.0, 523.0, 790.0))
    unread, known = replace(sheet, is_unread=True), replace(sheet, cited=lines[-2:])
    stage.evidence = lambda words: evidence_html(passages, 1, words, message_id="r-1", page=unread)
    page = show("answered", width=1280, height=560)
    page.locator("#chat sup > a.cite").first.click()
    expect(page.locator("#page .p-hl.p-on").first).to_be_visible()
    expect(page.locator("#page .p-strong")).to_have_count(0)
    desk = page.locator("#page .p-desk")
    if turned:
        desk.evaluate("desk => desk.scrollTo(0, 60)")
        desk.evaluate(STANDS_STILL)
    stage.until(lambda: stage.asked.count({"do": "again"}) > 1)
    stage.evidence = lambda words: evidence_html(passages, 1, words, message_id="r-1", page=known)
    expect(page.locator("#page .p-strong")).to_have_count(2)
    if turned:
        assert desk.evaluate("desk => desk.scrollTop") == 60
    else:
        expect(page.locator("#page .p-strong").first).to_be_in_viewport()
    expect(page.locator("#page [data-unread]")).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), [(1024, 768), (390, 780)])
def test_on_a_narrow_page_evidence_comes_over_it_and_goes_with_escape(show: Show, width: int, height: int) -> None:
    page = show("answered", width=width, height=height)
    expect(page.locator("#evidence")).not_to_be_in_viewport()
    page.locator("#chat sup > a.cite").first.click()
    expect(page.locator("#evidence")).to_be_in_viewport(ratio=0.8)
    page.keyboard.press("Escape")
    expect(page.locator("#evidence")).not_to_be_in_viewport()
    page.locator("#top .p-open-evidence").click()
    expect(page.locator("#evidence")).to_be_in_viewport(ratio=0.8)


def test_on_a_phone_nothing_overflows_and_the_history_is_a_drawer(show: Show) -> None:
    page = show("answered", width=360, height=740)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    box = page.locator("#composer").bounding_box()
    assert box is not None
    assert 660 < box["y"] + box["height"] <= 740
    expect(page.locator("#side")).not_to_be_in_viewport()
    page.get_by_role("button", name="Conversations").click()
    expect(page.locator("#side")).to_be_in_viewport(ratio=0.9)
    page.locator("#history a[data-open=old]").click()
    expect(page.locator("#side")).not_to_be_in_viewport()


@pytest.mark.parametrize(
    ("locale", "send", "stop"),
    [pytest.param("en-US", "Send", "Stop", marks=pytest.mark.slow), ("zh-CN", "发送", "停止")],
)
def test_send_and_stop_share_a_place_and_have_names(
    show: Show, stage: Stage, locale: str, send: str, stop: str
) -> None:
    page = show(locale=locale)
    composer = page.locator("#composer")
    expect(composer.get_by_role("button", name=send, exact=True)).to_be_visible()
    expect(composer.get_by_role("button", name=stop, exact=True)).to_be_hidden()
    page = show("running", locale=locale)
    composer = page.locator("#composer")
    expect(composer.get_by_role("button", name=send, exact=True)).to_be_hidden()
    composer.get_by_role("button", name=stop, exact=True).click()
    expect(page.locator("#chat .p-run").first).to_be_visible()
    stage.until(lambda: stage.stops)
    assert stage.stops == 1


def test_other_languages_get_english_and_the_composer_has_one_name_for_a_screen_reader(show: Show) -> None:
    composer = show(locale="fr-FR").locator("#composer")
    expect(composer.get_by_role("button", name="Send", exact=True)).to_be_visible()
    expect(composer).not_to_contain_text("MultimodalTextbox")


def test_enter_sends_but_not_while_a_character_is_being_chosen(show: Show, stage: Stage) -> None:
    page = show()
    field = page.locator("#composer textarea")
    field.fill("你好")
    field.evaluate(
        """(element) => { for (const type of ['keydown', 'keypress']) element.dispatchEvent(
            new KeyboardEvent(type, {key: 'Enter', isComposing: true, bubbles: true, cancelable: true})); }"""
    )
    expect(field).to_have_value("你好")
    field.press("Enter")
    expect(field).to_have_value("")
    stage.until(lambda: stage.sent)
    assert [sent["text"] for sent in stage.sent] == ["你好"]


def test_a_draft_outlives_a_reload(show: Show) -> None:
    page = show()
    page.locator("#composer textarea").fill("Half a thought")
    page.reload(wait_until="domcontentloaded")
    expect(page.locator("#composer textarea")).to_have_value("Half a thought")


def test_a_covered_tab_that_draws_no_frames_still_follows_the_conversation(show: Show) -> None:
    page = show("answered")
    page.evaluate(
        """() => { window.requestAnimationFrame = () => 0;
            const old = document.querySelector('#status [data-state]'), now = old.cloneNode(true);
            now.dataset.conversation = 'other';
            old.replaceWith(now); }"""
    )
    expect(page).to_have_url(re.compile(r"\?c=other$"))


def test_the_empty_room_greets_and_offers_four_beginnings(show: Show, stage: Stage) -> None:
    page = show(locale="zh-CN")
    expect(page.locator("#hello h2 span:visible")).to_have_count(2)
    expect(page.locator("#hello .p-starter")).to_have_count(4)
    expect(page.locator("#hello .p-starter").first).to_contain_text("保险单.pdf")
    page.locator("#hello .p-starter").first.click()
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "starter", "n": 1}]


def test_a_row_can_be_renamed_and_deleted_with_the_keyboard(show: Show, stage: Stage) -> None:
    page = show("answered")
    focus(page.locator("#history .p-menu").first)
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Rename").press("Enter")
    page.get_by_label("Title").fill("Better")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.locator("#history .p-menu").first.click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("About <b>it</b>")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    stage.until(lambda: len(stage.asked) == 2)
    assert stage.asked == [{"do": "rename", "id": "conv", "title": "Better"}, {"do": "delete", "id": "conv"}]


def test_a_question_is_changed_from_its_own_words(show: Show, stage: Stage) -> None:
    page = show("answered")
    page.locator("#chat .user-row").first.hover()
    page.locator("#chat a.p-edit").first.click()
    expect(page.get_by_label("Edit your question")).to_have_value("What is the deductible?")
    page.get_by_label("Edit your question").fill("What does it cost?")
    page.locator(".p-editing").get_by_role("button", name="Send").click()
    stage.until(lambda: stage.asked)
    assert stage.asked == [{"do": "edit", "id": "q-1", "text": "What does it cost?"}]


def test_copying_gives_back_what_the_model_wrote(show: Show) -> None:
    page = show("answered")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("navigator.clipboard.writeText('nothing yet')")
    page.locator("#chat .bot-row a.p-copy").first.click()
    until(lambda: page.evaluate("navigator.clipboard.readText()") != "nothing yet")
    text: str = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("You pay **300 dollars** of each claim [1].")
    assert "$n < 3$ claims it is $s = \\sum t_i$, but $5 or $10 is money" in text
    assert "print(300 < 750)  # $x and $y" in text
    assert "p-acts" not in text


def test_what_was_drawn_a_moment_ago_is_copied_whole(show: Show) -> None:
    page = show("answered")
    row = page.locator("#chat .bot-row").first
    for drawn in ('[data-testid="bot"]:has(table)', "a.p-copy"):
        expect(row.locator(drawn).first).to_be_attached()
    page.evaluate(
        """() => { navigator.clipboard.writeText = async (text) => { window.copied = text; };
            const row = document.querySelector('#chat .bot-row');
            const old = row.querySelector('[data-testid="bot"]:has(table)'), now = old.cloneNode(true);
            now.setAttribute('aria-label', "bot's message: Drawn anew.");
            old.replaceWith(now);
            row.querySelector('a.p-copy').click(); }"""
    )
    assert page.evaluate("window.copied") == "Drawn anew."


def test_light_and_dark_follow_the_system_until_the_reader_chooses(show: Show) -> None:
    page = show(color_scheme="dark")
    ground = "getComputedStyle(document.querySelector('#talk')).backgroundColor"
    expect(page.locator("body")).to_have_class("dark")
    dark = page.evaluate(ground)
    switch_theme(page)
    expect(page.locator("body")).not_to_have_class("dark")
    assert page.evaluate(ground) != dark
    page.reload(wait_until="domcontentloaded")
    wait_for_script(page)
    expect(page.locator("body")).not_to_have_class("dark")


def test_rows_say_their_own_language(show: Show) -> None:
    page = show("answered")
    expect(page.locator("#chat .user-row").first).to_have_attribute("lang", "en")
    expect(page.locator("#chat .user-row").nth(1)).to_have_attribute("lang", "zh-CN")
    assert page.evaluate("document.documentElement.lang") == "en"


def test_the_reader_is_never_pulled_to_the_end(show: Show) -> None:
    page = show("answered", height=500)
    log = page.locator("#chat [role=log]")
    until(lambda: log.evaluate(AT_END))
    log.hover()
    page.mouse.wheel(0, -400)
    until(lambda: not log.evaluate(AT_END))
    log.evaluate(STANDS_STILL)
    before: float = log.evaluate("e => e.scrollTop")
    log.evaluate("e => e.querySelector('.message-wrap').append(document.createElement('hr'))")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert log.evaluate("e => e.scrollTop") == pytest.approx(before, abs=2)
    focus(page.get_by_role("button", name="To the newest message"))
    page.keyboard.press("Enter")
    until(lambda: log.evaluate(AT_END))
    expect(log).to_be_focused()


def test_a_bubble_opens_with_the_keyboard_and_says_so(show: Show) -> None:
    page = show("answered")
    page.locator("#chat .thought-group > .title").nth(1).click()
    title: Any = page.locator("#chat .thought-group > .title").filter(has_text="ask_documents")
    expect(title).to_have_attribute("aria-expanded", "false")
    focus(title)
    page.keyboard.press("Enter")
    expect(title).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#chat .p-found").first).to_contain_text("policy.pdf, page 2")


def held_back(page: Page, file: Path) -> list[Route]:
    """A file on its way up, whose check waits: let go of what is in the list."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/uploads/check", hold)
    with page.expect_request("**/uploads/check"):
        page.locator("#composer input[type=file]").first.set_input_files(file)
    return held


def test_a_question_waits_for_its_file_can_be_changed_meanwhile_and_is_sent_by_itself(
    show: Show, stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "kept.txt").write_text("The wren sings.", "utf-8")
    page = show()
    held = held_back(page, tmp_path / "kept.txt")
    field, line = page.locator("#composer textarea"), page.locator(".p-arriving")
    field.fill("What sings?")
    field.press("Enter")
    expect(line).to_contain_text("Your question is sent as soon as its files are there.")
    expect(field).to_have_value("What sings?")
    page.get_by_role("button", name="Don’t send").click()
    expect(line).to_have_count(0)
    expect(field).to_be_focused()
    field.press("Enter")
    field.fill("Who sings?")
    expect(line).to_be_visible()
    assert not stage.sent
    held[0].continue_()
    stage.until(lambda: stage.sent)
    assert [(sent["text"], len(sent["files"])) for sent in stage.sent] == [("Who sings?", 1)]
    expect(line).to_have_count(0)


def test_a_question_whose_file_is_refused_or_lost_is_not_sent_without_it(
    show: Show, stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("The wren sings.", "utf-8")
    page = show()
    held = held_back(page, tmp_path / "a.txt")
    field = page.locator("#composer textarea")
    field.fill("What sings?")
    field.press("Enter")
    expect(page.locator(".p-arriving")).to_be_visible()
    held[0].fulfill(json={"refused": [0], "said": "The file is empty."})
    expect(page.locator(".p-left-out")).to_contain_text("Your question was not sent: a file is missing.")
    expect(field).to_have_value("What sings?")
    assert not stage.sent


def test_what_was_left_out_and_may_be_added_later_is_said_until_the_question_after(
    show: Show, stage: Stage, tmp_path: Path
) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("The wren sings.", "utf-8")
    said = "No more than 1 may wait; this one was left out: b.txt."
    page = show()
    page.route(
        "**/uploads/check", lambda route: route.fulfill(json={"refused": [1], "said": said, "later": True}), times=1
    )
    page.locator("#composer input[type=file]").first.set_input_files([tmp_path / "a.txt", tmp_path / "b.txt"])
    expect(page.get_by_role("button", name="Remove a.txt")).to_be_visible()
    field, line = page.locator("#composer textarea"), page.locator(".p-left-out")
    sent_before = len(stage.sent)
    for number, lines in ((1, 1), (2, 0)):
        field.fill(f"What sings, {number}?")
        field.press("Enter")
        stage.until(lambda number=number: len(stage.sent) == sent_before + number)
        expect(line).to_have_count(lines)
        expect(field).to_have_value("")


def test_files_that_were_not_sent_when_the_page_was_left_are_named_when_it_is_back(show: Show, tmp_path: Path) -> None:
    for name in ("here.txt", "coming.txt"):
        (tmp_path / name).write_text("The wren sings.", "utf-8")
    page = show()
    chooser = page.locator("#composer input[type=file]").first
    chooser.set_input_files(tmp_path / "here.txt")
    expect(page.get_by_role("button", name="Remove here.txt")).to_be_visible()
    page.route("**/gradio_api/upload?*", lambda route: None)
    page.locator("#composer input[type=file]").first.set_input_files(tmp_path / "coming.txt")
    expect(page.locator("#composer .p-sending")).to_have_count(1)
    page.reload()
    said = "here.txt, coming.txt were not sent before the page was left. Attach them again."
    expect(page.locator(".p-left-out")).to_have_text(said)
    page.reload()
    expect(page.locator("#composer .p-chips")).to_be_attached()
    expect(page.locator(".p-left-out")).to_have_count(0)


@pytest.mark.parametrize("removed", ["first.txt", "second.txt"])
def test_files_that_arrive_in_another_order_with_a_refusal_between_keep_their_own_chips(
    show: Show, stage: Stage, tmp_path: Path, removed: str
) -> None:
    for name in ("first.txt", "refused.zip", "second.txt"):
        (tmp_path / name).write_text(f"This is {name}.", "utf-8")
    page, sent_before = show(), len(stage.sent)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    def checked(route: Route) -> None:
        is_refused = "refused.zip" in (route.request.post_data or "")
        route.fulfill(json={"refused": [0], "said": "No archives."} if is_refused else {"refused": [], "said": ""})

    def choose(name: str) -> None:
        page.locator("#composer input[type=file]").first.set_input_files(tmp_path / name)

    page.route("**/uploads/check", checked)
    page.route("**/gradio_api/upload?*", hold)
    chips = page.locator("#composer .p-chip")
    choose("first.txt")
    expect(chips).to_have_text(["first.txtuploading"])
    choose("refused.zip")
    expect(page.locator(".p-left-out")).to_have_text("No archives.")
    choose("second.txt")
    expect(chips).to_have_text(["first.txtuploading", "second.txtuploading"])
    until(lambda: chips.count() == len(held) == 2)  # a question to the page lets the routes be heard
    first, second = held
    second.continue_()
    expect(chips).to_have_text(["second.txtTXT", "first.txtuploading"])
    first.continue_()
    expect(chips).to_have_text(["second.txtTXT", "first.txtTXT"])
    page.get_by_role("button", name=f"Remove {removed}").click()
    (kept,) = {"first.txt", "second.txt"} - {removed}
    expect(chips).to_have_text([f"{kept}TXT"])
    field = page.locator("#composer textarea")
    field.fill("What is it?")
    field.press("Enter")
    stage.until(lambda: len(stage.sent) > sent_before)
    assert [Path(path).read_text("utf-8") for path in stage.sent[-1]["files"]] == [f"This is {kept}."]


def test_a_file_that_was_refused_can_be_chosen_again(show: Show, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("", "utf-8")
    page = show()
    page.route("**/uploads/check", lambda route: route.fulfill(json={"refused": [0], "said": "The file is empty."}))
    page.locator("#composer input[type=file]").first.set_input_files(tmp_path / "empty.txt")
    expect(page.get_by_text("The file is empty.")).to_be_visible()
    # A browser tells of a choice only where it is another one than before.
    held = page.locator("#composer input[type=file]").evaluate_all("all => all.map((one) => one.files.length)")
    assert set(held) == {0}
