"""A figure of a passage that is said of another thing speaks against a sentence; what is true of it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.claims.bound import Tallies
from core.rag.claims.check import check_claims

COUNTED = "The table in orders.csv: 10 of 40 rows fulfil status = open."
ROWS = "The table in orders.csv has 40 rows."
BY_VALUE = "The table in orders.csv: 40 rows by status: open: 10, closed: 30."
HAN = "orders.csv 中的表格：40 行数据中有 10 行满足 status = open。"
TABLE = "item | sold | returned\nbread | 310 | 14\ncake | 120 | 25\nsum | 430 | 39"
YEARS = "| Acme | 2020 | 2021 |\n|---|---|---|\n| Revenue | 100 | 120 |\n| Costs | 90 | 95 |"
ONE_COLUMN = "| status | rows |\n|---|---|\n| open | 10 |\n| closed | 30 |\n| total | 40 |"


def reasons(answer: str, *passages: str) -> list[str]:
    return [one.reason for one in check_claims(answer, passages)]


@pytest.mark.parametrize(
    ("answer", "passages", "reason"),
    [
        ("40 rows have status open. [1]", [COUNTED], "amount: “40”; passage 1: “10”"),
        ("In orders.csv, 40 rows have status open. [1]", [COUNTED, ROWS], "amount: “40”; passage 1: “10”"),
        ("In orders.csv, 40 of 40 rows have status open. [1]", [COUNTED], "amount: “40”; passage 1: “10”"),
        ("40 rows have status open. [1]", [BY_VALUE], "amount: “40”; passage 1: “10”"),
        ("30 rows of orders.csv have status open. [1]", [BY_VALUE], "amount: “30”; passage 1: “10”"),
        ("40 rows have status open. [1]", [ONE_COLUMN], "amount: “40”; passage 1: “10”"),
        ("40 行的 status 是 open。[1]", [HAN], "amount: “40”; passage 1: “10”"),
        ("Of bread 120 loaves were sold. [1]", [TABLE], "amount: “120”; passage 1: “310”"),
        ("25 of the bread were returned. [1]", [TABLE], "amount: “25”; passage 1: “14”"),
        ("Costs were 120 in 2021 at Acme. [1]", [YEARS], "amount: “120”; passage 1: “95”"),
        (
            "Thirty members voted against the plan. [1]",
            ["Twelve of the thirty members voted against the plan."],
            "amount: “Thirty”; passage 1: “Twelve”",
        ),
    ],
)
def test_the_figure_of_another_thing_is_told_with_the_one_of_its_own(
    answer: str, passages: list[str], reason: str
) -> None:
    assert reasons(answer, *passages) == [reason]


@pytest.mark.parametrize(
    ("answer", "passages"),
    [
        ("10 rows have status open. [1]", [COUNTED]),
        ("In orders.csv, 10 of 40 rows have status open. [1]", [COUNTED]),
        ("Of the 40 rows of orders.csv, 10 have status open. [1]", [COUNTED]),
        ("The table in orders.csv has 40 rows. [1]", [COUNTED]),
        ("The table has 40 rows with a status. [1]", [COUNTED]),
        ("In orders.csv, 30 rows have status closed. [1]", [BY_VALUE]),
        ("The 40 rows by status are open or closed. [1]", [BY_VALUE]),
        ("40 rows have status open. [2]", [COUNTED, "The table in all.csv: 40 of 90 rows fulfil status = open."]),
        ("40 行数据中有 10 行的 status 是 open。[1]", [HAN]),
        ("orders.csv 的表格一共有 40 行数据。[1]", [HAN]),
        ("10 行的 status 是 open。[1]", [HAN]),
        ("Of bread 310 loaves were sold and 14 returned. [1]", [TABLE]),
        ("Bread sold 310 times, cake only 120 times. [1]", [TABLE]),
        ("With cake, bread makes up the 430 that were sold. [1]", [TABLE]),
        ("Bread, sold and returned, comes to 324. [1]", [f"{TABLE}\nwine | 324 | 20"]),
        ("120 loaves of bread were sold before noon. [2]", [TABLE, "Before noon 120 loaves of bread were sold."]),
        ("Of bread more than 120 loaves were sold. [1]", [TABLE]),
        ("超过 40 行的 status 不是 open。[1]", [HAN]),
        ("Costs were 95 in 2021 at Acme. [1]", [YEARS]),
        ("Revenue rose from 100 to 120 in 2021 at Acme. [1]", [YEARS]),
        ("Thirty members voted on the plan. [1]", ["Twelve of the thirty members voted against the plan."]),
    ],
)
def test_nothing_speaks_against_a_figure_of_its_own_thing(answer: str, passages: list[str]) -> None:
    assert reasons(answer, *passages) == [""]


PIECES = (
    "10",
    " of ",
    "40 ",
    "rows ",
    "open",
    ": ",
    ", ",
    " | ",
    "\n",
    "status ",
    "中有",
    "行",
    "。",
    "the ",
    ".5",
    "|---|",
)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_can_be_tallied_and_its_own_lines_never_speak_against_it(text: str) -> None:
    Tallies([text])
    assert all(not one.reasons for one in check_claims(text, [text]))


@given(st.integers(10, 400), st.integers(10, 400))
def test_a_part_is_told_from_its_whole_whatever_the_figures_are(one: int, other: int) -> None:
    part, whole = min(one, other), max(one, other)
    passage = f"The table in orders.csv: {part} of {whole} rows fulfil status = open."
    assert reasons(f"{part} rows have status open. [1]", passage) == [""]
    assert bool(reasons(f"{whole} rows have status open. [1]", passage)[0]) == (part != whole)
