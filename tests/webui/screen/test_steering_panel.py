"""The panel of steering and the chips of the composer: what they say, send and keep, by mouse, finger and keyboard."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from core.workspace.saving import Saving
from core.workspace.steering import Steering
from core.workspace.usable import Usable
from tests.e2e.axe import findings_everywhere
from tests.e2e.chat_steps import until
from tests.webui.screen.stage import Stage
from tests.webui.screen.steering_scenes import LIBRARIAN, LONG_STARTER, shown
from tests.webui.screen.test_meter import METER
from webui.handlers.metering import meter_data
from webui.panels.steering import steering_html
from webui.words import LANGUAGES, Words

Show = Callable[..., Page]
DRAWN: dict[str, Any] = {"do": "steer", "change": {}}  # asks for the panel as it is now
PHONE: dict[str, Any] = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}


@pytest.fixture(autouse=True)
def _nothing_asked(stage: Stage) -> None:
    stage.asked.clear()
    stage.steered.left_out = ()


def opened(page: Page) -> Locator:
    """The panel, once it is there."""
    page.get_by_role("button", name="Steering", exact=True).click()
    panel = page.locator("#page .p-steer")
    expect(panel).to_be_visible()
    return panel


def folder_of(page: Page) -> Locator:
    """The panel of a folder, opened as its row's menu opens it."""
    page.evaluate(
        """() => {
            const button = Object.assign(document.createElement('button'), { textContent: 'Open it' });
            Object.assign(button.dataset, { do: 'steering', folder: 'f1' });
            document.querySelector('main').append(button);
        }"""
    )
    page.get_by_text("Open it").evaluate("button => button.click()")
    return page.locator("#page .p-steer")


def heard(stage: Stage, **message: Any) -> None:
    """Wait until the script has asked for this."""
    stage.until(lambda: any(message.items() <= one.items() for one in stage.asked))


def test_a_switch_is_sent_at_once_and_the_sum_counts_along(show: Show, stage: Stage) -> None:
    panel = opened(show("steered"))
    total = panel.locator(".p-sum output")
    expect(total).to_have_text("1,076 tokens")
    panel.get_by_role("switch", name="Web search and read").check()
    expect(total).to_have_text("1,386 tokens")
    heard(stage, do="steer", change={"tools": {"web_search": True, "web_extractor": True}})
    panel.get_by_role("switch", name="Code").uncheck()
    expect(total).to_have_text("906 tokens")


def test_what_is_asked_for_in_one_breath_arrives_once_each_and_in_order(show: Show, stage: Stage) -> None:
    panel = opened(show("steered"))
    stage.asked.clear()
    panel.locator(".p-flip input[data-tools]").first.evaluate("(box) => { for (let i = 0; i < 12; i++) box.click(); }")
    stage.until(lambda: len(stage.asked) >= 12)
    switched = [next(iter(one["change"]["tools"].values())) for one in stage.asked]
    assert switched == [switched[0], not switched[0]] * 6


def test_an_open_panel_shows_what_the_meter_left_out(show: Show, stage: Stage) -> None:
    stage.meter = meter_data(replace(METER, savings=(Saving("tools", "web", 900, count=2),)), Words("en"))
    page = show("steered")
    opened(page)
    page.locator("#composer .p-ring").click()
    page.locator(".p-meter .p-save").first.click()
    heard(stage, do="save", on=True)
    heard(stage, do="steer", change={})


def test_a_server_carries_its_tools_along_which_can_be_chosen_one_by_one(show: Show, stage: Stage) -> None:
    panel = opened(show("steered"))
    panel.get_by_text("One by one").click()
    inner = panel.locator("li li").get_by_role("switch")
    expect(inner.first).to_be_checked()
    panel.get_by_role("switch", name="files").uncheck()
    expect(inner.first).not_to_be_checked()
    inner.last.check()
    expect(panel.get_by_role("switch", name="files")).to_be_checked()
    heard(stage, do="steer", change={"tools": {"mcp:files:write": True}})


