"""A temporary conversation is begun from the top of an empty room or by a command, and says what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.axe import findings_everywhere
from tests.webui.screen.stage import Stage

Show = Callable[..., Page]


@pytest.fixture(autouse=True)
def _nothing_asked(stage: Stage) -> None:
    stage.asked.clear()


def heard(stage: Stage, **wanted: Any) -> None:
    stage.until(lambda: wanted in stage.asked)


def test_an_empty_room_is_made_temporary_and_usual_again_at_the_top(show: Show, stage: Stage) -> None:
    page = show("")
    page.get_by_role("button", name="Temporary chat").click()
    heard(stage, do="temporary", on=True)
    page = show("passing")
    button = page.get_by_role("button", name="Temporary chat")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text("Deleted a day after its last message.")).to_be_visible()
    page.get_by_role("button", name="Turn off").click()
    heard(stage, do="temporary", on=False)
    assert findings_everywhere(page, "#talk") == []


def test_one_in_which_something_was_said_can_be_kept_and_the_top_has_no_button_for_it(show: Show, stage: Stage) -> None:
    page = show("passed", width=390, height=780)
    expect(page.get_by_role("button", name="Temporary chat")).to_have_count(0)
    page.get_by_role("button", name="Keep this chat").click()
    heard(stage, do="temporary", on=False)


def test_a_command_begins_one(show: Show, stage: Stage) -> None:
    page = show("answered")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    page.keyboard.type(">temporary")  # commands alone
    expect(page.get_by_role("option", name="New temporary chat")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    heard(stage, do="temporary", on=True)
    first, last = ([one["do"] for one in stage.asked].index(act) for act in ("new", "temporary"))
    assert first < last
