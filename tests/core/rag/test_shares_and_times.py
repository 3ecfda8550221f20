"""Shares of rows, and times that name no column, are told by program where it is clear what they are of."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from core.rag.counted import counted
from core.rag.library import Library
from core.rag.row_values import percent
from tests.core.rag.test_plain_wordings import TICKETS
from tests.core.rag.test_rows_told import CHINESE, told, workbook


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as opened:
        yield opened


@pytest.fixture(scope="module")
def tickets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("tickets")
    (folder / "tickets.csv").write_text(TICKETS, encoding="utf-8")
    with Library.open(folder / "library", {"retrieval_type": "keyword"}) as opened:
        opened.add(folder / "tickets.csv")
        yield opened


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("store")
    with Library.open(folder / "library", {"retrieval_type": "keyword"}) as opened:
        opened.add(workbook(folder / "销售.xlsx", 订单=CHINESE))
        yield opened


OPEN = "2 of 6 rows fulfil status = open, which is 33.3 %."


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("What percentage of tickets are open?", OPEN),
        ("What % of the tickets are open?", OPEN),
        ("What is the percentage of open tickets?", OPEN),
        ("Which share of rows has status open?", OPEN),
        ("What proportion of tickets have an amount over 100?", "3 of 6 rows fulfil amount > 100, which is 50 %."),
        ("What percentage of tickets were before April 2026?", "2 of 6 rows fulfil date < 2026-04, which is 33.3 %."),
        ("What is the total number of open tickets?", "2 of 6 rows fulfil status = open."),
        ("How many tickets are closed and in West?", "2 of 6 rows fulfil status = closed and region = West."),
        ("How many tickets in 2026?", "6 of 6 rows fulfil date = 2026."),
        ("How many tickets since March 2026?", "5 of 6 rows fulfil date ≥ 2026-03."),
        ("What is the total amount in March 2026?",
         "the sum of amount is 75 (1 of 6 rows, those with date = 2026-03)."),
        ("What is the total amount of tickets between 2026-01-27 and 2026-04-23?",
         "the sum of amount is 375 (3 of 6 rows, those with 2026-01-27 ≤ date ≤ 2026-04-23)."),
        ("What is the total amount of closed tickets from April 2026 to September 2026?",
         "the sum of amount is 350 (2 of 6 rows, those with status = closed and 2026-04 ≤ date ≤ 2026-09)."),
        ("What is the total amount by status in 2026?",
         "the sum of amount by status: closed: 600, open: 475, pending: 100 (6 of 6 rows, those with date = 2026)."),
    ],
)  # fmt: skip
def test_shares_and_times_are_told(tickets: Library, question: str, says: str) -> None:
    assert told(tickets, question) == [f"The table in tickets.csv: {says}"]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("未付订单的比例是多少？", "4 行数据中有 3 行满足 状态 = 未付，占 75 %。"),
        ("未付的订单占比是多少？", "4 行数据中有 3 行满足 状态 = 未付，占 75 %。"),
        ("未付订单占多少百分比？", "4 行数据中有 3 行满足 状态 = 未付，占 75 %。"),
        ("2024年4月之前的订单有多少？", "4 行数据中有 2 行满足 日期 < 2024-04。"),
        ("2024年1月到2024年3月的总金额", "金额 的总和是 2,000（4 行数据中的 2 行，条件：2024-01 ≤ 日期 ≤ 2024-03）。"),
    ],
)
def test_so_they_are_in_chinese(store: Library, question: str, says: str) -> None:
    assert told(store, question, "zh") == [f"工作表 订单：{says}"]


@pytest.mark.parametrize(
    "question",
    [
        "What percentage of closed tickets are in West?",  # of all, or of closed ones
        "What percentage of tickets in West are closed?",
        "What percentage of tickets are late?",
        "What percentage of tickets are not open?",
        "What percentage of tickets?",
        "What percentage of the amount is open?",
        "What percentage of the total amount is open?",
        "What percentage of tickets is from each region?",
        "How many tickets have an amount in 2026?",
        "How many tickets have 2026?",
        "How many tickets over March 2026?",
        "How many tickets in 3026?",
        "How many tickets since 2026?",
        "地区的比例是多少？",
    ],
)
def test_what_leaves_a_doubt_is_left_to_the_model(tickets: Library, question: str) -> None:
    assert told(tickets, question) == []


def test_the_share_and_the_rows_that_have_it_go_along(tickets: Library) -> None:
    (passage,) = counted(
        tickets, [one.id for one in tickets.documents()], "What percentage of tickets are open?"
    ).passages
    assert (passage.computed, passage.rows) == ("33.3 %", "5, 7")


@pytest.mark.parametrize(
    ("some", "of", "says"),
    [(0, 7, "0"), (7, 7, "100"), (1, 3, "33.3"), (1, 8, "12.5"), (1, 3_000, "0.03"), (2_999, 3_000, "99.97")],
)
def test_a_share_looks_like_none_or_all_only_where_it_is(some: int, of: int, says: str) -> None:
    assert percent(some, of) == says


def tell(library: Library, folder: Path, question: str, *rows: list[Any]) -> list[str]:
    """What is told of a workbook of one sheet, called Bills."""
    library.add(workbook(folder / "bills.xlsx", Bills=rows))
    return [one.removeprefix("Sheet Bills: ") for one in told(library, question)]


def test_cells_that_are_blank_leave_the_whole_open(library: Library, tmp_path: Path) -> None:
    rows: list[list[Any]] = [["Bill", "Hours", "State"], ["a", 1, "open"], ["b", "", "open"], ["c", 5, "paid"]]
    assert tell(library, tmp_path, "What percentage of bills have hours over 2?", *rows) == []
    assert told(library, "What percentage of bills are paid?") == [
        "Sheet Bills: 1 of 3 rows fulfil State = paid, which is 33.3 %."
    ]


def test_of_what_stands_in_several_rows_no_share_is_told(library: Library, tmp_path: Path) -> None:
    rows = [["Bill ID", "Item", "State"], ["A", "pen", "open"], ["A", "ink", "open"], ["B", "pen", "paid"]]
    assert tell(library, tmp_path, "What percentage of bills are open?", *rows) == []
    assert told(library, "What percentage of rows have state open?") == [
        "Sheet Bills: 2 of 3 rows fulfil State = open, which is 66.7 %."
    ]


def test_a_time_is_not_told_where_another_column_may_be_meant(library: Library, tmp_path: Path) -> None:
    day = date(2024, 3, 1)
    rows = [["Bill", "Day", "Paid", "Cost"], ["a", day, date(2025, 1, 2), 2], ["b", day, day, 4]]
    assert tell(library, tmp_path, "What is the total cost in 2024?", *rows) == []
    assert told(library, "What is the total cost since March 2024?") == []
    library.add(workbook(tmp_path / "years.xlsx", Costs=[["Item", "Day", "Year", "Price"], ["a", day, 2023, 2]]))
    assert told(library, "What is the total price in 2024?") == []
    assert told(library, "What is the total price where year is 2023?") == [
        "Sheet Costs: the sum of Price is 2 (1 of 1 row, those with Year = 2,023)."
    ]