def test_a_server_that_does_not_answer_says_so_and_has_no_switch(show: Show) -> None:
    panel = opened(show("steered"))
    expect(panel.get_by_role("listitem").filter(has_text="github")).to_contain_text("no answer")
    expect(panel.get_by_role("switch", name="github")).to_have_count(0)


def test_instructions_are_kept_as_one_types_and_the_field_is_left_alone(show: Show, stage: Stage) -> None:
    panel = opened(show("steered"))
    field = panel.get_by_role("textbox", name="Instructions")
    assert field.input_value() == "Say what the source says,\n\nthen what you conclude <b>."
    field.fill("Be brief.")
    heard(stage, do="steer", change={"instructions": "Be brief."}, quiet=True)
    expect(field).to_have_value("Be brief.")
    expect(field).to_be_focused()


def test_what_instructions_take_is_counted_anew_while_the_field_is_left_alone(show: Show, stage: Stage) -> None:
    panel = opened(show("steered"))
    total = panel.locator(".p-sum output")
    before = int((total.inner_text()).split()[0].replace(",", ""))
    field = panel.get_by_role("textbox", name="Instructions")
    expect(panel.get_by_text("the persona “Librarian” stays as it is until you save it")).to_be_visible()
    field.fill("Be brief.")
    expect(panel.locator("h3", has_text="Persona").locator("small")).to_have_text("7 tokens")
    expect(total).to_have_text(f"{before - 96 + 7:,} tokens")
    expect(field).to_be_focused()


def test_a_persona_that_is_shared_no_more_is_told_once_and_goes_from_an_open_panel(show: Show, stage: Stage) -> None:
    page = show("steered")
    panel = opened(page)
    drawn = panel.get_attribute("data-turn")
    said = "The persona “Yoda” is not shared with you any more; the next message goes without it."
    page.locator("#toolbar .p-tap-persona").evaluate(
        """(chip, said) => {
            const next = Object.assign(chip.cloneNode(true), { title: said });  // as the next frame draws it
            next.dataset.gone = said;
            chip.replaceWith(next);
        }""",
        said,
    )
    expect(page.locator(".p-hint")).to_have_text(said)
    expect(panel).not_to_have_attribute("data-turn", drawn or "")
    heard(stage, do="steer", change={})
    assert len([one for one in stage.asked if one.get("change") == {}]) == 1


def test_a_library_that_is_shared_no_more_is_told_once_for_its_conversation(show: Show) -> None:
    page = show("steered")
    said = "A library of this conversation is not shared with you any more; the next message is answered without it."
    drawn = """(chip, said) => {
        const next = Object.assign(chip.cloneNode(true), { title: said });
        next.dataset.gone = said;
        chip.replaceWith(next);
    }"""
    page.locator("#toolbar .p-tap-libraries").evaluate(drawn, said)
    expect(page.locator(".p-hint")).to_have_text(said)
    page.locator(".p-hint").evaluate("hint => { hint.textContent = 'Something else.'; }")
    page.locator("#toolbar .p-tap-libraries").evaluate(drawn, said)
    page.locator("#toolbar .p-tap-persona").evaluate(drawn, "The persona is gone.")
    expect(page.locator(".p-hint")).to_have_text("The persona is gone.")


def test_a_name_of_spaces_says_that_a_name_is_needed(show: Show, stage: Stage) -> None:
    page = show("steered")
    opened(page).get_by_role("button", name="Save as persona…").click()
    page.keyboard.type("   ")
    page.keyboard.press("Enter")
    expect(page.locator(".p-hint")).to_have_text("The persona needs a name.")
    assert not [one for one in stage.asked if one["do"] == "persona-save"]


def test_a_long_question_to_begin_with_takes_two_lines_and_its_title_has_all_of_it(show: Show) -> None:
    page = show("starting long")
    long = page.locator("#starters .p-starter").last
    height, line = long.locator(".p-text").evaluate(
        "one => [one.clientHeight, parseFloat(getComputedStyle(one).lineHeight)]"
    )
    assert line <= height < 2.5 * line
    expect(long).to_have_attribute("title", LONG_STARTER)
    assert page.locator("#starters .p-starters").evaluate("box => box.scrollHeight <= box.clientHeight")


