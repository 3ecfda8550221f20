"""Axe finds nothing to mend in the dialogs that speak with the server, nor on the pages before Parlour's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.axe import findings, findings_everywhere
from tests.e2e.chat_steps import focus

SAMPLES = Path(__file__).resolve().parents[2] / "assets" / "samples"


def test_of_the_dialogs_about_models_tools_and_libraries(page: Page) -> None:
    page.locator("#top .p-open-models").click()
    expect(page.locator("dialog.p-models select option").first).to_be_attached()
    assert findings_everywhere(page, "dialog") == []
    page.keyboard.press("Escape")
    page.locator("#history .p-open-tools").click()
    dialog = page.get_by_role("dialog", name="Tools")
    for part in dialog.locator("[data-part], .p-add").all():
        part.click()
        expect(part).to_have_attribute("aria-current", "true")
        assert findings(page, "dialog") == []
    assert findings_everywhere(page, "dialog") == []
    page.keyboard.press("Escape")
    focus(page.get_by_role("button", name="Libraries"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Libraries")
    expect(dialog.get_by_role("status").last).to_be_empty()  # it has been told what there is
    assert findings_everywhere(page, "dialog") == []
    dialog.get_by_label("New library").fill("Policies")
    dialog.get_by_label("New library").press("Enter")
    expect(dialog.get_by_role("button", name="Add files")).to_be_focused()
    dialog.locator("input[type=file]").set_input_files(SAMPLES / "policy.pdf")
    expect(dialog.locator(".p-docs li[data-state=ready]")).to_have_count(1)
    dialog.get_by_label("Try a question").fill("How soon must damage be reported?")
    dialog.get_by_label("Try a question").press("Enter")
    expect(dialog.locator(".p-found li").first).to_be_visible()
    assert findings_everywhere(page, "dialog") == []
    dialog.get_by_role("button", name="Delete library").click()  # other tests begin without one
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog.locator(".p-shelf-list li button", has_text="Policies")).to_have_count(0)


def test_of_files_that_were_taken_and_refused(page: Page) -> None:
    files = [
        {"name": name, "mimeType": "application/zip", "buffer": b"PK\x03\x04" + bytes(200)}
        for name in ("a.zip", "b.exe")
    ]
    page.locator("#composer input[type=file]").first.set_input_files(files)  # pyright: ignore[reportArgumentType]
    expect(page.locator("#talk .p-left-out")).to_be_visible()
    page.locator("#composer input[type=file]").first.set_input_files(SAMPLES / "notes.md")
    expect(page.locator("#composer .p-chip .p-name")).to_be_visible()
    assert findings_everywhere(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_of_the_pages_before_parlours_own(server: AppProcess, browser: Browser, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, locale="en-US", base_url=server.url)  # pyright: ignore[reportArgumentType]
    page = context.new_page()
    page.goto("/")
    assert findings(page) == []
    page.get_by_label("Token").fill("not the one")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert findings(page) == []
    context.close()


def test_of_the_pages_for_a_cookie_that_cannot_be_read_and_for_a_browser_too_many(
    start_app: Callable[..., AppProcess], browser: Browser
) -> None:
    app = start_app(OWNERS="cookie", NEW_OWNERS_PER_MINUTE="2")  # the first is who waited until it was ready
    with browser.new_context(locale="en-US") as first:
        first.new_page().goto(app.at("/"))
        [cookie] = [one for one in first.cookies() if "token" not in one.get("name", "")]
    statuses: list[int] = []
    for cookies in ([{"name": cookie.get("name"), "value": "damaged", "url": app.url}], []):
        for scheme in ("light", "dark"):
            with browser.new_context(color_scheme=scheme, locale="en-US") as context:  # pyright: ignore[reportArgumentType]
                context.add_cookies(cookies)  # pyright: ignore[reportArgumentType]
                page = context.new_page()
                answer = page.goto(app.at("/"))
                assert answer is not None
                statuses.append(answer.status)
                assert findings(page) == []
    assert statuses == [409, 409, 429, 429]
