"""What a refusal looks like on the page: a sentence of ours, whoever refused, and no words of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, FilePayload, Page, Route, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, chat, composer

NGINX = "<html><head><title>413 Request Entity Too Large</title></head><body><h1>413</h1><hr>nginx/1.22.1</body></html>"
FILE: FilePayload = {"name": "large.txt", "mimeType": "text/plain", "buffer": b"A heron stands in the reeds."}


@pytest.mark.parametrize(("status", "said"), [(413, "does not accept files of this size"), (502, "got no answer")])
def test_a_proxys_own_refusal_of_a_file_is_told_in_our_words_and_blocks_nothing(
    server: AppProcess, open_page: Callable[..., Page], status: int, said: str
) -> None:
    page = open_page(server, expected=(f"status of {status}",))

    def refuse(route: Route) -> None:
        route.fulfill(status=status, content_type="text/html", body=NGINX)

    page.route("**/gradio_api/upload?**", refuse)
    page.locator("#composer input[type=file]").first.set_input_files(FILE)
    toast = page.locator('[data-testid="toast-text"]').first
    expect(toast).to_contain_text(said)
    expect(page.locator("body")).not_to_contain_text("nginx")
    page.unroute("**/gradio_api/upload?**")
    ask(page, "Is anybody there?")
    expect(chat(page)).to_contain_text("You said: Is anybody there?")


def test_a_browser_that_has_lost_its_cookie_is_told_so_in_a_sentence(
    server: AppProcess, open_page: Callable[..., Page]
) -> None:
    page = open_page(server, expected=("status of 401", "401"))
    page.context.clear_cookies()
    ask(page, "Is anybody there?")
    expect(page.locator('[data-testid="toast-text"]').first).to_contain_text("This needs Parlour's token")
    expect(page.locator("body")).not_to_contain_text("Could not parse")


def test_the_token_is_typed_in_without_any_script(server: AppProcess, browser: Browser) -> None:
    options: Any = {"java_script_enabled": False, "locale": "en-US", "service_workers": "block"}
    context = browser.new_context(**options, base_url=server.url)
    page = context.new_page()
    page.goto("/")
    expect(page.get_by_role("heading", name="Open Parlour")).to_be_visible()
    page.get_by_label("Token").fill("not the one")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_have_text("That is not the token of this Parlour.")
    page.get_by_label("Token").fill((server.home / "token").read_text())
    page.get_by_role("button", name="Open").click()
    expect(page).to_have_url(f"{server.url}/")
    assert "#composer" not in page.url
    assert page.locator("form[action='/token']").count() == 0
    context.close()


def test_the_token_disappears_from_the_address(server: AppProcess, open_page: Callable[..., Page]) -> None:
    page = open_page(server)
    assert "token" not in page.url
    assert "token" not in page.evaluate("performance.getEntriesByType('navigation')[0].name")
    assert page.evaluate("document.cookie") == ""
    expect(composer(page)).to_be_visible()
