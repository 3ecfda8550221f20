"""The settings in the whole app: kept over a reload at their address, spoken in another language, and all deleted."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from core.testing.script import Reply
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask_and_wait


def test_settings_are_kept_and_everything_is_deleted_by_its_word(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    app = start_app(lambda _: Reply("Forty people."), RETRIEVAL="keyword")
    page = open_page(app)
    ask_and_wait(page, "Who builds it?", "Forty people")
    page.locator("#history .p-open-settings").click()
    page.get_by_role("textbox", name="About you").fill("I read contracts.")
    expect(page.locator("#p-settings .p-told")).to_have_text("kept")
    page.get_by_label("Language").select_option("zh")
    expect(page.get_by_role("heading", name="通用")).to_be_visible()
    expect(page.get_by_role("textbox", name="关于你")).to_have_value("I read contracts.")
    page.reload(wait_until="domcontentloaded")
    expect(page.get_by_role("heading", name="通用")).to_be_visible()
    expect(page.locator("#house .p-new")).to_have_text("新对话")
    expect(page.locator("#history a[data-open]")).to_have_count(1)
    page.locator("#p-settings [data-delete]").click()
    page.locator("#p-delete-word").fill("删除")
    page.locator("dialog[open]").get_by_role("button", name="全部删除").click()
    expect(page.locator("#p-settings .p-told")).to_have_text("已删除 1 个对话和所有文档。")
    expect(page.locator("#history a[data-open]")).to_have_count(0)
    page.locator("#p-settings header .p-close").click()
    expect(page.locator("#composer textarea")).to_be_visible()
    expect(page.locator("#chat [data-testid=user]")).to_have_count(0)
