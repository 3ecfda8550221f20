"""Tools and thoughts show as lines that open: what was called, with what, and what came back."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from core.testing.script import Reply
from tests.e2e.app_process import AppProcess
from tests.e2e.chat_steps import ask, ask_and_wait, button, chat, until, wait_for_state


def test_a_tool_shows_its_name_state_arguments_and_result(page: Page) -> None:
    ask_and_wait(page, "use the calculator for 12*(3+4)", "The result:")
    bubble = chat(page).get_by_role("button").filter(has_text="calculator").first
    expect(bubble).to_contain_text("done")
    expect(chat(page).get_by_text("Result", exact=True)).to_be_hidden()
    bubble.click()
    expect(chat(page).get_by_text("Arguments", exact=True)).to_be_visible()
    expect(chat(page).get_by_text("Result", exact=True)).to_be_visible()
    expect(chat(page)).to_contain_text("12*(3+4)")
    expect(chat(page)).to_contain_text("84")
    bubble.click()
    expect(chat(page).get_by_text("Result", exact=True)).to_be_hidden()


def test_tools_called_at_once_stand_under_one_line(page: Page) -> None:
    ask_and_wait(page, "two tools please, for 6*7", "The result:")
    parent = chat(page).get_by_role("button").filter(has_text="2 tools").first
    expect(parent).to_be_visible()
    calls = [chat(page).get_by_role("button").filter(has_text=name).first for name in ("calculator", "current_time")]

    def are_open() -> bool:
        if not all(call.is_visible() for call in calls):  # they close when the answer is there, which may be just now
            parent.click()
        return all(call.is_visible() for call in calls)

    until(are_open)


def test_a_failed_tool_says_so_and_the_reply_goes_on(page: Page) -> None:
    ask_and_wait(page, "use the calculator for 1/0", "The result:")
    expect(chat(page).get_by_role("button").filter(has_text="calculator").first).to_contain_text("failed")


def test_thoughts_are_open_while_they_come(
    start_app: Callable[..., AppProcess], open_page: Callable[..., Page]
) -> None:
    thinks = Reply(reasoning="Let me see. First one thing, then the other.", text="Yes.", hang_after=8)
    page = open_page(start_app(lambda _: thinks, RETRIEVAL="keyword"))
    ask(page, "Is it so?")
    expect(chat(page).get_by_role("button").filter(has_text="Thinking").first).to_be_visible()
    expect(chat(page).get_by_text("First one thing")).to_be_visible()
    button(page, "Stop").click()
    wait_for_state(page, "idle")


def test_thoughts_are_closed_when_the_answer_is_there(page: Page) -> None:
    ask_and_wait(page, "think about it", "I have thought about it: yes.")
    expect(chat(page).get_by_text("Thought", exact=False).first).to_be_visible()
    expect(chat(page).get_by_text("First one thing")).to_be_hidden()
    chat(page).get_by_role("button").filter(has_text="Thought").first.click()
    expect(chat(page).get_by_text("First one thing")).to_be_visible()


def test_everything_that_markdown_can_do_is_drawn(page: Page) -> None:
    ask_and_wait(page, "show me markdown", "second")
    bot = chat(page)
    expect(bot.locator("table td").first).to_be_visible()
    expect(bot.locator("pre code, .code_wrap").first).to_be_visible()
    expect(bot.locator("span.katex").nth(3)).to_be_attached()
    expect(bot.locator("svg[id^=mermaid], .mermaid svg").first).to_be_visible()
    expect(bot.get_by_role("heading", name="A little of everything")).to_be_visible()
