"""The text of a reply is changed where it stands, and given up without a trace."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.webui.screen.stage import Stage

Show = Callable[..., Page]
TEXT = "It **is** a bridge. [1]\n\n- one\n- two"


def rewriting(page: Page, text: str = TEXT, *, fails: bool = False) -> Locator:
    """The field that a reply's text becomes."""
    body = {"text": text} if not fails else {"failed": "There is no such reply."}
    page.route("**/conversations/conv/answers/*", lambda route: route.fulfill(json=body))
    page.locator("#chat a.p-rewrite").first.click(force=True)
    return page.locator("#chat .p-editing textarea")


def test_the_text_stands_in_place_of_the_reply_and_ctrl_enter_keeps_it(show: Show, stage: Stage) -> None:
    page = show("answered")
    stage.asked.clear()
    field = rewriting(page)
    expect(field).to_be_focused()
    expect(field).to_have_value(TEXT)
    expect(page.get_by_text("Becomes version 2.")).to_be_visible()
    expect(page.locator("#chat .p-rewritten").first).to_be_hidden()
    field.fill("It is a tower.\n")
    field.press("Control+Enter")
    stage.until(lambda: any(one.get("do") == "rewrite" and one["text"] == "It is a tower.\n" for one in stage.asked))
    expect(field).not_to_be_editable()


def test_escape_leaves_the_reply_as_it_was(show: Show, stage: Stage) -> None:
    page = show("answered")
    stage.asked.clear()
    field = rewriting(page)
    field.fill("Something else.")
    field.press("Escape")
    expect(page.locator("#chat .p-editing")).to_have_count(0)
    expect(page.locator("#chat .p-rewritten")).to_have_count(0)
    expect(page.locator("#chat a.p-rewrite").first).to_be_focused()
    assert not [one for one in stage.asked if one["do"] == "rewrite"]


def test_what_is_half_written_outlives_a_reload_until_it_is_given_up(show: Show, stage: Stage) -> None:
    page = show("answered")
    field = rewriting(page)
    field.fill("It is a to")
    page.goto(f"{stage.url}/?scene=answered", wait_until="domcontentloaded")
    expect(field).to_have_value("It is a to")
    expect(page.locator("#chat .p-rewritten").first).to_be_hidden()
    field.press("Escape")
    page.goto(f"{stage.url}/?scene=answered", wait_until="domcontentloaded")
    expect(page.locator("#chat a.p-rewrite").first).to_be_attached()
    page.evaluate("new Promise((done) => setTimeout(() => requestAnimationFrame(done), 0))")
    expect(field).to_have_count(0)


def test_a_reply_that_cannot_be_read_is_said_to_be_and_no_field_opens(show: Show) -> None:
    page = show("answered")
    rewriting(page, fails=True)
    expect(page.get_by_text("The reply could not be read.")).to_be_visible()
    expect(page.locator("#chat .p-editing")).to_have_count(0)
