"""A notice without a time of its own goes when what it says does not hold any longer, or when it is closed."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

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
