"""What was always allowed in a chat, taken back by keyboard and by touch."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.chat_steps import focus

STATE: dict[str, Any] = {
    **dict.fromkeys(("only_local", "small"), ""),
    **{name: [] for name in ("tools", "notes", "servers", "services", "lent")},
    "local": True,
    "accounts": {},
    "opened": None,
    "access": {"path": "/mcp", "made": 0},
}
RULES: dict[str, Any] = {
    "mode": "writes",
    "allow": [],
    "ask": [],
    "deny": [],
    "hints": {"allow": [], "ask": [], "deny": []},
}
BOTH = [
    {"id": "storage", "label": "Notes"},
    {"id": "mcp:a-server-with-quite-a-long-name:write_a_file_that_is_long", "label": "write_a_file_that_is_long"},
]


@pytest.mark.parametrize(("locale", "width"), [("en-US", 1280), ("zh-CN", 390)])
def test_what_is_always_allowed_is_taken_back(show: Callable[..., Page], locale: str, width: int) -> None:
    left = list(BOTH)
    asked: list[dict[str, Any]] = []

    def answer(route: Route) -> None:
        if route.request.method == "POST":
            asked.append(json.loads(route.request.post_data or "{}"))
            left[:] = [one for one in left if one["id"] != asked[-1]["tool"]]
        route.fulfill(json={**STATE, "approval": {**RULES, "allowed": left}})

    page = show("answered", locale=locale, width=width, height=800)
    page.route("**/tools/*", answer)
    if width < 600:
        page.locator("#top .p-open-menu").click()
    page.locator("#history .p-open-tools").click()
    if width < 600:
        page.locator(".p-tools [data-part=asking]").click()
    rows = page.locator(".p-allowed li")
    expect(rows).to_have_count(2)
    sheet = page.locator(".p-tools .p-one")
    assert sheet.evaluate("one => one.scrollWidth <= one.clientWidth")
    first = rows.first.get_by_role("button")
    assert first.evaluate("one => one.getBoundingClientRect().height") >= (44 if width < 600 else 32)
    focus(first)
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    expect(rows.first.get_by_role("button")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".p-allowed")).to_be_hidden()
    expect(page.locator(".p-tools section:not([hidden]) h3")).to_be_focused()
    assert [one["tool"] for one in asked] == [one["id"] for one in BOTH]
    assert asked[0]["conversation"]
