"""Suggested questions stand above the composer once a reply is over, and their price beside their switch."""

from __future__ import annotations

from html import unescape

import pytest

from core.agents.title import usual_title_usage
from core.llm.request import ChatRequest
from core.storage.preferences import Preferences
from core.testing.script import Reply
from tests.webui.server.test_approval import House, house  # noqa: F401 - a fixture
from webui.handlers.send import send
from webui.panels.settings import ShownSettings, settings_html
from webui.words import Words

pytestmark = pytest.mark.anyio


def said(request: ChatRequest) -> Reply:
    return Reply("What does <b>it</b> cost?\nWho pays?" if request.purpose == "follow-up" else "It is a bridge.")


@pytest.mark.parametrize("house", [(said,)], indirect=True)
async def test_they_come_after_the_reply_stay_over_a_reload_and_go_with_the_next_question(house: House) -> None:  # noqa: F811
    await house.engine.stores.of(house.owner).preferences.change("follow_ups", value=True)
    house.engine.services.beside._idle = 0.01  # pyright: ignore[reportPrivateUsage]
    tab = house.tab()
    await send(house.desk, tab, {"text": "What is it?", "files": []})
    panel = (await house.over(tab)).panels["starters"]
    assert "<b>" not in panel
    assert "Who pays?" in unescape(panel)
    again = house.tab("two")
    await house.act(again, do="open", id=tab.conversation_id)
    assert (await house.over(again)).panels["starters"] == panel
    await house.engine.stores.of(house.owner).preferences.change("follow_ups", value=False)
    await send(house.desk, tab, {"text": "And then?", "files": []})
    assert (await house.over(tab)).panels["starters"] == ""


@pytest.mark.parametrize(
    ("cost", "here", "price"), [(0.00231, False, "$0.0023"), (None, False, "price unknown"), (None, True, "free")]
)
def test_the_switch_is_off_and_says_what_it_costs(cost: float | None, here: bool, price: str) -> None:
    shown = ShownSettings(preferences=Preferences(), follow_up_cost=cost, here=here)
    row = unescape(settings_html(shown, Words("en"))).partition('id="p-v-follow_ups"')
    assert price in row[0][-400:]
    assert " checked" not in row[2][:80]


@pytest.mark.parametrize(
    ("cost", "here", "price"), [(0.00044, False, "$0.0004"), (None, False, "price unknown"), (None, True, "free")]
)
def test_the_switch_of_titles_says_what_one_costs(cost: float | None, here: bool, price: str) -> None:
    page = unescape(settings_html(ShownSettings(title_cost=cost, here=here), Words("en")))
    assert f"up to {usual_title_usage().total_tokens:,} tokens ({price})" in page


def test_a_program_of_agents_has_no_such_switch() -> None:
    assert "follow_ups" not in settings_html(ShownSettings(may_propose=False), Words("en"))
