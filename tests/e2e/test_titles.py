"""Titles: a conversation is named by its model while the page is open, and keeps the name that a person gives it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from core.testing.script import Reply
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask_and_wait

QUESTION = "When will the harbour be rebuilt, and who pays for it in the end?"


@pytest.fixture
def may_name() -> Iterator[threading.Event]:
    """Set, the model gives its titles."""
    event = threading.Event()
    yield event
    event.set()  # a server cannot end while somebody waits in it


@pytest.fixture
def script(may_name: threading.Event) -> Callable[[dict[str, Any]], Reply]:
    """Names an exchange when it may, in Markdown and in Chinese where it was asked in it."""

    def reply(request: dict[str, Any]) -> Reply:
        said = str(request["messages"][-1]["content"])
        if "<exchange>" not in said:
            return Reply("Next year, by forty people.")
        may_name.wait(60)
        return Reply(
            "**标题：**《港口重建》" if "港口" in said else "## Title: “Harbour &lt;b&gt;rebuilding”\n\nIt fits."
        )

    return reply


def test_the_list_and_the_top_change_by_themselves_when_the_model_has_named_it(
    start_app: Callable[..., AppProcess],
    open_page: Callable[..., Page],
    script: Callable[[dict[str, Any]], Reply],
    may_name: threading.Event,
) -> None:
    app = start_app(script, TITLES="1", RETRIEVAL="keyword")
    page = open_page(app)
    second = open_page(app, context=page.context)
    ask_and_wait(page, QUESTION, "forty people")
    expect(page.locator("#top h1")).to_have_text("When will the harbour be rebuilt, and who pays for it in…")
    may_name.set()
    expect(page.locator("#top h1")).to_have_text("Harbour &lt;b&gt;rebuilding")
    expect(page.locator("#history a[data-open]")).to_have_text("Harbour &lt;b&gt;rebuilding")
    second.reload(wait_until="domcontentloaded")
    expect(second.locator("#history a[data-open]")).to_have_text("Harbour &lt;b&gt;rebuilding")


def test_a_chinese_conversation_has_a_chinese_name_and_a_person_s_name_stays(
    start_app: Callable[..., AppProcess],
    open_page: Callable[..., Page],
    script: Callable[[dict[str, Any]], Reply],
    may_name: threading.Event,
) -> None:
    app = start_app(script, TITLES="1", RETRIEVAL="keyword")
    page = open_page(app, locale="zh-CN")
    row = page.locator("#history a[data-open]")
    ask_and_wait(page, "港口什么时候重建？", "forty people")
    may_name.set()
    expect(row).to_have_text("港口重建")
    may_name.clear()
    page.get_by_role("button", name="新对话").click()
    ask_and_wait(page, "那么港口由谁出钱？", "forty people")
    page.locator("#history a[data-open]", has_text="由谁出钱").press("F2")
    page.get_by_role("textbox", name="标题").fill("我的<b>港口</b>")
    page.get_by_role("textbox", name="标题").press("Enter")
    expect(page.locator("#top h1")).to_have_text("我的<b>港口</b>")
    may_name.set()
    ask_and_wait(page, "还有呢？", "forty people")
    expect(page.locator("#top h1")).to_have_text("我的<b>港口</b>")
    expect(row).to_have_text(["我的<b>港口</b>", "港口重建"])
    expect(page.locator("#history b, #top b")).to_have_count(0)
