"""An amount that a passage gives for another year speaks against a sentence; one of its own year does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.claims.check import check_claims
from core.rag.claims.dated import other_year
from core.rag.claims.said import Said

SHARE = "The share of wind power in Norland rose from 3 % in 2010 to 5 % in 2020."
HAN = "北国的失业率从2010年的3%升至2020年的5%。"
EACH = "In 2010 the club had 310 members; in 2020 it had 540 members."
TWICE = "The share was 3 % in 2010 and 5 % in 2020 in Norland, and 5 % in 2010 and 3 % in 2020 in Southland."


def reasons(answer: str, *passages: str) -> list[str]:
    return [one.reason for one in check_claims(answer, passages)]


@pytest.mark.parametrize(
    ("answer", "passage", "reason"),
    [
        ("The share of wind power in Norland rose from 5 % in 2010 to 3 % in 2020. [1]", SHARE, "amount: “5 %”"),
        ("The share of wind power in Norland was 5 % in 2010. [1]", SHARE, "amount: “5 %”"),
        ("In Norland, wind power had a share of 3 % in the year 2020. [1]", SHARE, "amount: “3 %”"),
        ("In 2010, wind power in Norland had 5 % as its share. [1]", SHARE, "amount: “5 %”"),
        ("北国的失业率从2010年的5%降至2020年的3%。[1]", HAN, "amount: “5%”"),
        ("北国2010年的失业率为5%。[1]", HAN, "amount: “5%”"),
        ("The club had 540 members in 2010. [1]", EACH, "amount: “540”"),
        ("In 2020 the club had 310 members. [1]", EACH, "amount: “310”"),
    ],
)
def test_the_amount_of_another_year_is_told_with_the_one_of_its_own(answer: str, passage: str, reason: str) -> None:
    (said,) = reasons(answer, passage)
    assert said.startswith(f"{reason}; passage 1: ")


@pytest.mark.parametrize(
    ("answer", "passages"),
    [
        ("The share of wind power in Norland was 3 % in 2010 and 5 % in 2020. [1]", [SHARE]),
        ("In 2020 the share of wind power in Norland was 5 %, and in 2010 it was 3 %. [1]", [SHARE]),
        ("The share of wind power in Norland rose to 5 % between 2010 and 2020. [1]", [SHARE]),
        ("From 2010 to 2020 the share of wind power in Norland rose from 3 % to 5 %. [1]", [SHARE]),
        ("北国在2020年的失业率为5%，而2010年为3%。[1]", [HAN]),
        ("The club had 310 members in 2010 and 540 in 2020. [1]", [EACH]),
        ("In Southland the share was 5 % in 2010. [1]", [TWICE]),
        ("The share was 5 % in 2010 in Southland. [1]", [SHARE, "In Southland the share was 5 % in 2010."]),
        ("Wind power in Norland had some 5 % in 2020, after 3 % in 2010. [1]", [SHARE]),
    ],
)
def test_nothing_speaks_against_an_amount_of_its_own_year(answer: str, passages: list[str]) -> None:
    assert reasons(answer, *passages) == [""]


YEARS = st.integers(1900, 2099)
SHARES = st.integers(1, 99)


@given(st.tuples(SHARES, SHARES), st.tuples(YEARS, YEARS))
def test_of_two_shares_and_two_years_the_exchanged_ones_are_found_and_the_others_not(
    shares: tuple[int, int], years: tuple[int, int]
) -> None:
    if len(set(shares)) < 2 or len(set(years)) < 2:
        return
    said = "The share went from {} % in {} to {} % in {}."
    near = Said(said.format(shares[0], years[0], shares[1], years[1]), 1)
    assert other_year(near, near, [near]) == []
    assert other_year(Said(said.format(shares[1], years[1], shares[0], years[0])), near, [near]) == []
    found = other_year(Said(said.format(shares[1], years[0], shares[0], years[1])), near, [near])
    assert [one.words for one in found] == [f"{one} %" for one in reversed(shares)]
