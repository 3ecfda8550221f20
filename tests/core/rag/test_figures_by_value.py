"""Sums, averages and extremes for each value of a column are told by program, where each word and cell is clear."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.rag.counted import counted
from core.rag.library import Library
from tests.core.rag.test_plain_wordings import TICKETS
from tests.core.rag.test_rows_told import CHINESE, ORDERS, told, workbook


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
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("shop")
    with Library.open(folder / "library", {"retrieval_type": "keyword"}) as opened:
        opened.add(workbook(folder / "shop.xlsx", Orders=ORDERS))
        yield opened


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("store")
    with Library.open(folder / "library", {"retrieval_type": "keyword"}) as opened:
        opened.add(workbook(folder / "销售.xlsx", 订单=CHINESE))
        yield opened


AVERAGES = "the average of amount by status: open: 237.5, closed: 200, pending: 100 (6 rows)."
SUMS = "the sum of amount by region: North: 400, South: 400, West: 375 (6 rows)."
HIGHEST = "the highest value of amount by region: North: 400, South: 300, West: 250 (6 rows)."


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("What is the average amount per status?", AVERAGES),
        ("What is the average amount of tickets by status?", AVERAGES),
        ("For each status, what is the average amount of the tickets?", AVERAGES),
        ("What is the total amount for each region?", SUMS),
        ("sum of amount by region", SUMS),
        ("Total amount per region", SUMS),
        ("Sum up the amount, grouped by region", SUMS),
        ("What is the highest amount in each region?", HIGHEST),
        ("Show me the max amount by region", HIGHEST),
        ("What is the largest amount per region?", HIGHEST),
        ("What is the minimum amount by status?",
         "the lowest value of amount by status: pending: 100, open: 75, closed: 50 (6 rows)."),
        ("What is the median amount per status?",
         "the median of amount by status: closed: 250, open: 237.5, pending: 100 (6 rows)."),
        ("What is the average amount of closed tickets per region?",
         "the average of amount by region: South: 300, West: 150 (3 of 6 rows, those with status = closed)."),
        ("What is the total amount per status where amount is over 100?",
         "the sum of amount by status: closed: 550, open: 400 (3 of 6 rows, those with amount > 100)."),
    ],
)  # fmt: skip
def test_a_figure_is_told_for_each_value_of_a_column(tickets: Library, question: str, says: str) -> None:
    assert told(tickets, question) == [f"The table in tickets.csv: {says}"]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("每个地区的总金额", "金额 的总和按 地区 分：华南：2,500.5，华北：2,000，华东：900（4 行数据）。"),
        ("各地区金额合计是多少？", "金额 的总和按 地区 分：华南：2,500.5，华北：2,000，华东：900（4 行数据）。"),
        ("按地区汇总金额", "金额 的总和按 地区 分：华南：2,500.5，华北：2,000，华东：900（4 行数据）。"),
        ("按状态统计平均金额", "金额 的平均值按 状态 分：未付：1,533.5，已付：800（4 行数据）。"),
        ("各状态订单的平均金额是多少？", "金额 的平均值按 状态 分：未付：1,533.5，已付：800（4 行数据）。"),
        ("每个状态的最高金额", "金额 的最大值按 状态 分：未付：2,500.5，已付：800（4 行数据）。"),
        ("未付订单按地区的总金额",
         "金额 的总和按 地区 分：华南：2,500.5，华北：1,200，华东：900（4 行数据中的 3 行，条件：状态 = 未付）。"),
    ],
)  # fmt: skip
def test_so_it_is_in_chinese(store: Library, question: str, says: str) -> None:
    assert told(store, question, "zh") == [f"工作表 订单：{says}"]


@pytest.mark.parametrize(
    "question",
    [
        "What is the average amount per ticket?",  # one number
        "What is the average amount for each ticket?",
        "What is the average amount by status of closed tickets?",
        "What is the total amount per status and region?",
        "What is the total amount per region South?",
        "What is the total amount per late status?",
        "What is the total amount per status over 100?",
        "What is the sum of region by status?",
        "What is the total per status?",
        "What is the total amount per amount?",
        "What is the total amount per week?",
        "What is the largest amount by region?",  # that region may be meant whose amounts add up to the most
        "What is the ticket with the highest amount per region?",
        "Which ticket has the highest amount in each region?",
        "How much amount is there per status?",
    ],
)
def test_where_something_else_may_be_meant_it_is_left_to_the_model(tickets: Library, question: str) -> None:
    assert told(tickets, question) == []


def test_one_average_over_all_customers_is_not_told_as_those_of_each(shop: Library, store: Library) -> None:
    assert told(shop, "What is the average amount per customer?") == []
    assert told(store, "平均每个客户的金额是多少？", "zh") == []
    assert told(store, "每个客户平均金额是多少？", "zh") == []
    assert told(store, "各客户的平均金额是多少？", "zh") == [
        "工作表 订单：金额 的平均值按 客户 分：张三：1,850.25，王五：900，李四：800（4 行数据）。"
    ]
    assert told(store, "每个客户的总金额是多少？", "zh") == [
        "工作表 订单：金额 的总和按 客户 分：张三：3,700.5，王五：900，李四：800（4 行数据）。"
    ]
    assert told(shop, "What is the average amount for each customer?") == [
        "Sheet Orders: the average of Amount by Customer: Anna Meyer: 1,850.25, Jo Smith: 900, Li Wei: 900 (5 rows)."
    ]
    assert told(shop, "What is the total amount per customer?") == [
        "Sheet Orders: the sum of Amount by Customer: Anna Meyer: 3,700.5, Li Wei: 1,800, Jo Smith: 900 (5 rows)."
    ]


def test_all_of_the_figures_and_their_rows_go_along(tickets: Library) -> None:
    ids = [one.id for one in tickets.documents()]
    for question, figures, rows in (
        ("What is the average amount per status?", "237.5, 200, 100", "2–7"),
        ("What is the highest amount of closed tickets per region?", "300, 250", "3–4, 6"),
    ):
        (passage,) = counted(tickets, ids, question).passages
        assert (passage.computed, passage.rows) == (figures, rows)


def tell(library: Library, folder: Path, question: str, *rows: list[Any]) -> list[str]:
    """What is told of a workbook of one sheet, called Bills."""
    library.add(workbook(folder / "bills.xlsx", Bills=rows))
    return [one.removeprefix("Sheet Bills: ") for one in told(library, question)]


def test_cells_without_a_number_are_told_with_their_value(library: Library, tmp_path: Path) -> None:
    rows = [["a", "open", 1], ["b", "open", ""], ["c", "due", ""], ["d", "paid", 5], ["e", "paid", 2], ["f", "paid", 3]]
    assert tell(library, tmp_path, "What is the sum of hours by status?", ["Bill", "Status", "Hours"], *rows) == [
        "the sum of Hours by Status: paid: 10, open: 1 (1 without a number), due: no number (1 without a number) (6 rows)."  # noqa: E501 - as it is read
    ]


def test_nothing_is_told_where_cells_hold_other_text(library: Library, tmp_path: Path) -> None:
    rows = [[f"b{at}", "open", at] for at in range(30)]
    assert (
        tell(library, tmp_path, "Sum of hours by status", ["Bill", "Status", "Hours"], *rows, ["x", "due", "?"]) == []
    )


def test_units_are_told_and_shares_are_not_added_up(library: Library, tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text(
        'Name,Rate,Cost,Area\nA,5%,"€ 1,200.50",x\nB,7%,€ 20.25,y\nC,9%,"€ 3,000.00",x\n', encoding="utf-8"
    )
    library.add(tmp_path / "rates.csv")
    table = "The table in rates.csv: "
    costs = "the sum of Cost by Area: x: 4,200.5 €, y: 20.25 € (3 rows)."
    assert told(library, "Total cost per area") == [f"{table}{costs}"]
    assert told(library, "Average rate per area") == [f"{table}the average of Rate by Area: x: 7 %, y: 7 % (3 rows)."]
    assert told(library, "Total rate per area") == []


def test_several_currencies_are_told_apart_and_never_added_up(library: Library, tmp_path: Path) -> None:
    rows = [
        ["Bill", "Amount", "Currency", "Paid"],
        ["a", 1, "EUR", "yes"],
        ["b", 2, "USD", "yes"],
        ["c", 4, "USD", "no"],
    ]
    assert tell(library, tmp_path, "Total amount by paid", *rows) == []
    assert told(library, "Total amount per currency") == [
        "Sheet Bills: the sum of Amount by Currency: USD: 6, EUR: 1 (3 rows)."
    ]


@pytest.mark.parametrize(
    ("values", "is_told"),
    [
        (["open", "open", "paid"], True),
        (["open", "open", ""], False),  # a blank cell may stand for the one above it
        (["open", "Open", "paid"], False),
        (["open", "paid", "open, paid"], False),
        ([f"state {at // 2}" for at in range(24)], True),
        ([f"state {at // 2}" for at in range(26)], False),  # too many to be told
        ([2024, 2024, 2025], True),
        ([0.5, 0.5, 1.5], False),  # an amount
    ],
)
def test_values_that_leave_a_doubt_have_no_figures(
    library: Library, tmp_path: Path, values: list[Any], is_told: bool
) -> None:
    rows = [[f"b{at}", value, at] for at, value in enumerate(values)]
    assert bool(tell(library, tmp_path, "Sum of hours by state", ["Bill", "State", "Hours"], *rows)) is is_told


def test_a_number_behind_per_makes_a_ratio_unless_it_is_a_year(library: Library, tmp_path: Path) -> None:
    rows = [["Bill", "Cost", "Hours", "Year"], ["a", 5, 1, 2024], ["b", 7, 2, 2025], ["c", 9, 2, 2025]]
    assert tell(library, tmp_path, "What is the total cost per hours?", *rows) == []
    assert told(library, "What is the total cost per year?") == [
        "Sheet Bills: the sum of Cost by Year: 2025: 16, 2024: 5 (3 rows)."
    ]
    assert told(library, "What is the average cost per year?") == []
    assert told(library, "What is the average cost by year?") == [
        "Sheet Bills: the average of Cost by Year: 2025: 8, 2024: 5 (3 rows)."
    ]


def test_numbers_of_orders_have_no_sum_and_what_stands_in_several_rows_no_average(
    library: Library, tmp_path: Path
) -> None:
    rows = [["Order ID", "State", "Cost"], [1001, "open", 2], [1001, "open", 4], [1002, "paid", 9], [1003, "paid", 1]]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=rows))
    assert told(library, "What is the total order id by state?") == []
    assert told(library, "What is the average cost of orders by state?") == []
    assert told(library, "What is the total cost of orders by state?") == [
        "Sheet Orders: the sum of Cost by State: paid: 10, open: 6 (4 rows)."
    ]
