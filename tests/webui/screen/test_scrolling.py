"""A reader at the end stays there; whatever else moves the page upwards is the reader's, and is left alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.chat_steps import until

Show = Callable[..., Page]

AT_END = "e => e.scrollTop + e.clientHeight > e.scrollHeight - 20"
# As a reply does while it is written.
GROW = """e => { const more = document.createElement('p'); more.style.height = '40px';
    e.querySelector('.message-wrap').append(more);
    return new Promise((done) => setTimeout(done, 300)); }"""
IN_SIGHT = """e => { const box = e.getBoundingClientRect();
    const log = document.querySelector('#chat [role=log]').getBoundingClientRect();
    return box.top >= log.top - 1 && box.bottom <= log.bottom + 1; }"""


def log_at_end(page: Page) -> Locator:
    """The conversation, once it has been scrolled to its end."""
    log = page.locator("#chat [role=log]")
    until(lambda: log.evaluate("e => e.scrollHeight > 2 * e.clientHeight"))
    until(lambda: log.evaluate(AT_END))
    return log


@pytest.mark.parametrize(
    "size", [pytest.param({"width": 1280, "height": 800}, marks=pytest.mark.slow), {"width": 390, "height": 844}]
)
def test_the_keyboard_stays_in_sight_all_the_way_up_a_long_conversation(show: Show, size: dict[str, int]) -> None:
    page = show("long", **size)
    log = log_at_end(page)
    page.locator("#composer textarea").focus()
    seen = 0
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        if not page.evaluate("document.activeElement.closest('#chat .message-wrap') !== null"):
            continue
        log.evaluate(GROW)  # also where a reply is being written
        assert page.evaluate(f"({IN_SIGHT})(document.activeElement)")
        seen += 1
    assert seen > 25
    assert not log.evaluate(AT_END)


def test_what_the_browser_finds_in_the_page_stays_in_sight(show: Show) -> None:
    page = show("long")
    log = log_at_end(page)
    found = page.locator("#chat").get_by_text("needle")
    found.evaluate("e => e.scrollIntoView({ block: 'center' })")  # as its search does, without a key or a wheel
    log.evaluate(GROW)
    assert found.evaluate(IN_SIGHT)


@pytest.mark.parametrize("distance", [30, 100, 700])
def test_a_jump_upwards_that_the_page_did_not_make_is_left_alone(show: Show, distance: int) -> None:
    page = show("long")
    log = log_at_end(page)
    before = log.evaluate("(e, up) => { e.scrollTop -= up; return e.scrollTop; }", distance)
    for _ in range(3):
        log.evaluate(GROW)
    assert log.evaluate("e => e.scrollTop") == pytest.approx(before, abs=1)


def test_a_reader_at_the_end_follows_what_grows_and_what_shrinks(show: Show) -> None:
    page = show("long")
    log = log_at_end(page)
    log.evaluate(GROW)
    until(lambda: log.evaluate(AT_END))
    log.evaluate("e => { e.querySelector('.message-row').style.display = 'none'; }")
    log.evaluate(GROW)
    until(lambda: log.evaluate(AT_END))
    page.set_viewport_size({"width": 800, "height": 500})
    log.evaluate(GROW)
    until(lambda: log.evaluate(AT_END))


def test_what_shrinks_and_grows_again_in_one_moment_leaves_the_reader_at_the_end(show: Show) -> None:
    page = show("long")
    log = log_at_end(page)
    # The box is moved up by what was taken away, and nobody has looked before there is more. A reply: it is taller than
    # what comes, where less goes than comes nothing tells that from a reader who moves up.
    log.evaluate(f"e => {{ e.querySelector('.bot-row').style.display = 'none'; e.scrollTop; return ({GROW})(e); }}")
    until(lambda: log.evaluate(AT_END))


def test_whoever_searches_in_the_page_is_not_moved_by_a_reply_that_grows(show: Show) -> None:
    page = show("long")
    log = log_at_end(page)
    before = log.evaluate("e => e.scrollTop")
    page.keyboard.press("Control+f")
    log.evaluate(GROW)
    assert log.evaluate("e => e.scrollTop") == pytest.approx(before, abs=1)


def test_who_comes_back_to_the_composer_at_the_end_follows_again(show: Show) -> None:
    page = show("long")
    log = log_at_end(page)
    page.locator("#composer textarea").focus()
    page.keyboard.press("Shift+Tab")
    page.locator("#composer textarea").focus()
    log.evaluate(GROW)
    assert log.evaluate(AT_END)


def test_the_way_to_the_newest_is_offered_only_where_something_lies_below(show: Show) -> None:
    page = show("long")
    log = log_at_end(page)
    button = page.get_by_role("button", name="To the newest message")
    expect(button).to_be_hidden()
    log.evaluate("e => { e.scrollTop = 0; }")
    expect(button).to_be_visible()
    # Another conversation, a short one, takes its place: nobody scrolls.
    page.locator("#chat .message-row").nth(2).evaluate(
        "e => { while (e.nextElementSibling) e.nextElementSibling.remove(); }"
    )
    until(lambda: log.evaluate("e => e.scrollHeight <= e.clientHeight"))
    expect(button).to_be_hidden()


def test_the_way_to_the_newest_appears_when_a_reply_grows_out_of_sight(show: Show) -> None:
    page = show("long")
    log = log_at_end(page)
    page.keyboard.press("Control+f")
    for _ in range(4):
        log.evaluate(GROW)
    expect(page.get_by_role("button", name="To the newest message")).to_be_visible()
