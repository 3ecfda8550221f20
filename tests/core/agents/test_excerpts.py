"""Of a text that is too long for a model, what fits the question best is given."""

from __future__ import annotations

from core.agents.excerpts import excerpt

LAKE = (
    "Herons stand in the water for hours. They eat fish and frogs. The lake is 12 metres deep. It freezes in January. "
    "Boats may be hired at the mill."
)
TABLE = "city | people\nUlm | 126,000\nBonn | 330,000\nKiel | 246,000\nTrier | 112,000"


def test_of_prose_the_sentences_around_the_one_that_fits_best_are_given() -> None:
    assert excerpt(LAKE, "How deep is the lake?", 60) == "The lake is 12 metres deep. It freezes in January."
    assert excerpt(LAKE, "Where can I hire boats?", 40) == "Boats may be hired at the mill."


def test_of_a_table_the_row_that_fits_best_is_given_with_the_head() -> None:
    assert excerpt(TABLE, "How many people live in Kiel?", 32) == "city | people\nKiel | 246,000"


def test_where_nothing_fits_the_beginning_stays() -> None:
    assert excerpt(LAKE, "火星？", 36) == "Herons stand in the water for hours."


def test_what_is_given_is_never_longer_than_wanted() -> None:
    for most in range(1, len(LAKE)):
        assert len(excerpt(LAKE, "What do herons eat?", most)) <= most
        assert len(excerpt(TABLE, "How many people live in Bonn?", most)) <= most
