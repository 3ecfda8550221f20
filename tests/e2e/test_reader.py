"""The page in the reader's language, and on the reader's screen."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, ask_and_wait, button, chat, composer, until, wait_for_state

LONG = "\n\n".join([*(f"Paragraph {number}." for number in range(30)), "This is the end of it."])
PHONE = {"width": 360, "height": 740}


def fits(page: Page, width: int, height: int) -> bool:
    overflows = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    box = composer(page).bounding_box()
    return (
        not overflows
        and box is not None
        and box["x"] >= 0
        and box["x"] + box["width"] <= width
        and box["y"] + box["height"] <= height
    )


def test_a_chinese_browser_gets_a_chinese_page(server: AppProcess, open_page: Callable[..., Page]) -> None:
    page = open_page(server, locale="zh-CN")
    expect(button(page, "发送")).to_be_visible()
    assert page.evaluate("document.documentElement.lang").startswith("zh")
    ask(page, "count at leisure 请慢慢数")
    expect(button(page, "停止")).to_be_visible()
    expect(button(page, "发送")).to_be_hidden()
    expect(chat(page)).to_contain_text("word5 ")
    button(page, "停止").click()
    wait_for_state(page, "idle")
    expect(chat(page)).to_contain_text("停止")
    ask(page, "   ")
    expect(page.get_by_text("没有可发送的内容").or_(page.get_by_text("没有内容")).first).to_be_visible()
    expect(page.locator("#side")).to_contain_text("新对话")


def test_nothing_overflows_and_the_composer_stays_in_sight(page: Page) -> None:
    ask_and_wait(page, "show me markdown", "second")
    ask_and_wait(page, "x" * 300 + " https://example.org/" + "y" * 200, "You said:")
    for width, height in ((1024, 768), (390, 844), (360, 740)):
        page.set_viewport_size({"width": width, "height": height})
        until(lambda: fits(page, width, height))  # noqa: B023 - it is called before the next size


def test_on_a_phone_the_conversations_are_a_drawer(server: AppProcess, open_page: Callable[..., Page]) -> None:
    page = open_page(server, viewport=PHONE, has_touch=True, is_mobile=True)
    ask_and_wait(page, "On a small screen", "You said: On a small screen")
    expect(page.locator("#history")).not_to_be_in_viewport()
    page.get_by_role("button", name="Conversations").first.click()
    expect(page.locator("#history").get_by_text("On a small screen").first).to_be_in_viewport()
    page.locator("#house").get_by_text("New chat").first.click()
    expect(page.locator("#status [data-room=empty]")).to_be_attached()
    expect(page.locator("#history")).not_to_be_in_viewport()


def test_a_reader_who_scrolled_up_is_left_alone(page: Page) -> None:
    ask_and_wait(page, LONG, "the end of it")
    ask(page, "count at leisure while I read")
    expect(chat(page)).to_contain_text("word20 ")
    log = page.locator("#chat [role=log]")
    log.hover()
    page.mouse.wheel(0, -5000)
    until(lambda: log.evaluate("box => box.scrollTop") < 50)
    expect(chat(page)).to_contain_text("word60 ")
    assert log.evaluate("box => box.scrollTop") < 50
    button(page, "Stop").click()
    wait_for_state(page, "idle")
    assert log.evaluate("box => box.scrollTop") < 50


def test_a_reader_at_the_end_stays_at_the_end(page: Page) -> None:
    ask_and_wait(page, LONG, "the end of it")
    ask_and_wait(page, "count slowly to the end", "word200")
    log = page.locator("#chat [role=log]")
    until(lambda: log.evaluate("box => box.scrollHeight - box.scrollTop - box.clientHeight") < 60)
