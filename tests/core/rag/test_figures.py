"""Figures and their units: glued or apart, in signs or words, they are the same figure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.claims import claims_of
from core.rag.document import Passage
from core.rag.support import with_units_apart, words_of


@pytest.mark.parametrize(
    ("glued", "apart"),
    [
        ("1pm", "1 pm"),
        ("5km", "5 km"),
        ("3GB", "3 GB"),
        ("10%", "10 %"),
        ("10%", "10 percent"),
        ("10％", "10 per cent"),
        ("€5", "5 euro"),
        ("5€", "€ 5"),
        ("$1,200", "1200 dollar"),
        ("￥30", "30 yuan"),
        ("百分之十", "10%"),
        ("百分之二十五", "25%"),
        ("百分之百", "100%"),
        ("百分之三点五", "3.5%"),
        ("百分之 7", "7 %"),
        ("3rd", "3"),
        ("12th May", "12 May"),
        ("5公里", "5 公里"),
        ("2.5m", "2.5 m"),
    ],
)
def test_a_figure_glued_to_its_unit_is_the_one_with_a_space(glued: str, apart: str) -> None:
    assert words_of(glued) == words_of(apart)


@pytest.mark.parametrize(("one", "other"), [("1pm", "2 pm"), ("10%", "100%"), ("5km", "15 km"), ("百分之十", "20%")])
def test_other_figures_stay_others(one: str, other: str) -> None:
    assert words_of(one) != words_of(other)


@pytest.mark.parametrize("name", ["Q3", "A4", "B12", "x86", "mp3"])
def test_names_with_figures_stay_whole(name: str) -> None:
    assert words_of(name) == {name.lower()}


@given(st.text(alphabet="0123456789.,%€$£¥ apmkst", max_size=60))
def test_taking_units_apart_keeps_every_figure(text: str) -> None:
    def figures(one: str) -> str:
        return "".join(letter for letter in one if letter.isdigit())

    assert figures(with_units_apart(text)) == figures(text)


@given(st.text(alphabet="0123456789.%百分之零十二三五点 a", max_size=60))
def test_any_numeral_can_be_looked_at(text: str) -> None:
    assert isinstance(words_of(text), set)


def test_a_sentence_that_stands_there_word_for_word_is_supported_however_its_figures_are_written() -> None:
    notes = Passage("The water will be off on Tuesday 12 May, from 9 am to 1 pm.", 1.0, "notes.md", "a", None)
    (claim,) = claims_of("The water will be off on Tuesday 12th May, from 9 am to 1pm.", [notes])
    assert claim.verdict == "supported"
    (claim,) = claims_of("The water will be off on Tuesday 12 May, from 9 am to 3pm.", [notes])
    assert claim.verdict == "unsupported"