def test_a_parameter_is_the_services_own_until_it_is_moved_and_again_when_it_is_given_back(
    show: Show, stage: Stage
) -> None:
    panel = opened(show("steered"))
    longest = panel.locator("[data-name=max_tokens]")
    expect(longest.locator("output")).to_have_text("service’s own")
    longest.get_by_role("slider").focus()
    longest.get_by_role("slider").press("ArrowRight")
    expect(longest.locator("output")).to_have_text("8,192")
    heard(stage, do="steer", change={"parameters": {"max_tokens": 8192}}, quiet=True)
    expect(panel.locator("[data-name=temperature] output")).to_have_text("0.6")
    panel.get_by_role("button", name="Temperature: service’s own").click()
    heard(stage, do="steer", change={"parameters": {"temperature": None}})
    panel.get_by_role("button", name="short").click()
    heard(stage, do="steer", change={"parameters": {"effort": "short"}}, quiet=True)


def test_what_the_service_refused_is_said_beside_it(show: Show, stage: Stage) -> None:
    stage.steered.left_out = ("temperature",)
    panel = opened(show("steered"))
    expect(panel.get_by_text("The service does not take this; it is left out.")).to_have_count(1)


def test_a_persona_is_chosen_saved_by_its_name_and_forgotten(show: Show, stage: Stage) -> None:
    page = show("steered")
    panel = opened(page)
    drawn = stage.steered.turn
    panel.get_by_role("combobox", name="Persona").select_option("")
    heard(stage, do="persona", id="")
    panel.get_by_role("button", name="Save as persona…").click()
    page.keyboard.type("Poet")
    page.keyboard.press("Enter")
    heard(stage, do="persona-save", name="Poet")
    panel.get_by_title("Delete the persona “Librarian”").click()
    heard(stage, do="persona-delete", id="p1")
    page.get_by_role("button", name="Undo").click()
    heard(stage, do="persona-restore", id="p1")
    expect(panel).to_have_attribute("data-turn", str(drawn + 4))
    expect(panel.get_by_role("combobox", name="Persona")).to_be_focused()


def test_a_personas_sign_and_questions_to_begin_with_are_changed(show: Show, stage: Stage) -> None:
    panel = opened(show("steered"))
    panel.get_by_text("Sign, starters, model").click()
    panel.get_by_role("textbox", name="Sign").fill("§")
    panel.get_by_role("textbox", name="Questions to begin with").fill("What is new?\nWhere from?")
    panel.get_by_role("combobox", name="Model").select_option("claude-x · anthropic")
    panel.locator(".p-about-persona").get_by_role("button", name="Save").click()
    model = {"service": "anthropic", "model": "claude-x"}
    heard(stage, do="persona-change", id="p1", sign="§", starters="What is new?\nWhere from?", model=model)


@pytest.mark.parametrize(("sign", "listed"), [("L", "Librarian"), ("§", "§ Librarian"), ("", "Librarian")])
def test_the_initial_of_a_persona_is_not_said_twice_in_the_list(sign: str, listed: str) -> None:
    steering = Steering(persona=replace(LIBRARIAN, sign=sign))
    kept = shown(steering=steering, personas=[steering.persona])
    assert f"selected>{listed}</option>" in steering_html(kept, Words("en"), turn=1)


def test_a_persona_that_was_deleted_is_said_to_be_where_a_conversation_goes_on_with_it() -> None:
    drawn = steering_html(shown(personas=[]), Words("en"), turn=1)
    assert "selected>Librarian · deleted, kept in this conversation</option>" in drawn
    assert "角色" in steering_html(shown(personas=[]), Words("zh"), turn=1)
    gone = steering_html(shown(steering=Steering(gone="Yoda <b>")), Words("en"), turn=1)
    assert "The persona “Yoda <b>” is not shared with you any more" in html.unescape(gone)
    assert "<b>" not in gone


