"""While Parlour cannot be reached, what looks again by itself does so more and more seldom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route, expect

PAPERS = {"id": "one", "name": "Papers", "said": "1 document, 1 being read", "reading": True}
READ: dict[str, Any] = {"libraries": [PAPERS], "opened": None, "limit": 50}


class Gate:
    """Answers requests while it is open, and counts those that come while it is not."""

    def __init__(self, page: Page, address: str, answer: Any) -> None:
        self.answer, self.open, self.turned_away, self.let_in = answer, True, 0, 0
        page.route(address, self._take)

    def _take(self, route: Route) -> None:
        if self.open:
            self.let_in += 1
            route.fulfill(json=self.answer)
        else:
            self.turned_away += 1
            route.abort()


# What the page does next, which no clock is asked for.
TURN = """new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = done;
    port2.postMessage(0); })"""


def pass_time(page: Page, seconds: int) -> None:
    """Second by second, each with what is asked in it."""
    for _ in range(seconds):
        page.clock.run_for(1000)
        page.evaluate(TURN)


def test_the_dialog_of_libraries_looks_again_more_and_more_seldom(show: Callable[..., Page]) -> None:
    page = show("answered", provokes=["ERR_FAILED"])
    state = Gate(page, "**/libraries/state*", READ)
    page.clock.install()
    page.locator("#history [data-do=libraries]").click()
    dialog = page.locator(".p-libraries")
    expect(dialog).to_contain_text("1 being read")
    state.open = False
    pass_time(page, 90)
    assert 3 <= state.turned_away <= 12  # it was once in a second
    state.open, before = True, state.let_in
    pass_time(page, 40)
    assert state.let_in - before >= 5  # once it is there, soon again


def test_what_others_share_is_asked_for_more_and_more_seldom(show: Callable[..., Page]) -> None:
    page = show("answered", provokes=["ERR_FAILED"])
    news = Gate(page, "**/standing*", {"standing": "same"})
    news.open = False
    page.clock.install()
    page.locator("#status [data-state]").evaluate("one => { one.dataset.role = 'member'; }")
    page.evaluate("document.body.append(document.createElement('i'))")  # a change, after which the page looks
    pass_time(page, 300)
    assert 3 <= news.turned_away <= 9  # it was once in ten seconds
