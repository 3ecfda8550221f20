"""Axe finds nothing to mend on the page: no screen, no dialog, in neither theme, at neither width."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.axe import DESK, PHONE, findings, findings_everywhere, findings_in_both_themes
from tests.e2e.chat_steps import focus
from tests.webui.screen.evidence_scenes import EVIDENCE, SHOWN
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]


def unfold(page: Page) -> None:
    """Open every bubble."""
    titles = page.locator("#chat .title[aria-expanded=false]")
    expect(titles).not_to_have_count(0)
    page.evaluate("document.querySelectorAll('#chat .title:not(.expanded)').forEach((title) => title.click())")
    expect(page.locator("#chat .children .title").first).to_be_attached()
    page.evaluate("document.querySelectorAll('#chat .children .title:not(.expanded)').forEach((one) => one.click())")
    expect(titles).to_have_count(0)


def test_of_the_empty_room(show: Show) -> None:
    assert findings_everywhere(show()) == []


def test_of_a_conversation_with_tools_signs_tables_errors_and_a_question_before_a_tool_acts(show: Show) -> None:
    page = show("everything")
    unfold(page)
    expect(page.locator("#ask .p-asks")).to_be_visible()
    expect(page.locator("#chat .p-error")).to_be_visible()
    assert findings_everywhere(page) == []


def test_of_a_form_of_a_server(show: Show) -> None:
    page = show("asking_form")
    expect(page.locator("#ask .p-form")).to_be_visible()
    assert findings_everywhere(page, "#ask") == []


def test_of_the_evidence_and_of_the_drawer(show: Show) -> None:
    page = show("answered", locale="zh-CN")
    page.locator("#chat sup > a.cite").first.click()
    expect(page.locator("#page .p-hl.p-on")).to_be_visible()
    assert findings_in_both_themes(page, "#evidence") == []
    page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
    assert findings_in_both_themes(page, "#evidence") == []
    page.locator("#page .p-close").click()
    page.locator("#top .p-open-menu").click()
    expect(page.locator("html")).to_have_attribute("data-drawer", "open")
    assert findings(page) == []
    assert findings_in_both_themes(page, "#side") == []


# In the gate a grid and what comes from the web; slides and the two kinds of text have the same card.
@pytest.mark.parametrize(
    "kind", [kind if kind in {"sheet", "web"} else pytest.param(kind, marks=pytest.mark.slow) for kind in EVIDENCE]
)
def test_of_the_evidence_of_slides_sheets_texts_and_of_the_web(show: Show, stage: Stage, kind: str) -> None:
    stage.evidence = EVIDENCE[kind]
    page = show("answered")
    page.locator("#chat sup > a.cite").first.click()
    expect(page.locator("#page .p-evidence")).to_be_visible()
    expect(page.locator(f"#page {SHOWN[kind]}").first).to_be_visible()
    assert findings_everywhere(page, "#evidence") == []


@pytest.mark.parametrize("size", [pytest.param(DESK, marks=pytest.mark.slow), PHONE], ids=["wide", "narrow"])
def test_of_menus_and_small_questions(show: Show, size: dict[str, int]) -> None:
    page = show("answered", **size)
    row = page.locator("#history a[data-open=conv]")
    page.locator(".p-ready button").click()
    expect(page.locator(".p-choose")).to_be_visible()
    assert findings_in_both_themes(page, "") == []
    page.keyboard.press("Escape")
    for item, what in (("", "[role=menu]"), ("Export…", "[role=menu]"), ("Rename", "dialog"), ("Delete", "dialog")):
        if size == PHONE and page.locator("html").get_attribute("data-drawer") != "open":
            page.locator("#top .p-open-menu").click()
        focus(row)
        page.keyboard.press("ArrowRight")
        if item:
            page.get_by_role("menuitem", name=item).click()
        expect(page.locator(what)).to_be_visible()
        assert findings_in_both_themes(page, "" if item == "Export…" else what) == []
        page.keyboard.press("Escape")
        expect(page.locator(what)).to_have_count(0)


def test_of_a_question_that_is_changed_and_of_the_keys(show: Show) -> None:
    page = show("answered")
    page.locator("#chat .user-row").first.hover()
    page.locator("#chat .p-edit").first.click()
    expect(page.locator("#chat .p-editing")).to_be_visible()
    assert findings_everywhere(page, "#chat .p-editing") == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+/")
    expect(page.locator("dialog.p-keys")).to_be_visible()
    assert findings_everywhere(page, "dialog") == []


def test_of_several_agents_and_of_calls_within_calls(show: Show) -> None:
    page = show("group")
    page.locator("#composer textarea").press_sequentially("@")
    expect(page.locator("#p-mention [role=option]")).to_have_count(4)
    assert findings_everywhere(page) == []
    page = show("nested_done")
    closed = page.locator("#chat .title[aria-expanded=false]")
    expect(closed).not_to_have_count(0)
    while closed.count():  # a bubble that opens shows those within it
        closed.first.dispatch_event("click")
    assert findings_everywhere(page, "#chat") == []


def follow(page: Page, act: str) -> None:
    """Click a link as replies have them."""
    page.evaluate(
        """(act) => { const link = document.createElement('a');
        link.href = `#do-${act}`;
        link.className = 'p-do';
        (document.querySelector('#chat .thought-group:has(.p-tool)') ?? document.querySelector('#chat')).append(link);
        link.click();
        link.remove(); }""",
        act,
    )


def test_of_a_call_that_is_seen_whole_and_of_one_that_runs_again(show: Show) -> None:
    page = show("traced")
    given = {"name": "storage", "fields": [{"name": "value", "text": "a\nb", "kind": "string"}]}
    page.route("**/calls/text?*", lambda route: route.fulfill(body="all of it\n" * 200))
    page.route("**/calls/given?*", lambda route: route.fulfill(json=given))
    for act, shown in (("whole-m.c.result", "pre:has-text('all of it')"), ("rerun-m.c", "textarea")):
        follow(page, act)
        expect(page.locator(f"dialog.p-call {shown}")).to_be_visible()
        assert findings_everywhere(page, "dialog") == []
        page.keyboard.press("Escape")
        expect(page.locator("dialog.p-call")).to_have_count(0)


def test_of_the_question_for_a_password(show: Show) -> None:
    page = show("answered")
    follow(page, "unlock-d1")
    dialog = page.locator("dialog.p-unlock")
    dialog.get_by_role("button", name="Open").click()
    expect(dialog.get_by_role("status")).not_to_be_empty()
    assert findings_everywhere(page, "dialog") == []
