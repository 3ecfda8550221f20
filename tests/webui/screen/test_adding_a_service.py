"""What is wrong with the key of a new service is said at the field that it is about, with the buttons in sight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route, expect

from webui.words import Words

RULES: dict[str, Any] = {name: [] for name in ("allow", "ask", "deny", "chosen", "allowed")}
STATE: dict[str, Any] = {
    **{name: [] for name in ("tools", "notes", "servers", "lent")},
    **dict.fromkeys(("only_local", "small", "own"), ""),
    "local": True,
    "accounts": {},
    "opened": None,
    "shares": False,
    "approval": {**RULES, "hints": {name: [] for name in RULES}},
    "access": {"path": "/mcp", "made": 0},
}
WAYS = [{"kind": "header", "name": "X-Key", "token_url": "", "scopes": []}]


def test_a_key_that_is_missing_is_asked_for_at_its_own_field_with_the_buttons_in_sight(
    show: Callable[..., Page],
) -> None:
    def refuse(route: Route) -> None:
        said = Words("en").error({"key": "openapi_key_empty"})
        route.fulfill(json={"failed": said, "key": "openapi_key_empty"})

    page = show("answered", width=390, height=844)
    page.route("**/tools/state*", lambda route: route.fulfill(json=STATE))
    page.route("**/tools/services/state", lambda route: route.fulfill(json={"services": []}))
    draft = {"title": "Shop", "address": "https://shop.example", "ways": WAYS}
    page.route("**/tools/services/read", lambda route: route.fulfill(json={"draft": draft, "services": []}))
    page.route("**/tools/services/test", refuse)
    page.locator("#top .p-open-menu").click()
    page.locator("#history .p-open-tools").click()
    page.locator(".p-tools [data-part=services]").click()
    source = page.locator("#p-services-source")
    source.fill("https://shop.example/openapi.json")
    source.press("Tab")
    value = page.locator("#p-services-value")
    expect(value).to_be_visible()
    test = page.locator(".p-tools form").filter(has=source).get_by_role("button", name="Test")
    test.click()
    told = page.locator("#p-services-value-wrong")
    expect(told).to_have_text("The key is missing. Enter it; where the service asks for none, choose “no key”.")
    expect(value).to_be_focused()
    expect(value).to_have_attribute("aria-invalid", "true")
    expect(value).to_be_in_viewport(ratio=1)
    expect(test).to_be_in_viewport(ratio=0.95)  # but for a part of a pixel
    value.fill("k")
    expect(told).to_be_hidden()
