"""The links of a reader in the settings, and the question to whoever comes from a shared page to go on in a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.e2e.axe import findings_everywhere
from tests.e2e.chat_steps import wait_for_script
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]


def link(name: str, title: str, **more: Any) -> dict[str, Any]:
    base = {"id": "conv", "made": 1_764_000_000.0, "ends": 1_764_604_800.0, "path": f"/shared/{name}"}
    return {"share": name * 64, "title": title, "holds": "12 messages · 2 pages of documents · 412 kB", **base, **more}


LINKS = [link("a", "OTSL <b>table</b> speed"), link("b", "", ends=None), link("c", "旅行", path="", holds="")]


def listed(page: Page) -> None:
    page.locator("#history .p-open-settings").click()
    page.locator("#p-settings nav a[data-section=data]").click()
    expect(page.get_by_role("group", name="Shared links")).to_be_visible()


def test_all_links_are_listed_with_what_they_hold_and_when_they_end(show: Show, stage: Stage) -> None:
    stage.links = LINKS
    page = show("answered")
    listed(page)
    rows = page.locator("#p-settings [data-share]")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("OTSL <b>table</b> speed")
    expect(rows.nth(0)).to_contain_text("ends Dec 1, 2025 · 12 messages · 2 pages of documents · 412 kB")
    expect(rows.nth(1)).to_contain_text("Untitled")
    expect(rows.nth(1)).not_to_contain_text("ends")
    expect(rows.nth(2)).to_contain_text("its address was not kept")
    expect(rows.nth(2).get_by_role("button")).to_have_count(1)
    opened = rows.nth(0).get_by_role("link", name="Open: OTSL <b>table</b> speed")
    expect(opened).to_have_attribute("href", f"{stage.url}/shared/a")
    expect(opened).to_have_attribute("rel", "noopener")
    assert findings_everywhere(page, "#p-settings") == []


def test_with_the_keyboard_a_link_is_copied_and_revoked_and_the_next_row_has_it(show: Show, stage: Stage) -> None:
    stage.links = LINKS
    page = show("answered")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    asked: list[Any] = []

    def revoked(route: Route) -> None:
        asked.append(route.request.post_data_json)
        route.fulfill(json={"links": [one for one in LINKS if one["share"] not in {each["share"] for each in asked}]})

    page.route("**/shares/revoke", revoked)
    listed(page)
    page.get_by_role("link", name="Open: OTSL").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Copy link: OTSL")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#p-settings .p-told")).to_have_text("The address was copied.")
    assert page.evaluate("navigator.clipboard.readText()") == f"{stage.url}/shared/a"
    page.keyboard.press("Tab")
    for left in (2, 1, 0):
        page.keyboard.press("Enter")
        expect(page.locator("#p-settings [data-share]")).to_have_count(left)
        if left:
            expect(page.locator("#p-settings [data-share] .p-danger").first).to_be_focused()
    expect(page.locator("#p-settings .p-told")).to_have_text("Revoked: the link leads nowhere any more.")
    expect(page.get_by_role("heading", name="Shared links")).to_be_focused()
    expect(page.get_by_role("group", name="Shared links")).to_contain_text("There are none.")
    assert asked == [{"share": one["share"]} for one in LINKS]


def test_a_link_that_cannot_be_revoked_stays_and_it_is_said_why(show: Show, stage: Stage) -> None:
    stage.links = LINKS
    page = show("answered")
    page.route("**/shares/revoke", lambda route: route.fulfill(json={"failed": "This no longer exists."}))
    listed(page)
    page.get_by_role("button", name="Revoke: OTSL").click()
    expect(page.locator("#p-settings .p-told")).to_have_text("This no longer exists.")
    expect(page.locator("#p-settings [data-share]")).to_have_count(3)


def test_links_are_found_in_the_settings_by_their_titles(show: Show, stage: Stage) -> None:
    stage.links = LINKS
    page = show("answered")
    listed(page)
    page.locator("#p-settings .p-seek input").fill("otsl")
    expect(page.locator("#p-settings [data-share]:visible")).to_have_count(1)


# ---- going on in a copy


def arrived(page: Page, stage: Stage, held: Callable[[Route], None]) -> list[Any]:
    """Open the page as a shared one leads to it; returns what is asked for."""
    asked: list[Any] = []

    def answer(route: Route) -> None:
        asked.append((route.request.url.rpartition("/")[2], route.request.post_data_json))
        if asked[-1][0] == "held":
            held(route)
        else:
            route.fulfill(json={"open": "old"})

    page.route("**/shares/*", answer)
    page.goto(f"{stage.url}/?copy=tok-en", wait_until="domcontentloaded")
    return asked


HOLDS = ["2 messages, with what was thought and which tools were used", "names of files: a <b>.pdf"]


def test_who_comes_from_a_shared_page_is_asked_and_lands_in_the_copy(show: Show, stage: Stage) -> None:
    page = show("answered")
    told = {"title": "About <b>it</b>", "made": 1_764_000_000.0, "holds": HOLDS}
    asked = arrived(page, stage, lambda route: route.fulfill(json=told))
    dialog = page.get_by_role("dialog", name="Continue “About <b>it</b>”")
    expect(dialog.get_by_role("list", name="It holds")).to_contain_text("names of files: a <b>.pdf")
    assert "copy" not in page.url
    yes = dialog.get_by_role("button", name="Continue as a copy")
    expect(yes).to_be_focused()
    assert findings_everywhere(page, "dialog.p-share") == []
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert asked == [("held", {"link": "tok-en"}), ("copy", {"link": "tok-en"})]
    stage.until(lambda: {"do": "open", "id": "old"} in stage.asked)


def test_escape_copies_nothing_and_a_reload_does_not_ask_again(show: Show, stage: Stage) -> None:
    page = show("answered")
    asked = arrived(page, stage, lambda route: route.fulfill(json={"title": "", "made": 1.0, "holds": HOLDS}))
    dialog = page.get_by_role("dialog", name="Continue “Untitled”")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.reload(wait_until="domcontentloaded")
    expect(page.locator("#composer textarea")).to_be_visible()
    wait_for_script(page)
    expect(dialog).to_have_count(0)
    assert asked == [("held", {"link": "tok-en"})]


def test_a_link_that_leads_nowhere_says_so_and_gives_nothing_to_press(show: Show, stage: Stage) -> None:
    page = show("answered")
    gone = {"failed": "This link leads nowhere any more."}
    asked = arrived(page, stage, lambda route: route.fulfill(json=gone))
    dialog = page.get_by_role("dialog", name="Continue as a copy")
    expect(dialog.get_by_role("status")).to_have_text("This link leads nowhere any more.")
    expect(dialog.get_by_role("button", name="Continue as a copy")).to_be_disabled()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert asked == [("held", {"link": "tok-en"})]