def test_a_personas_questions_take_the_place_of_parlours_own_and_go_into_the_composer(show: Show) -> None:
    page = show("starting")
    expect(page.locator("#hello .p-starters")).to_be_hidden()
    page.get_by_role("button", name="A sonnet on “rain & <b>snow</b>”").click()
    expect(page.locator("#composer textarea")).to_have_value("A sonnet on “rain & <b>snow</b>”")
    expect(page.locator("#composer textarea")).to_be_focused()


def test_drawn_anew_the_panel_stays_where_it_was_scrolled(show: Show) -> None:
    page = show("steered", height=500)
    panel = opened(page)
    panel.locator(".p-steer-body").evaluate("body => { body.scrollTop = body.scrollHeight; }")
    before = panel.get_attribute("data-turn")
    panel.get_by_role("switch", name="Household papers").uncheck()
    expect(panel).not_to_have_attribute("data-turn", before or "")
    until(lambda: panel.locator(".p-steer-body").evaluate("body => body.scrollTop") > 50)


def test_the_row_of_a_folder_opens_its_instructions_and_libraries(show: Show, stage: Stage) -> None:
    panel = folder_of(show("steered"))
    expect(panel.get_by_role("heading", name="Papers")).to_be_visible()
    panel.get_by_role("switch", name="Household papers").check()
    heard(stage, do="shelve", library="l1", on=True, folder="f1")
    panel.get_by_role("textbox", name="Instructions").fill("Cite all.")
    heard(stage, do="steer", change={"instructions": "Cite all."}, folder="f1")


def test_a_folder_gets_documents_by_one_press_and_no_library_where_no_file_was_chosen(show: Show, stage: Stage) -> None:
    page = show("steered")
    made: list[str] = []
    page.route("**/libraries/create", lambda route: (made.append("l7"), route.fulfill(json={"opened": {"id": "l7"}})))
    opened_library = {"id": "l7", "name": "Papers", "documents": []}
    state: Any = {"libraries": [], "opened": opened_library, "limit": 0}
    page.route("**/libraries/state?**", lambda route: route.fulfill(json=state))
    page.route("**/libraries/l7/files", lambda route: route.fulfill(json={**state, "fresh": 1, "known": 0}))
    folder_of(page)
    add = page.locator("#page .p-steer").get_by_role("button", name="Add documents…")
    with page.expect_file_chooser():
        add.click()
    assert made == []
    with page.expect_file_chooser() as chooser:
        add.click()
    chooser.value.set_files([{"name": "a.md", "mimeType": "text/markdown", "buffer": b"# A"}])
    expect(page.get_by_role("dialog")).to_contain_text("1 file added")
    assert made == ["l7"]
    heard(stage, do="shelve", library="l7", on=True, folder="f1")


def test_the_chips_say_what_is_on_and_switch_it(show: Show, stage: Stage) -> None:
    bar = show("steered").get_by_role("toolbar", name="What the next message may use")
    expect(bar.get_by_role("button", name="Web")).to_have_attribute("aria-pressed", "false")
    expect(bar.get_by_role("button", name="Code")).to_have_attribute("aria-pressed", "true")
    bar.get_by_role("button", name="Web").click()
    expect(bar.get_by_role("button", name="Web")).to_have_attribute("aria-pressed", "true")
    heard(stage, do="switch", what="web", on=True)


def test_the_menus_of_the_chips_choose_libraries_and_a_persona_and_give_the_keyboard_back(
    show: Show, stage: Stage
) -> None:
    page = show("steered")
    bar = page.get_by_role("toolbar")
    bar.get_by_role("button", name="Household papers").click()
    expect(page.get_by_role("menuitemcheckbox", name="Household papers")).to_have_attribute("aria-checked", "true")
    page.get_by_role("menuitemcheckbox", name="Verträge & <i>mehr</i>").click()
    heard(stage, do="use", id="l2", on=True)
    bar.get_by_role("button", name="Librarian").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(bar.get_by_role("button", name="Librarian")).to_be_focused()
    bar.get_by_role("button", name="Librarian").click()
    page.get_by_role("menuitemcheckbox", name="Poet").click()
    heard(stage, do="persona", id="p2")


