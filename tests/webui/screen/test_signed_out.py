"""Whoever is signed out while the page is open reads so, and is led to sign in and back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

SAID = {
    "en-US": "You are signed out. Sign in, and you are back in this conversation.",
    "zh-CN": "你已退出登录。登录后会回到这个对话。",
}


@pytest.mark.parametrize("locale", [*SAID])
def test_a_page_that_is_refused_says_that_its_reader_is_signed_out_and_leads_back_to_the_conversation(
    show: Callable[..., Page], locale: str
) -> None:
    page = show("answered", width=390, height=844, locale=locale, provokes=["401 (Unauthorized)"])
    page.route("**/standing*", lambda route: route.fulfill(status=401, json={"failed": "Sign in."}))
    page.route("**/?c=conv", lambda route: route.fulfill(body="<p>the page of sign-in</p>", content_type="text/html"))
    page.locator("#status [data-state]").evaluate("one => { one.dataset.role = 'member'; }")
    page.evaluate("document.body.append(document.createElement('i'))")  # a change, after which the page looks
    dialog = page.get_by_role("dialog", name=SAID[locale])
    expect(dialog).to_be_visible()
    button = dialog.get_by_role("button")
    expect(button).to_be_focused()
    button.click()
    expect(page.get_by_text("the page of sign-in")).to_be_visible()
