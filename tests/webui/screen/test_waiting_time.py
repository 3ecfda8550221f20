"""How long a reply has been waited for stands beside it, and rests while Parlour is away."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

BEGINS = """() => {
    const since = document.createElement('span');
    since.className = 'p-since';
    since.title = new Date(Date.now() - 5000).toISOString();
    const wheel = Object.assign(document.createElement('span'), { className: 'p-st p-run' });
    document.querySelector('#chat').append(wheel, since);
}"""
TURNS = "() => getComputedStyle(document.querySelector('#chat .p-run')).animationName"
CONNECTION = "(state) => { document.documentElement.dataset.connection = state; }"


def test_the_seconds_and_the_wheel_of_a_reply_rest_while_the_connection_is_lost_and_go_on_when_it_is_back(
    show: Callable[..., Page],
) -> None:
    page = show("answered", timezone_id="UTC")  # a window of its own, whose clock can be set
    page.clock.install()
    page.evaluate(BEGINS)
    since = page.locator("#chat .p-since")
    page.clock.run_for(3_000)
    expect(since).to_contain_text("8")
    page.evaluate(CONNECTION, "lost")
    page.clock.run_for(4_000)
    assert "8" in str(since.text_content())
    assert page.evaluate(TURNS) == "none"
    page.evaluate(CONNECTION, "")
    assert page.evaluate(TURNS) == "p-turn"
    page.clock.run_for(2_000)
    assert "14" in str(since.text_content())
