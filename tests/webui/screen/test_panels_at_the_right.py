"""One panel at a time stands at the right: closing it brings back the one before, where it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.webui.screen.stage import Stage
from tests.webui.screen.test_inspector import ANSWER, TITLE, opened, traced
from webui.panels.inspector import inspector_html

Show = Callable[..., Page]
A_DOZEN = 7  # times the size of its letters: about so wide are twelve Latin letters
SCROLLED = "element => [...document.querySelectorAll('#page .p-desk')].map(desk => Math.round(desk.scrollTop))[0] ?? -1"


def cite(page: Page) -> None:
    page.locator("#chat sup > a.cite").first.click()
    expect(page.locator("#page .p-hl.p-on")).to_be_visible()


def steer(page: Page) -> None:
    page.locator("#top .p-open-steer").click()
    expect(page.locator("#page .p-steer")).to_be_visible()


@pytest.mark.parametrize("by", ["cross", "key", "button"])
def test_the_evidence_is_back_where_it_was_when_what_stood_over_it_is_closed(show: Show, stage: Stage, by: str) -> None:
    page = show("answered", height=520)
    cite(page)
    page.locator("#page .p-desk").hover()
    page.mouse.wheel(0, 70)
    page.wait_for_function(f"({SCROLLED})() > 40")
    at = page.evaluate(SCROLLED)
    steer(page)
    acts: dict[str, Callable[[], None]] = {
        "cross": page.locator("#page .p-steer .p-close").click,
        "key": lambda: page.keyboard.press("Escape"),
        "button": page.locator("#top .p-open-steer").click,
    }
    acts[by]()
    expect(page.locator("#page .p-hl.p-on")).to_be_visible()
    page.wait_for_function(f"({SCROLLED})() === {at}")
    expect(page.locator("#top .p-open-steer")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#page .p-evidence")).to_have_count(0)
    expect(page.locator("#evidence")).to_be_hidden()
    assert [one["do"] for one in stage.asked] == ["cite", "steering", "close", "close"]


def test_what_opens_the_panel_stands_at_the_edge_for_guests_too_who_have_no_key_beside_it(show: Show) -> None:
    page = show("answered", width=1280)
    button = page.locator("#top .p-open-steer")
    before = button.bounding_box()
    page.locator("#top .p-open-models").evaluate("key => key.remove()")
    assert button.bounding_box() == before


def test_the_keyboard_goes_to_the_field_where_what_opened_the_panel_is_gone(show: Show) -> None:
    page = show("answered")
    cite(page)
    page.locator("#chat sup > a.cite").evaluate_all("links => links.forEach(link => link.remove())")
    page.locator("#page .p-close").click()
    expect(page.locator("#page .p-evidence")).to_have_count(0)
    expect(page.locator("#composer textarea")).to_be_focused()


def test_three_panels_are_closed_one_after_another(show: Show, stage: Stage) -> None:
    page = show("answered")
    cite(page)
    steer(page)
    stage.evidence = lambda words: inspector_html("r-1", [ANSWER, TITLE], words)
    page.locator("#chat a.p-inspect").last.click()
    expect(page.locator("#page .p-inspect")).to_be_visible()
    for left in (".p-steer", ".p-hl.p-on"):
        page.locator("#page .p-close").click()
        expect(page.locator(f"#page {left}").first).to_be_visible()
    page.locator("#page .p-close").click()
    expect(page.locator("#page .p-evidence")).to_have_count(0)


def test_what_ran_when_unfolds_by_keyboard_and_stays_so_while_calls_are_opened(show: Show, stage: Stage) -> None:
    page = show("answered")
    stage.evidence = lambda words: inspector_html("r-1", [ANSWER, TITLE], words, trace=[traced()])
    page.locator("#chat a.p-inspect").last.click()
    inner = page.locator("#page .p-trace .p-span").last
    expect(inner).to_be_hidden()
    page.locator("#page .p-trace > summary").focus()
    page.keyboard.press("Enter")
    expect(inner).to_be_visible()
    stage.evidence = lambda words: inspector_html("r-1", [ANSWER, TITLE], words, trace=[traced()], opened=opened())
    page.locator("#page .p-calls li > button").first.click()
    expect(page.locator("#page .p-calls .p-opened")).to_be_visible()
    expect(inner).to_be_visible()


def test_a_reply_is_stopped_before_a_panel_that_nobody_is_in_is_closed(show: Show, stage: Stage) -> None:
    page = show("running")
    steer(page)
    page.locator("#composer textarea").focus()
    page.keyboard.press("Escape")
    stage.until(lambda: stage.stops)
    expect(page.locator("#page .p-steer")).to_be_visible()
    page.locator("#page .p-steer .p-close").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#page .p-steer")).to_have_count(0)
    assert stage.stops == 1


@pytest.mark.parametrize("is_known", [True, False], ids=["", "before the page knows its state"])
def test_a_reply_that_has_not_begun_is_stopped_as_soon_as_it_is_there(
    show: Show, stage: Stage, *, is_known: bool
) -> None:
    page = show("answered")
    steer(page)
    if not is_known:
        page.evaluate("delete document.querySelector('#status [data-state]').dataset.lang")
    begins = """() => {
        const status = document.querySelector('#status [data-state]');
        status.dataset.lang = 'en';
        status.dataset.state = 'running';
        status.append('');
    }"""
    page.locator("#composer textarea").fill("And now?")
    page.locator("#composer textarea").press("Enter")
    page.locator("#composer textarea").press("Escape")
    stage.until(lambda: stage.sent)
    expect(page.locator("#page .p-steer")).to_be_visible()
    assert stage.stops == 0
    page.evaluate(begins)
    stage.until(lambda: stage.stops)
    page.evaluate(begins)
    assert stage.stops == 1


def test_on_a_phone_the_sheet_before_comes_up_again_only_where_it_was_up(show: Show) -> None:
    page = show("answered", width=390, height=780)
    evidence, sheet = page.locator("#page .p-hl.p-on"), page.locator("#evidence")
    cite(page)
    page.keyboard.press("Escape")
    expect(sheet).not_to_be_in_viewport()
    page.locator("#top .p-open-steer").click()
    expect(page.locator("#page .p-steer .p-close")).to_be_focused()
    page.locator("#page .p-close").click()
    expect(sheet).not_to_be_in_viewport()
    expect(evidence).to_be_attached()  # behind, for whoever takes it up again
    page.locator("#top .p-open-evidence").click()
    expect(evidence).to_be_in_viewport()


@pytest.mark.parametrize("lang", ["en-US", "zh-CN"])
def test_beside_a_panel_a_dozen_letters_of_the_title_stay_and_the_libraries_are_a_number(show: Show, lang: str) -> None:
    page = show("long-line", width=1280, locale=lang)
    chip, title = page.locator("#top .p-uses"), page.locator("#top .p-title")
    expect(chip).to_have_text("Household papers1")
    expect(chip.locator(".p-name")).to_be_visible()
    steer(page)
    expect(chip.locator(".p-name")).to_be_hidden()
    expect(chip.locator(".p-many")).to_be_visible()
    measured = "title => title.getBoundingClientRect().width / parseFloat(getComputedStyle(title).fontSize)"
    assert title.evaluate(measured) > A_DOZEN
    for name in ("choose", "libraries"):
        button = page.locator(f"#top [data-do='{name}']").first
        assert button.evaluate("one => one.scrollWidth <= one.clientWidth + 1")


@pytest.mark.parametrize("lang", ["en-US", "zh-CN"])
def test_on_a_phone_nothing_lies_over_the_middle_of_the_models_button(show: Show, lang: str) -> None:
    for scene in ("long-line", "starting"):
        page = show(scene, width=390, height=780, locale=lang)
        button = page.locator("#top [data-do='choose']")
        assert button.evaluate(
            """one => { const box = one.getBoundingClientRect();
            return one.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)); }"""
        )
        button.click()
        expect(page.locator(".p-choose [role='menu']")).to_be_in_viewport()
