"""A question stands as it was typed; on wish its Markdown is shown as what it means, and its text stays what it was."""

from __future__ import annotations

import pytest

from core.messages.message import Message
from core.storage.base import StoredMessage
from core.storage.preferences import FORMATTED
from core.testing.script import Reply
from tests.webui.server.test_approval import House, house  # noqa: F401 - a fixture
from webui.handlers.send import send
from webui.panels.settings import ShownSettings, settings_html
from webui.render.conversation import Rendered, conversation_entries
from webui.words import Words

pytestmark = pytest.mark.anyio

ASKED = "# Plan\n\n- **first** <b>x</b>\n- second </div><p>"


def drawn(text: str, *, formatted: bool, rendered: Rendered | None = None) -> str:
    thread = [StoredMessage("q", "c", None, "user", (Message("user", text),), None, "complete", 0.0)]
    entries, _ = conversation_entries(thread, {}, words=Words("en"), formatted=formatted, rendered=rendered)
    return str(entries[0]["content"][0]["text"])


def test_without_the_wish_no_sign_of_it_means_anything() -> None:
    shown = drawn(ASKED, formatted=False)
    assert "\n- " not in shown
    assert "p-formatted" not in shown


def test_with_it_markdown_is_markdown_and_what_was_typed_is_still_there_to_be_changed() -> None:
    shown = drawn(ASKED, formatted=True)
    assert "\n- **first**" in shown
    assert "</div><p>" not in shown, "markup of a question is none"
    assert '<div class="p-asked" hidden>' in shown
    assert shown.index("p-asked") < shown.index("p-formatted") < shown.index("p-beside")


def test_a_long_one_is_folded_all_the_same_and_nothing_is_formatted_where_nothing_was_written() -> None:
    assert "p-formatted p-long p-folded" in drawn("- a\n" * 30, formatted=True)
    assert "p-formatted" not in drawn("", formatted=True)


def test_what_was_drawn_before_the_wish_is_drawn_anew() -> None:
    kept = Rendered()
    assert [("p-formatted" in drawn("- a", formatted=wish, rendered=kept)) for wish in (False, True, False)] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("house", [(Reply("It is."),)], indirect=True)
async def test_the_wish_is_switched_on_in_the_settings_and_holds_when_a_tab_looks_again(house: House) -> None:  # noqa: F811
    tab = house.tab()
    await send(house.desk, tab, {"text": ASKED, "files": []})
    assert "p-formatted" not in str((await house.over(tab)).chat)
    preferences = house.engine.stores.of(house.owner).preferences
    await preferences.change(FORMATTED, value=True)
    await house.act(tab, do="look")
    assert "p-formatted" in str((await house.over(tab)).chat)
    for lang, said in (("en", "Show my questions as Markdown"), ("zh", "按 Markdown 显示我的提问")):
        page = settings_html(ShownSettings(preferences=await preferences.get()), Words(lang))
        assert said in page
        assert 'data-set="formatted" aria-describedby="p-n-formatted" checked' in page
