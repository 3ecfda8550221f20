"""A notice without a time of its own goes when what it says does not hold any longer, or when it is closed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.chat_steps import until
from tests.webui.screen.stage import Stage

NOTICES = """() => {
    for (const [name, inside] of [['limit', ''], ['passing', '<div class="timer"></div>']]) {
        const notice = document.createElement('div');
        notice.dataset.testid = 'toast-body';
        notice.id = name;
        notice.innerHTML = `${name}<button class="toast-close">x</button>${inside}`;
        notice.querySelector('button').addEventListener('click', () => notice.remove());
        document.body.append(notice);
    }
}"""


def test_what_is_said_of_a_limit_goes_when_a_question_is_taken_or_limits_are_others_and_not_before(
    show: Callable[..., Page],
) -> None:
    page = show("answered", width=390, height=844)
    state = page.locator("#status [data-state]")
    limit, passing = page.locator("#limit"), page.locator("#passing")
    page.evaluate(NOTICES)
    state.evaluate("one => { one.dataset.state = 'error'; document.body.append(document.createElement('i')); }")
    expect(limit).to_be_visible()
    state.evaluate("one => { one.dataset.state = 'running'; document.body.append(document.createElement('i')); }")
    expect(limit).to_have_count(0)
    expect(passing).to_be_visible()
    passing.evaluate("one => one.remove()")
    page.evaluate(NOTICES)
    page.evaluate("dispatchEvent(new CustomEvent('p-standing'))")
    expect(limit).to_have_count(0)
    expect(passing).to_be_visible()


@pytest.mark.parametrize(("locale", "close"), [("en-US", "Close"), ("zh-CN", "关闭")])
def test_on_a_phone_it_covers_no_header_of_what_is_in_front_and_can_be_closed(
    show: Callable[..., Page], stage: Stage, locale: str, close: str
) -> None:
    page = show("answered", width=390, height=844, locale=locale)
    stage.refusal = {"key": "quota_messages", "details": {"limit": 200, "hours": 5}}
    page.locator("#composer textarea").fill("Hello")
    page.locator("#composer textarea").press("Enter")
    notice = page.get_by_test_id("toast-body")
    expect(notice).to_contain_text("200")
    until(lambda: _is_clear(notice, page.locator("#top .p-top")))
    page.locator("#top .p-open-menu").click()
    until(lambda: _is_clear(notice, page.locator("#house")))
    page.keyboard.press("Escape")
    page.locator('#chat a[href^="#cite"]').first.click()
    until(lambda: _is_clear(notice, page.locator("#page .p-evidence header")))
    page.locator("#page .p-close").click()
    button = notice.get_by_test_id("toast-close")
    expect(button).to_have_accessible_name(close)
    box = button.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 40
    button.click()
    expect(notice).to_have_count(0)


def _is_clear(notice: Locator, header: Locator) -> bool:
    """Whether a notice stands whole on the screen, below a header that is in sight."""
    one, other = notice.bounding_box(), header.bounding_box()
    if one is None or other is None or other["x"] < 0 or other["y"] >= 800:
        return False
    return other["y"] + other["height"] <= one["y"] and one["x"] >= 0 and one["x"] + one["width"] <= 390
