"""Several agents in a browser: an @ offers their names, and bubbles within bubbles stay readable on a phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import until
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]


def marked(page: Page) -> str:
    """The option that the keyboard is on, as a screen reader is told."""
    return page.evaluate(
        """() => { const field = document.querySelector('#composer textarea');
        const one = document.getElementById(field.getAttribute('aria-activedescendant') ?? '');
        return one?.getAttribute('aria-selected') === 'true' ? one.querySelector('.p-name').textContent : ''; }"""
    )


def test_an_at_offers_the_agents_to_the_keyboard(show: Show, stage: Stage) -> None:
    page = show("group")
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.locator("#chat .bot-row a.p-copy").click()
    until(lambda: page.evaluate("window.copied"))
    copied = page.evaluate("window.copied").split("\n\n")
    assert copied[:4:2] == ["Planner:", "Data Analyst:"], "who said what is copied with it"
    expect(page.locator("#chat .p-face:not([aria-hidden=true])")).to_have_count(0)
    field, options = page.locator("#composer textarea"), page.locator("#p-mention [role=option]")
    field.press_sequentially("me@")
    expect(options).to_have_count(0)
    field.fill("")
    field.press_sequentially("So a@b @")
    expect(options).to_have_count(4)
    expect(page.locator("#p-mention-heard")).to_have_text("4 agents. Choose with the arrow keys, accept with Enter.")
    until(lambda: marked(page) == "Planner")
    page.keyboard.press("ArrowUp")
    until(lambda: marked(page) == "web_reader")
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    field.press("Backspace")
    field.press_sequentially("@")
    expect(options).to_have_count(4)  # another @ in the same place
    field.fill("")
    field.press_sequentially("@Data a")
    expect(options).to_have_count(1)
    page.keyboard.press("Tab")
    expect(field).to_have_value("@Data Analyst ")
    expect(field).to_be_focused()
    expect(options).to_have_count(0)
    # The Enter that ends the choice of a Chinese character takes nothing.
    field.press_sequentially("@")
    expect(options).to_have_count(4)
    field.dispatch_event("keydown", {"key": "Enter", "keyCode": 229, "isComposing": True})
    expect(options).to_have_count(4)
    field.press_sequentially("研")
    expect(options).to_have_count(1)
    page.keyboard.press("Enter")
    expect(field).to_have_value("@Data Analyst @研究员 ")
    assert stage.sent == []
    page.keyboard.press("Enter")
    stage.until(lambda: stage.sent)
    assert stage.sent[0]["text"].strip() == "@Data Analyst @研究员"


def test_each_agent_behind_the_models_name_can_be_pressed(show: Show) -> None:
    page = show("group")
    page.locator(".p-ready summary").click()
    agents = page.locator("#top .p-agents a")
    expect(agents.first).to_be_visible()
    for agent in agents.all():
        agent.click(trial=True)  # nothing lies over it
    box, card = page.locator("#top .p-chooser p").first.bounding_box(), page.locator("#top .p-card").bounding_box()
    assert box is not None
    assert card is not None
    assert card["y"] <= box["y"] < card["y"] + card["height"]


def test_on_a_phone_a_tap_takes_a_name_and_bubbles_in_bubbles_fit(show: Show, stage: Stage) -> None:
    page = show("nested", width=360, height=740, locale="zh-CN", has_touch=True)
    asked = page.locator("#chat .title .p-asked")
    expect(asked).to_have_count(2)
    wide: Any = page.locator("#chat .panel-wrap").evaluate("one => one.scrollWidth - one.clientWidth")
    assert wide <= 0, "nothing is wider than the phone"
    words = page.get_by_text("I keep the table that says so.")
    box = words.bounding_box()
    assert box is not None
    assert box["width"] > 220, "two levels down there is room for a sentence"
    asked.first.click()
    expect(words).to_have_count(0)
    asked.first.click()
    expect(words).to_be_visible()
    field = page.locator("#composer textarea")
    field.press_sequentially("@")
    page.locator("#p-mention [role=option]").nth(2).tap()
    expect(field).to_have_value("@研究员 ")
    expect(field).to_be_focused()


def test_on_a_programs_page_the_dialogs_show_what_has_an_effect(show: Show) -> None:
    page = show("group", width=1280, height=760)
    rules = {"mode": "writes", "allowed": [], **{name: [] for name in ("allow", "ask", "deny")}}
    hints: dict[str, list[str]] = {name: [] for name in ("allow", "ask", "deny")}
    state = {
        **{key: [] for key in ("tools", "notes", "servers", "services")},
        **dict.fromkeys(("only_local", "small"), ""),
    }
    own = {"own": "These are the program's own.", "local": True, "accounts": {}, "opened": None}
    told = {**state, **own, "approval": {**rules, "hints": hints}, "access": {"path": "/mcp", "made": 0}}
    page.route("**/tools/state*", lambda route: route.fulfill(json=told))
    page.route("**/models/menu", lambda route: route.fulfill(json={"fixed": "There is none to choose."}))
    page.locator("#history .p-open-tools").click()
    expect(page.locator(".p-tools .p-own")).to_have_text("These are the program's own.")
    expect(page.locator(".p-tools .p-shelf-list [data-part]:visible")).to_have_count(2)
    expect(page.locator(".p-tools .p-add")).to_be_hidden()
    page.keyboard.press("Escape")
    page.evaluate("""() => document.querySelector('#chat .prose').insertAdjacentHTML('beforeend',
        '<a class="p-do" role="button" href="#do-models">settings</a>')""")
    page.get_by_role("button", name="settings", exact=True).click()
    expect(page.locator(".p-models .p-told")).to_have_text("There is none to choose.")
    expect(page.locator(".p-models select:visible")).to_have_count(0)
    expect(page.locator(".p-models .p-close")).to_be_focused()