def test_the_chips_stand_in_the_composers_second_line_and_cover_none_of_its_buttons(show: Show) -> None:
    for options in ({}, PHONE, {"width": 900}):
        page = show("steered", **options)
        page.locator("#composer textarea").fill("one\ntwo\nthree")
        sheet = page.locator("#composer .input-wrapper").bounding_box()
        send = page.locator("#composer .submit-button").bounding_box()
        text = page.locator("#composer textarea").bounding_box()
        chips = [one.bounding_box() for one in page.locator("#toolbar .p-tap").all()]
        clip = page.locator("#composer .upload-button").bounding_box()
        assert sheet
        assert send
        assert text
        assert clip
        for chip in chips:
            assert chip
            assert chip["y"] >= text["y"] + text["height"] - 1
            assert chip["y"] + chip["height"] <= sheet["y"] + sheet["height"]
            assert clip["x"] + clip["width"] <= chip["x"] + 1
            assert chip["x"] + chip["width"] <= send["x"] + 1


def test_below_480_px_the_chips_are_icons_that_a_screen_reader_still_names(show: Show) -> None:
    bar = show("steered", locale="zh-CN", **PHONE).get_by_role("toolbar")
    for name in ("网络", "代码", "Household papers", "Librarian"):
        box = bar.get_by_role("button", name=name).bounding_box()
        assert box
        assert box["width"] <= 44


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_line_of_chips_has_room_beside_the_ring_and_the_microphone_at_every_width(show: Show, lang: str) -> None:
    page = show("steered", locale=lang, **PHONE)
    page.locator("#composer").evaluate("it => it.toggleAttribute('data-meter')")
    page.locator("#composer").evaluate("it => it.setAttribute('data-dictates', '')")
    for width in (320, 360, 390, 430, 600, 840, 1000, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        bar = page.locator("#toolbar").evaluate(
            """bar => ({ over: [bar, ...bar.querySelectorAll('*')].filter((one) => !one.closest('.p-tap span, .p-tap'))
                    .map((one) => one.scrollWidth - one.clientWidth).filter((more) => more > 0),
                 rolls: getComputedStyle(bar).overflowX, right: bar.getBoundingClientRect().right,
                 chips: [...bar.querySelectorAll('.p-tap')].map((one) => one.getBoundingClientRect()) })"""
        )
        assert bar["over"] == [], width
        assert bar["rolls"] == "visible"
        assert all(one["width"] >= 24 and one["right"] <= bar["right"] + 0.5 for one in bar["chips"]), width


def test_no_word_of_a_chip_is_cut_but_a_name_that_somebody_gave(show: Show) -> None:
    for scene in ("steered", "starting"):
        for options in ({"width": 1280}, {"width": 1000}, PHONE):
            page = show(scene, **options)
            cut = page.locator("#toolbar .p-tap:not([data-on=true]) span").evaluate_all(
                "all => all.filter((one) => one.scrollWidth > one.clientWidth && one.clientWidth > 1).length"
            )
            assert cut == 0
            opened(page)
            assert page.locator("#toolbar .p-tap-web").evaluate("chip => chip.scrollWidth <= chip.clientWidth")


@pytest.mark.parametrize("panel_is_open", [False, True], ids=["panel closed", "panel open"])
def test_where_there_is_no_persona_its_menu_says_how_one_is_made_and_leads_there(
    show: Show, panel_is_open: bool
) -> None:
    page = show("answered")
    if panel_is_open:
        opened(page)
    page.get_by_role("toolbar").get_by_role("button", name="Persona").click()
    rows = page.get_by_role("menuitem")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("press “Save as persona…”")
    title, about = rows.evaluate("""row => [row.firstChild, row.lastChild].map((part) => {
        const range = document.createRange();
        range.selectNodeContents(part);
        const { top, bottom } = range.getBoundingClientRect();
        return [top, bottom];
    })""")
    assert title[1] <= about[0], "the lines stand below one another"
    box = rows.bounding_box()
    assert box
    assert box["y"] <= title[0]
    assert about[1] <= box["y"] + box["height"]
    rows.press("Enter")
    expect(page.locator("#page .p-steer").get_by_role("textbox", name="Instructions")).to_be_focused()


# -- prompts, and what @ offers


def test_what_a_slash_offers_leaves_the_chips_in_sight(show: Show) -> None:
    page = show("steered")
    page.locator("#composer textarea").focus()
    page.keyboard.type("/")
    expect(page.get_by_role("option").first).to_be_visible()
    seen = page.locator("#toolbar .p-tap").evaluate_all(
        """chips => chips.map((chip) => {
            const box = chip.getBoundingClientRect();
            return chip.contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2));
        })"""
    )
    assert seen
    assert all(seen)


def test_a_prompt_is_put_in_by_a_slash_and_its_fields_are_filled_before_it_goes(show: Show, stage: Stage) -> None:
    page = show("steered")
    stage.sent.clear()
    field = page.locator("#composer textarea")
    field.focus()
    page.keyboard.type("/wea")
    expect(page.get_by_role("option", name="/weather")).to_be_visible()
    page.keyboard.press("Enter")
    expect(field).to_have_value("How is it in {{city}} on {{day}}?")
    page.keyboard.type("Turin")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Fill in day first.")).to_be_visible()
    assert stage.sent == []
    page.keyboard.type("Monday")
    expect(field).to_have_value("How is it in Turin on Monday?")
    page.keyboard.press("Enter")
    stage.until(lambda: stage.sent)
    assert stage.sent[0]["text"] == "How is it in Turin on Monday?"


def test_a_slash_within_a_question_and_one_without_a_prompt_are_letters(show: Show) -> None:
    page = show("steered")
    page.locator("#composer textarea").focus()
    page.keyboard.type("/")
    expect(page.get_by_role("option")).to_have_count(2)
    page.keyboard.type("etc")
    expect(page.get_by_role("option")).to_have_count(0)
    page.locator("#composer textarea").fill("")
    page.keyboard.type("and/or /weather")
    expect(page.get_by_role("option")).to_have_count(0)


@pytest.mark.parametrize("panel_is_open", [False, True], ids=["panel closed", "panel open"])
def test_where_there_is_no_prompt_a_slash_offers_to_write_the_first(
    show: Show, stage: Stage, panel_is_open: bool
) -> None:
    stage.prompts = []
    page = show("steered")
    if panel_is_open:
        opened(page)
    page.locator("#composer textarea").focus()
    page.keyboard.type("/")
    options = page.locator("#p-mention [role=option]")
    expect(options).to_have_text("Write a prompt…Kept prompts appear here.")
    page.keyboard.type("etc")
    expect(options).to_have_count(0)
    page.locator("#composer textarea").fill("")
    page.keyboard.type("/")
    page.keyboard.press("Enter")
    expect(page.locator("#composer textarea")).to_have_value("")
    expect(page.locator(".p-steer form[data-id='']").get_by_role("textbox", name="Name")).to_be_focused()


def test_an_at_offers_the_documents_and_the_libraries_and_uses_the_library(show: Show, stage: Stage) -> None:
    page = show("steered")
    page.locator("#composer textarea").focus()
    page.keyboard.type("What says @ver")
    page.get_by_role("option", name="Verträge & <i>mehr</i>").click()
    expect(page.locator("#composer textarea")).to_have_value("What says @Verträge & <i>mehr</i> ")
    heard(stage, do="use", id="l2", on=True)
    page.keyboard.type("@ots")
    expect(page.get_by_role("option", name="otsl <i>tables.pdf")).to_be_visible()


def test_prompts_are_changed_added_and_deleted_in_the_panel(show: Show, stage: Stage) -> None:
    panel = opened(show("steered"))
    panel.get_by_text("/weather").click()
    form = panel.locator("form[data-id=q1]")
    assert form.locator("textarea").input_value() == "How is it in {{city}}?"
    form.locator("textarea").fill("Rain in {{city}}?")
    form.get_by_role("button", name="Save").click()
    heard(stage, do="prompt-save", id="q1", name="weather", text="Rain in {{city}}?")
    panel.get_by_text("New prompt…").click()
    form = panel.locator("form[data-id='']")
    form.get_by_role("textbox", name="Name").fill("tone")
    form.locator("textarea").fill("Kinder, please.")
    form.get_by_role("button", name="Save").click()
    heard(stage, do="prompt-save", id="", name="tone", text="Kinder, please.")


def test_a_prompt_that_was_deleted_can_be_had_back_as_it_was_kept(show: Show, stage: Stage) -> None:
    page = show("steered")
    panel = opened(page)
    panel.get_by_text("/weather").click()
    form = panel.locator("form[data-id=q1]")
    form.locator("textarea").fill("Something else")
    form.get_by_role("button", name="Delete").click()
    heard(stage, do="prompt-delete", id="q1")
    notice = page.locator(".p-undo.p-there:not(.p-bringing)")
    expect(notice).to_contain_text("Deleted the prompt /weather")
    notice.get_by_role("button", name="Undo").click()
    heard(stage, do="prompt-save", id="", name="weather", text="How is it in {{city}}?")


def test_an_agents_file_is_taken_in_as_a_persona(show: Show, stage: Stage) -> None:
    panel = opened(show("steered"))
    file: Any = {"name": "poet.yaml", "mimeType": "text/yaml", "buffer": b"name: Poet"}
    panel.locator(".p-import").set_input_files(file)
    heard(stage, do="persona-import", name="poet.yaml", text="name: Poet")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_panel_and_the_chips_have_no_fault_that_a_machine_can_find(show: Show, lang: str, scheme: str) -> None:
    page = show("steered", locale=lang, color_scheme=scheme)
    page.get_by_role("button", name=Words.named(lang)("steer.title"), exact=True).click()
    expect(page.locator("#page .p-steer")).to_be_visible()
    assert findings_everywhere(page) == []


@pytest.mark.parametrize(
    ("lang", "label", "note"), [("en", "Skills", "1 of 2 skills"), ("zh", "技能", "2 个技能中的 1 个")]
)
def test_each_skill_has_a_switch_of_its_own_below_that_of_all(lang: str, label: str, note: str) -> None:
    skills = tuple(Usable("skill", (f"skill:{name}",), 12, on) for name, on in (("letters", True), ("sums", False)))
    row = Usable("skills", ("use_skill",), 120, on=True, inner=skills)
    markup = html.unescape(steering_html(shown(rows=(row,)), Words(lang)))
    assert label in markup
    assert note in markup
    switches = re.findall(r'data-tools="([^"]+)"( data-whole)?', markup)
    assert switches == [("use_skill", " data-whole"), ("skill:letters", ""), ("skill:sums", "")]
    assert row.tokens_now == 12, "a skill that is off costs nothing"


def test_what_is_taken_back_leaves_the_keyboard_where_one_writes_until_one_goes_elsewhere(
    show: Show, stage: Stage
) -> None:
    page = show("steered")
    told = opened(page).locator(".p-told").first
    told.fill("Hello wor")
    page.locator("#toolbar .p-tap-persona").evaluate("chip => { chip.dataset.gone = 'It is gone.'; }")
    page.evaluate("document.body.append(document.createElement('i'))")  # a change, after which the page looks
    expect(page.get_by_text("It is gone.")).to_be_visible()
    page.keyboard.type("ld")
    stage.until(lambda: {"instructions": "Hello world"} in [one.get("change") for one in stage.asked])
    assert DRAWN not in stage.asked
    expect(told).to_be_focused()
    expect(told).to_have_value("Hello world")
    page.locator("#composer textarea").focus()
    stage.until(lambda: DRAWN in stage.asked)
