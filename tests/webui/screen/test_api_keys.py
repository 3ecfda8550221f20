"""Keys for programs in the settings: listed with what they may do and used, made, shown once, and revoked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.e2e.axe import findings_everywhere
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]

KEY = "pk-parlour-" + "7Qm2hT9x04VdLw8eZc51nR6a" + "A" * 19


def row(name: str, **more: Any) -> dict[str, Any]:
    base = {"shown": "pk-…nR6a", "may": "may ask; any model", "month": "$1.27 of $10.00 this month", "requests": 4}
    return (
        {"id": name, "name": name, "made": 1_764_000_000.0, "used": None, "ends": None, "revoked": None} | base | more
    )


KEYS = [row("weekly <b>report</b>"), row("editor", used=1_764_000_000.0), row("old laptop", revoked=1_764_000_000.0)]


def test_a_key_is_made_shown_once_and_revoked(show: Show, stage: Stage) -> None:
    stage.keys = KEYS[1:]
    page = show("answered")
    asked: list[Any] = []

    def answer(route: Route) -> None:
        asked.append((route.request.url.rpartition("/")[2], route.request.post_data_json))
        made = {"key": KEY, "name": KEYS[0]["name"], "keys": KEYS}
        route.fulfill(json=made if asked[-1][0] == "make" else {"keys": KEYS[1:], "said": "Revoked."})

    page.route("**/keys/*", answer)
    page.locator("#history .p-open-settings").click()
    page.locator("#p-settings nav a[data-section=programs]").click()
    rows = page.locator("#p-settings .p-key-row")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("may ask; any model · $1.27 of $10.00 this month")
    expect(rows.nth(1)).to_contain_text("revoked Nov 24, 2025")
    expect(rows.nth(1).get_by_role("button")).to_have_count(0)
    page.get_by_role("button", name="New key…").press("Enter")
    dialog = page.get_by_role("dialog", name="New key", exact=True)
    expect(dialog.get_by_label("Name")).to_be_focused()
    dialog.get_by_label("Name").fill("weekly <b>report</b>")
    dialog.get_by_label("keep files").check()
    dialog.get_by_role("textbox", name="Models and agents").fill("parlour, persona:x")
    dialog.get_by_label("Most US dollars").fill("2")
    dialog.get_by_label("It ends").select_option(label="after 30 days")
    assert findings_everywhere(page, "dialog.p-dialog") == []
    dialog.get_by_role("button", name="Make the key").click()
    once = page.get_by_role("group", name="New key")
    expect(once.get_by_label("The key")).to_have_value(KEY)
    expect(once).to_contain_text("weekly <b>report</b> created. The key is shown only this once.")
    assert findings_everywhere(page, "#p-settings") == []
    body = {"name": "weekly <b>report</b>", "scopes": ["chat", "files"], "budget": "2", "days": "30"}
    assert asked == [("make", {**body, "models": ["parlour", "persona:x"]})]
    rows.nth(0).get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(rows).to_have_count(2)
    assert asked[1:] == [("revoke", {"id": KEYS[0]["id"]})]


def test_what_is_wrong_stands_at_its_field_in_the_dialog_and_goes_when_the_key_is_made(
    show: Show, stage: Stage
) -> None:
    page = show("answered")
    answers = [
        {"failed": "The key needs a name. Type one.", "field": "name"},
        {"failed": "The database is busy.", "field": ""},
        {"key": KEY, "name": "editor", "keys": KEYS},
    ]
    page.route("**/keys/make", lambda route: route.fulfill(json=answers.pop(0)))
    page.locator("#history .p-open-settings").click()
    page.locator("#p-settings nav a[data-section=programs]").click()
    page.get_by_role("button", name="New key…").click()
    dialog = page.get_by_role("dialog", name="New key", exact=True)
    expect(dialog.get_by_role("heading", name="New key")).to_be_visible()
    dialog.get_by_label("keep files").check()
    dialog.get_by_role("button", name="Make the key").click()
    name, wrong = dialog.get_by_label("Name"), dialog.get_by_role("alert")
    expect(wrong).to_have_text("The key needs a name. Type one.")
    expect(name).to_be_focused()
    expect(name).to_have_attribute("aria-invalid", "true")
    above, below = name.bounding_box(), wrong.bounding_box()
    assert above
    assert below
    assert 0 <= below["y"] - above["y"] - above["height"] < 12
    assert findings_everywhere(page, "dialog.p-dialog") == []
    expect(dialog.get_by_label("keep files")).to_be_checked()
    name.fill("editor")
    dialog.get_by_role("button", name="Make the key").click()
    expect(wrong).to_have_text("The database is busy.")
    expect(name).not_to_have_attribute("aria-invalid", "true")
    expect(name).to_have_value("editor")
    dialog.get_by_role("button", name="Make the key").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("group", name="New key").get_by_label("The key")).to_have_value(KEY)
    expect(page.get_by_text("The database is busy.")).to_have_count(0)
