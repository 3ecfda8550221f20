"""The player beside a transcript stands where what is cited is said."""

from __future__ import annotations

import pytest

from webui.panels.player import player_html, second_of
from webui.words import Words

TALK = (
    "0:00:01 Welcome to the meeting of the house.\n"
    "0:01:05 The deductible for water damage\n0:01:08 is four hundred euros.\n1:00:00 Goodbye."
)


@pytest.mark.parametrize(
    ("said", "second"),
    [
        ("The deductible for water damage is high.", 65),
        ("They said goodbye.", 3600),
        ("Nothing of this kind.", 1),
        ("", 1),
    ],
)
def test_a_mark_leads_to_the_second_at_which_it_is_said(said: str, second: int) -> None:
    assert second_of(said, TALK) == second


def test_what_has_no_times_is_played_from_its_beginning() -> None:
    assert second_of("Anything", "No times here") == 0


def test_the_player_waits_to_be_told_and_a_name_is_no_markup() -> None:
    shown = player_html("f1", 65, "<b>.mp4", Words("en"), moving=True)
    assert 'src="./files/f1#t=65"' in shown
    assert "<video controls" in shown
    assert "autoplay" not in shown
    assert "<b>" not in shown
    assert "0:01:05" in shown.replace("&#58;", ":")
