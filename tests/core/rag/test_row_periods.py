"""Counts and figures for each month, quarter and year of a column of dates are told by program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from core.languages import Lang
from core.rag.counted import counted
from core.rag.library import Library
from tests.core.rag.shop_rows import CHINESE, TO_CHINESE, Order, held, number, sheet
from tests.core.rag.test_rows_told import told, workbook

MARCH, MAY = date(2024, 3, 1), date(2024, 5, 1)
BY_WORDS = {"retrieval_type": "keyword"}


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", BY_WORDS) as opened:
        yield opened


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("shop")
    with Library.open(folder / "library", BY_WORDS) as opened:
        opened.add(workbook(folder / "shop.xlsx", Orders=sheet()))
        yield opened


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """The same, whose amounts are called revenue."""
    folder = tmp_path_factory.mktemp("sales")
    head = [{"Amount": "Revenue"}.get(one, one) for one in sheet()[0]]
    with Library.open(folder / "library", BY_WORDS) as opened:
        opened.add(workbook(folder / "shop.xlsx", Orders=[head, *sheet()[1:]]))
        yield opened


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("store")
    with Library.open(folder / "library", BY_WORDS) as opened:
        opened.add(workbook(folder / "销售.xlsx", 订单=sheet(CHINESE, TO_CHINESE)))
        yield opened


def figures(library: Library, question: str, lang: Lang = "en") -> list[Any]:
    return [one.computed for one in counted(library, [one.id for one in library.documents()], question, lang).passages]


def month(one: Order) -> str:
    return f"{one.day:%Y-%m}"


def quarter(one: Order) -> str:
    return f"{one.day.year}-Q{(one.day.month + 2) // 3}"


def year(one: Order) -> str:
    return str(one.day.year)


def each(
    when: Callable[[Order], str],
    of: Callable[[list[Order]], float],
    where: Callable[[Order], bool] = bool,
) -> str:
    """A figure for each time, in order."""
    found: dict[str, list[Order]] = {}
    for one in held(where):
        found.setdefault(when(one), []).append(one)
    return ", ".join(number(of(found[key])) for key in sorted(found))


def summed(orders: list[Order]) -> float:
    return sum(one.amount for one in orders)


def mean(orders: list[Order]) -> float:
    return summed(orders) / len(orders)


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("What is the total amount per month?", each(month, summed)),
        ("Total amount by month", each(month, summed)),
        ("What is the total amount for each month?", each(month, summed)),
        ("What is the total amount for each quarter?", each(quarter, summed)),
        ("Sum of amount by quarter", each(quarter, summed)),
        ("total amount per year", each(year, summed)),
        ("What is the average amount by year?", each(year, mean)),
        ("Average amount by quarter", each(quarter, mean)),
        ("What is the average amount for each year?", each(year, mean)),
        ("What is the highest amount in each quarter?", each(quarter, lambda them: max(one.amount for one in them))),
        ("What is the lowest amount by month?", each(month, lambda them: min(one.amount for one in them))),
        ("How many orders per month?", each(month, len)),
        ("How many orders are there per month?", each(month, len)),
        ("How many orders are there in each quarter?", each(quarter, len)),
        ("How many orders by year?", each(year, len)),
        ("Count the orders by quarter", each(quarter, len)),
        ("For each year, how many orders are there?", each(year, len)),
        ("How many open orders per quarter?", each(quarter, len, lambda one: one.status == "open")),
        ("How many orders per month in 2024?", each(month, len, lambda one: one.day.year == 2024)),
        ("Total amount by quarter 2024", each(quarter, summed, lambda one: one.day.year == 2024)),
        ("What is the total amount per month in 2025?", each(month, summed, lambda one: one.day.year == 2025)),
        ("What is the total amount of paid orders by year?", each(year, summed, lambda one: one.status == "paid")),
        ("What is the sum of units per quarter in the East?",
         each(quarter, lambda them: sum(one.units for one in them), lambda one: one.region == "East")),
        ("How many returned orders are there per quarter?", each(quarter, len, lambda one: one.returned == "yes")),
    ],
)  # fmt: skip
def test_a_figure_is_told_for_each_time(shop: Library, question: str, right: str) -> None:
    assert figures(shop, question) == [right]


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("revenue by quarter 2024", each(quarter, summed, lambda one: one.day.year == 2024)),
        ("Revenue per month", each(month, summed)),
        ("Show me the revenue by year", each(year, summed)),
        ("What was the revenue by quarter in the West?", each(quarter, summed, lambda one: one.region == "West")),
        ("units by quarter", None),  # a sum, or how many differ
        ("average revenue by quarter 2024", each(quarter, mean, lambda one: one.day.year == 2024)),
    ],
)
def test_of_revenue_the_sum_is_meant(sales: Library, question: str, right: str | None) -> None:
    assert figures(sales, question) == ([] if right is None else [right])


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("每个月的总金额", each(month, summed)),
        ("每月的总金额是多少？", each(month, summed)),
        ("按月统计金额总和", each(month, summed)),
        ("按季度汇总金额", each(quarter, summed)),
        ("各季度的平均金额", each(quarter, mean)),
        ("每年的订单有多少？", each(year, len)),
        ("每个季度有多少订单？", each(quarter, len)),
        ("2024年每个月的总金额", each(month, summed, lambda one: one.day.year == 2024)),
        ("按月统计2024年未付订单的金额总和",
         each(month, summed, lambda one: one.day.year == 2024 and one.status == "open")),
    ],
)  # fmt: skip
def test_so_it_is_in_chinese(store: Library, question: str, right: str) -> None:
    assert figures(store, question, "zh") == [right]


@pytest.mark.parametrize(
    "question",
    [
        "What is the average amount per month?",  # one number may be meant
        "How many orders were returned per quarter?",  # ordered in it, or returned
        "What is the total amount per week?",
        "What is the total amount per day?",
        "What is the total amount per fiscal year?",
        "What is the total amount of the month?",
        "What is the total amount last month?",
        "What is the total amount per month and region?",
        "What is the total amount per region and month?",
        "How many orders are there in the month?",
        "Which month has the highest total amount?",
        "How many orders per month on average?",
        "What is the total amount in quarter 2024?",
        "What is the total amount per quarter 3?",
        "How many months have orders?",
        "amount by month",
        "What is the total status per month?",
        "What is the total amount by month or year?",
        "前三个月的总金额",
        "3月的总金额是多少？",
        "每个月有多少？",
    ],
)
def test_what_leaves_a_doubt_is_left_to_the_model(shop: Library, question: str) -> None:
    assert figures(shop, question) == []


def test_the_sentence_says_of_which_dates_the_months_are(library: Library, tmp_path: Path) -> None:
    rows = [
        ["Bill", "Due", "Cost"],
        ["a", date(2024, 3, 1), 2],
        ["b", date(2023, 3, 9), 4],
        ["c", date(2024, 3, 30), 5],
    ]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert told(library, "What is the total cost per month?") == [
        "Sheet Bills: the sum of Cost by month of Due: 2023-03: 4, 2024-03: 7 (3 rows)."
    ]
    assert told(library, "How many bills per quarter?") == [
        "Sheet Bills: 3 rows by quarter of Due: 2023-Q1: 1, 2024-Q1: 2."
    ]
    assert told(library, "按年统计bills数量", "zh") == ["工作表 Bills：3 行数据按 Due 的年份 分：2023：1，2024：2。"]


def test_a_column_that_is_called_so_is_meant_before_the_dates(library: Library, tmp_path: Path) -> None:
    rows = [["Bill", "Due", "Month", "Cost"], ["a", date(2024, 3, 1), "May", 2], ["b", date(2024, 4, 9), "May", 4]]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert told(library, "What is the total cost per month?") == [
        "Sheet Bills: the sum of Cost by Month: May: 6 (2 rows)."
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [["Bill", "Due", "Paid", "Cost"], ["a", MARCH, MAY, 2], ["b", MAY, MAY, 4]],
        [["Bill", "Due", "Cost"], ["a", date(2024, 3, 1), 2], ["b", "", 4], ["c", date(2024, 3, 2), 4]],
        [["Bill", "Due", "Cost"], ["a", "in spring", 2], ["b", "later", 4]],
        [["Bill", "Cost"], ["a", 2], ["b", 4]],
        [["Bill", "Due", "Cost", "Currency"], ["a", date(2024, 3, 1), 2, "EUR"], ["b", date(2024, 4, 1), 4, "USD"]],
        [["Bill", "Due", "Cost"], *([f"b{at}", date(2000 + at // 12, at % 12 + 1, 1), at] for at in range(26))],
    ],
    ids=["two dates", "a blank", "no dates", "none", "currencies", "too many"],
)  # fmt: skip
def test_where_dates_or_amounts_leave_a_doubt_nothing_is_told(
    library: Library, tmp_path: Path, rows: list[list[Any]]
) -> None:
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert figures(library, "What is the total cost per month?") == []


def test_times_of_a_day_belong_to_their_month(library: Library, tmp_path: Path) -> None:
    (tmp_path / "bills.csv").write_text("Bill,Day,Cost\na,2024-03-31 23:59,2\nb,2024-04-01 00:00,4\n", "utf-8")
    library.add(tmp_path / "bills.csv")
    assert figures(library, "What is the total cost per month?") == ["2, 4"]


def test_all_rows_are_in_one_of_the_quarters() -> None:
    assert sum(Counter(map(quarter, held(bool))).values()) == len(held(bool))
