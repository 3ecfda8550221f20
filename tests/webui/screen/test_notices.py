"""A notice of the system when a long reply ends while nobody looks; nobody is asked for it before the first one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.chat_steps import until

Show = Callable[..., Page]
FAKE = """(permission) => {
    window.told = []; window.asked = 0;
    window.Notification = class { static permission = permission;
        static async requestPermission() { window.asked += 1; return 'default'; }
        constructor(title, more) { window.told.push([title, more.body]); } addEventListener() {} };
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => window.away === true });
    const now = Date.now.bind(Date); window.later = 0; Date.now = () => now() + window.later; }"""
STATE = "(state) => { document.querySelector('#status [data-state]').dataset.state = state; document.body.append(''); }"


def reply(page: Page, *, away: bool, seconds: int) -> None:
    """A reply that is written for so long, and ends."""
    page.evaluate(STATE, "running")
    frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(frames)
    page.evaluate("([away, later]) => { window.away = away; window.later += later; }", [away, seconds * 1000])
    page.evaluate(STATE, "idle")
    page.evaluate(frames)


@pytest.mark.parametrize(("away", "seconds", "told"), [(True, 30, True), (True, 2, False), (False, 30, False)])
def test_a_long_reply_that_nobody_saw_end_is_told(show: Show, away: bool, seconds: int, told: bool) -> None:
    page = show("answered", reduced_motion="reduce")
    page.evaluate(FAKE, "granted")
    reply(page, away=away, seconds=seconds)
    assert page.evaluate("window.told") == ([["About <b>it</b>", "The reply is there."]] if told else [])


def test_nobody_is_asked_before_a_reply_was_missed_and_then_once(show: Show) -> None:
    page = show("answered", reduced_motion="reduce")
    page.evaluate(FAKE, "default")
    page.locator("#chat").click()
    assert page.evaluate("window.asked") == 0
    reply(page, away=True, seconds=30)
    assert page.evaluate("[window.asked, window.told.length]") == [0, 0]
    page.evaluate("window.away = false")
    page.locator("#chat").click()
    until(lambda: page.evaluate("window.asked") == 1)
    page.locator("#chat").click()
    assert page.evaluate("window.asked") == 1


def test_switched_off_in_the_settings_nothing_is_told(show: Show) -> None:
    page = show("answered", reduced_motion="reduce")
    page.evaluate(FAKE, "granted")
    page.locator("#history .p-open-settings").click()
    page.get_by_role("switch", name="Tell me when a reply is done").uncheck(force=True)
    page.keyboard.press("Escape")
    expect(page.locator("#p-settings")).to_have_count(0)
    reply(page, away=True, seconds=30)
    assert page.evaluate("window.told") == []
