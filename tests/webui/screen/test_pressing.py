"""A press on what is drawn anew before the finger or the button is up again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.webui.screen.stage import Stage

Show = Callable[..., Page]
ANEW = "element => element.replaceWith(element.cloneNode(true))"


def middle(element: Locator) -> tuple[float, float]:
    element.scroll_into_view_if_needed()
    box = element.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_mark_that_is_drawn_anew_while_it_is_pressed_opens_its_passage_once(show: Show, stage: Stage) -> None:
    page = show("answered")
    mark = page.locator("#chat a.cite").first
    page.mouse.move(*middle(mark))
    page.mouse.down()
    mark.evaluate(ANEW)
    page.mouse.up()
    stage.until(lambda: any(one["do"] == "cite" for one in stage.asked))
    mark.click()  # and an ordinary press is heard once, too
    stage.until(lambda: sum(one["do"] == "cite" for one in stage.asked) >= 2)
    expect(page.locator("#evidence")).to_contain_text("policy.pdf")
    assert sum(one["do"] == "cite" for one in stage.asked) == 2


@pytest.mark.parametrize("to", ["elsewhere", "another"])
def test_who_drags_away_or_lets_go_over_something_else_has_pressed_nothing(show: Show, stage: Stage, to: str) -> None:
    page = show("answered")
    mark = page.locator("#chat a.cite").first
    x, y = middle(mark)
    page.mouse.move(x, y)
    page.mouse.down()
    if to == "elsewhere":
        mark.evaluate(ANEW)
        page.mouse.move(x + 40, y + 40)
    else:
        mark.evaluate(
            "element => element.replaceWith(Object.assign(document.createElement('b'), { textContent: 'Gone' }))"
        )
    page.mouse.up()
    page.locator("#house").get_by_text("New chat").first.click()  # what comes after it is heard after it
    stage.until(lambda: any(one["do"] == "new" for one in stage.asked))
    assert all(one["do"] != "cite" for one in stage.asked)
