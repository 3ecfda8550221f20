"""The dialog that shares a conversation: what a link would hold, the link once, and the links that can be revoked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.axe import findings_everywhere
from tests.e2e.chat_steps import until

Show = Callable[..., Page]
MADE = {"share": "ab" * 32, "made": 1_764_000_000.0, "ends": 1_764_604_800.0}
HOLDS = ["12 messages, with what was thought and which tools were used in them", "names of files: a <b>.pdf"]


def opened(page: Page, asked: list[tuple[str, Any]] | None = None) -> Locator:
    """The dialog of the first conversation; what it asks for goes into `asked`."""

    def answer(route: Route) -> None:
        act = route.request.url.rpartition("/")[2]
        (asked if asked is not None else []).append((act, route.request.post_data_json))
        links = [] if act == "revoke" else [MADE]
        route.fulfill(json={"links": links, "holds": HOLDS, "path": "/shared/" + "t" * 43})

    page.route("**/shares/*", answer)
    page.locator("#history .p-menu[data-id=conv]").click(force=True)
    page.get_by_role("menuitem", name="Share…").click()
    dialog = page.get_by_role("dialog", name="Share “About <b>it</b>”")
    expect(dialog.get_by_text("names of files: a <b>.pdf")).to_be_visible()
    return dialog


def test_it_says_what_a_link_would_hold_and_shows_the_link_once(show: Show) -> None:
    page, asked = show("answered"), list[tuple[str, Any]]()
    dialog = opened(page, asked)
    expect(dialog.get_by_role("link", name="See it first")).to_have_attribute("href", "./shares/preview?id=conv")
    expect(dialog.get_by_text("Only this computer can open it")).to_be_visible()
    dialog.get_by_role("combobox", name="The link ends").select_option("after a day")
    dialog.get_by_role("button", name="Make a link").click()
    link = dialog.get_by_role("textbox", name="Link")
    expect(link).to_be_focused()
    assert link.input_value().endswith("/shared/" + "t" * 43)
    assert asked == [("look", {"id": "conv"}), ("make", {"id": "conv", "lasts": "day"})]
    assert findings_everywhere(page, "dialog.p-share") == []


def test_no_link_is_made_before_it_says_what_that_would_hold(show: Show) -> None:
    page, held, asked = show("answered"), list[Route](), list[str]()

    def answer(route: Route) -> None:
        asked.append(route.request.url.rpartition("/")[2])
        held.append(route)

    page.route("**/shares/*", answer)
    page.locator("#history .p-menu[data-id=conv]").click(force=True)
    page.get_by_role("menuitem", name="Share…").click()
    dialog = page.get_by_role("dialog")
    make, lasts = dialog.get_by_role("button", name="Make a link"), dialog.get_by_role("combobox")
    expect(make).to_be_disabled()
    until(lambda: held)
    lasts.press("Enter")
    held[0].fulfill(json={"links": [], "holds": HOLDS})
    expect(make).to_be_enabled()
    make.click()
    until(lambda: asked == ["look", "make"])
    held[1].fulfill(json={"links": [MADE], "holds": HOLDS, "path": "/shared/" + "t" * 43})
    expect(dialog.get_by_role("textbox", name="Link")).to_be_focused()


def test_a_link_is_revoked_and_escape_leads_back_to_the_row(show: Show) -> None:
    page, asked = show("answered"), list[tuple[str, Any]]()
    dialog = opened(page, asked)
    dialog.get_by_role("button", name="Revoke").click()
    expect(dialog.get_by_role("button", name="Revoke")).to_have_count(0)
    assert asked[-1] == ("revoke", {"id": "conv", "share": MADE["share"]})
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator("#history .p-menu[data-id=conv]")).to_be_focused()


def test_what_fails_is_said_in_the_dialog_and_it_stays(show: Show) -> None:
    page = show("answered")
    dialog = opened(page)
    page.unroute("**/shares/*")
    page.route(
        "**/shares/*", lambda route: route.fulfill(json={"failed": "There are too many shared links.", "links": []})
    )
    dialog.get_by_role("button", name="Make a link").click()
    expect(dialog.get_by_text("There are too many shared links.")).to_be_visible()
    expect(dialog.get_by_role("textbox", name="Link")).to_have_count(0)
