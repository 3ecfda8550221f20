"""Plain wordings of questions on rows are understood: a value before its thing, the highest one, counts by value."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from core.rag.counted import counted
from core.rag.library import Library
from tests.core.rag.test_rows_told import CHINESE, told, workbook


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as opened:
        yield opened


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("store")
    with Library.open(folder / "library", {"retrieval_type": "keyword"}) as opened:
        opened.add(workbook(folder / "销售.xlsx", 订单=CHINESE))
        yield opened


TICKETS = (
    "ticket,region,status,amount,date\n"
    "T-1,South,pending,100,2026-06-20\nT-2,West,closed,250,2026-01-27\nT-3,West,closed,50,2026-04-23\n"
    "T-4,North,open,400,2026-08-13\nT-5,South,closed,300,2026-09-13\nT-6,West,open,75,2026-03-25\n"
)


@pytest.fixture(scope="module")
def tickets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("tickets")
    (folder / "tickets.csv").write_text(TICKETS, encoding="utf-8")
    with Library.open(folder / "library", {"retrieval_type": "keyword"}) as opened:
        opened.add(folder / "tickets.csv")
        yield opened


CLOSED = "the average of amount is 200 (3 of 6 rows, those with status = closed)."
T4 = "row 5: ticket: T-4, region: North, status: open, amount: 400, date: 2026-08-13."
T5 = "row 6: ticket: T-5, region: South, status: closed, amount: 300, date: 2026-09-13."
BY_STATUS = "6 rows by status: closed: 3, open: 2, pending: 1."


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("What is the average amount of closed tickets?", CLOSED),
        ("What is the average amount of tickets that are closed?", CLOSED),
        ("What is the average amount of tickets with status closed?", CLOSED),
        ("What is the total amount of closed tickets in South?",
         "the sum of amount is 300 (1 of 6 rows, those with status = closed and region = South)."),
        ("What is the average amount of closed South tickets?",
         "the average of amount is 300 (1 of 6 rows, those with status = closed and region = South)."),
        ("How many closed tickets are there?", "3 of 6 rows fulfil status = closed."),
        ("What is the total amount of T-4?", "the sum of amount is 400 (1 of 6 rows, those with ticket = T-4)."),
        ("Which ticket has the highest amount?", f"the highest value of amount is 400, in {T4}"),
        ("Which closed ticket has the highest amount?",
         f"the highest value of amount with status = closed is 300, in {T5}"),
        ("Which is the ticket with the highest amount?", f"the highest value of amount is 400, in {T4}"),
        ("What is the ticket with the highest amount?", f"the highest value of amount is 400, in {T4}"),
        ("Show me the closed ticket with the highest amount.",
         f"the highest value of amount with status = closed is 300, in {T5}"),
        ("What is the largest ticket by amount?", f"the highest value of amount is 400, in {T4}"),
        ("What is the largest closed ticket by amount?",
         f"the highest value of amount with status = closed is 300, in {T5}"),
        ("Which ticket is the largest by amount?", f"the highest value of amount is 400, in {T4}"),
        ("How many tickets per status?", BY_STATUS),
        ("How many tickets are there per status?", BY_STATUS),
        ("How many tickets are there for each status?", BY_STATUS),
        ("For each status, how many tickets are there?", BY_STATUS),
        ("How many tickets does each status have?", BY_STATUS),
        ("What is the number of tickets by status?", BY_STATUS),
        ("Count the rows by status", BY_STATUS),
        ("How many closed tickets per region?", "3 of 6 rows fulfil status = closed, by region: West: 2, South: 1."),
        ("How many tickets per region are closed?",
         "3 of 6 rows fulfil status = closed, by region: West: 2, South: 1."),
        ("How many tickets per status have an amount over 100?",
         "3 of 6 rows fulfil amount > 100, by status: closed: 2, open: 1."),
    ],
)  # fmt: skip
def test_plain_wordings_are_understood(tickets: Library, question: str, says: str) -> None:
    assert told(tickets, question) == [f"The table in tickets.csv: {says}"]


JIA3 = "第 4 行：订单号: 甲3，客户: 张三，地区: 华南，状态: 未付，金额: 2,500.5，日期: 2024-04-02。"
JIA2 = "第 3 行：订单号: 甲2，客户: 李四，地区: 华北，状态: 已付，金额: 800，日期: 2024-03-15。"


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("金额最高的订单是哪一个？", f"金额 的最大值是 2,500.5，在{JIA3}"),
        ("金额最高的订单是哪个？", f"金额 的最大值是 2,500.5，在{JIA3}"),
        ("金额最高的订单是哪一条？", f"金额 的最大值是 2,500.5，在{JIA3}"),
        ("金额最高的是哪个订单？", f"金额 的最大值是 2,500.5，在{JIA3}"),
        ("最高金额的订单是哪个？", f"金额 的最大值是 2,500.5，在{JIA3}"),
        ("订单中金额最高的是哪一个？", f"金额 的最大值是 2,500.5，在{JIA3}"),
        ("华北金额最低的订单是哪一个？", f"金额 的最小值（条件：地区 = 华北）是 800，在{JIA2}"),
        ("哪个已付的订单金额最高？", f"金额 的最大值（条件：状态 = 已付）是 800，在{JIA2}"),
        ("已付的订单中金额最高的是哪一个？", f"金额 的最大值（条件：状态 = 已付）是 800，在{JIA2}"),
        ("已付订单的平均金额是多少？", "金额 的平均值是 800（4 行数据中的 1 行，条件：状态 = 已付）。"),
        ("每个状态有多少订单？", "4 行数据按 状态 分：未付：3，已付：1。"),
        ("每个状态各有多少个订单？", "4 行数据按 状态 分：未付：3，已付：1。"),
        ("各状态有多少订单？", "4 行数据按 状态 分：未付：3，已付：1。"),
        ("各状态的订单数量是多少？", "4 行数据按 状态 分：未付：3，已付：1。"),
        ("各个状态分别有多少行？", "4 行数据按 状态 分：未付：3，已付：1。"),
        ("按状态统计订单数量", "4 行数据按 状态 分：未付：3，已付：1。"),
        ("订单按状态各有多少？", "4 行数据按 状态 分：未付：3，已付：1。"),
        ("各地区未付的订单有多少？", "4 行数据中有 3 行满足 状态 = 未付，按 地区 分：华东：1，华北：1，华南：1。"),
    ],
)
def test_so_are_they_in_chinese(store: Library, question: str, says: str) -> None:
    assert told(store, question, "zh") == [f"工作表 订单：{says}"]


@pytest.mark.parametrize(
    "question",
    [
        "What is the average amount of closed regions?",
        "What is the average amount of late tickets?",
        "What is the average amount of tickets that are not late?",
        "What is the amount of the closed ticket?",
        "Which region has the highest amount?",
        "Which closed region has the highest amount?",
        "Is the ticket with the highest amount closed?",
        "What is the status of the ticket with the highest amount?",
        "Which ticket is the largest by status?",
        "Which ticket is the largest?",
        "How many per status?",  # tickets, or their amounts
        "每个status有多少？",
        "How many tickets per status and region?",
        "How many tickets per week?",
        "How many tickets per status are open?",
        "How many tickets per region South?",
        "How many tickets by South?",
        "How many tickets per late status?",
        "How many regions per status?",
        "How many amounts per status?",
        "How many tickets per ticket?",
        "Which status has the most tickets per region?",
        "金额最高的地区是哪一个？",
        "每个状态的金额是多少？",
        "每个状态的平均金额是多少？",
        "每个月有多少？",
    ],
)
def test_relatives_of_these_that_leave_a_doubt_are_left_to_the_model(tickets: Library, question: str) -> None:
    assert told(tickets, question) == []


def test_which_figure_is_the_answer_goes_along_with_plain_wordings(tickets: Library) -> None:
    ids = [one.id for one in tickets.documents()]
    for question, figure, rows in (
        ("What is the average amount of closed tickets?", "200", "3–4, 6"),
        ("What is the ticket with the highest amount?", "T-4", "5"),
        ("How many tickets per status?", "3, 2, 1", "2–7"),
        ("How many closed tickets per region?", "2, 1", "3–4, 6"),
    ):
        (passage,) = counted(tickets, ids, question).passages
        assert (passage.computed, passage.rows) == (figure, rows)


def test_a_column_may_be_called_as_the_sheet_is(library: Library, tmp_path: Path) -> None:
    rows = [["订单", "状态", "金额"], ["甲", "已付", 5], ["乙", "未付", 9], ["丙", "已付", 7]]
    library.add(workbook(tmp_path / "订单.xlsx", Sheet1=rows))
    assert told(library, "金额最高的订单是哪一个？", "zh") == [
        "工作表 Sheet1：金额 的最大值是 9，在第 3 行：订单: 乙，状态: 未付，金额: 9。"
    ]
    assert told(library, "已付订单的平均金额是多少？", "zh") == [
        "工作表 Sheet1：金额 的平均值是 6（3 行数据中的 2 行，条件：状态 = 已付）。"
    ]
    assert told(library, "每个状态有多少订单？", "zh") == ["工作表 Sheet1：3 行数据按 状态 分：已付：2，未付：1。"]


def test_the_first_column_names_what_rows_are_where_nothing_is_called_so(library: Library, tmp_path: Path) -> None:
    rows = [
        ["Order", "Manager", "State", "Cost"],
        ["a", "Jo", "open", 2],
        ["b", "Al", "open", 4],
        ["c", "Li", "paid", 9],
    ]
    library.add(workbook(tmp_path / "sales.xlsx", Sheet1=rows))
    assert told(library, "What is the average cost of open orders?") == [
        "Sheet Sheet1: the average of Cost is 3 (2 of 3 rows, those with State = open)."
    ]
    assert told(library, "What is the average cost of open managers?") == []


def test_what_stands_in_several_rows_has_no_average_extreme_or_count_by_its_rows(
    library: Library, tmp_path: Path
) -> None:
    rows = [["Order", "State", "Cost"], ["a", "open", 2], ["a", "open", 4], ["b", "paid", 5], ["c", "paid", 1]]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=rows))
    assert told(library, "What is the average cost of open orders?") == []
    assert told(library, "Which order has the highest cost?") == []
    assert told(library, "What is the order with the highest cost?") == []
    assert told(library, "How many orders per state?") == []
    assert told(library, "What is the total cost of open orders?") == [
        "Sheet Orders: the sum of Cost is 6 (2 of 4 rows, those with State = open)."
    ]
    assert told(library, "How many rows per state?") == ["Sheet Orders: 4 rows by State: open: 2, paid: 2."]


@pytest.mark.parametrize(
    "values",
    [
        ["open", "paid", ""],  # a blank cell may stand for the one above it
        ["open", "Open", "paid"],  # one value, or two
        ["open", "paid", "open, paid"],  # it may count for both
        ["open; late", "paid; late", "paid"],
        ["open", "paid", "open and paid"],
        [f"state {at}" for at in range(13)],  # too many to be told
    ],
)
def test_a_count_by_values_is_not_told_where_these_leave_a_doubt(
    library: Library, tmp_path: Path, values: list[str]
) -> None:
    rows = [["Order", "State", "Kind"], *([f"o{at}", value, "x"] for at, value in enumerate(values))]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=rows))
    assert told(library, "How many orders per state?") == []
    assert told(library, "How many orders per kind?") == [
        f"Sheet Orders: {len(values)} rows by Kind: x: {len(values)}."
    ]


def test_how_many_without_a_thing_means_rows_where_no_column_has_numbers(library: Library, tmp_path: Path) -> None:
    rows = [["Task", "State"], ["a", "open"], ["b", "done"], ["c", "open"]]
    library.add(workbook(tmp_path / "tasks.xlsx", Tasks=rows))
    assert told(library, "How many per state?") == ["Sheet Tasks: 3 rows by State: open: 2, done: 1."]
    assert told(library, "各state有多少？", "zh") == ["工作表 Tasks：3 行数据按 State 分：open：2，done：1。"]


def test_rows_that_stand_for_many_are_not_counted_by_values(library: Library, tmp_path: Path) -> None:
    rows = [["Region", "Kind", "Number of Visits"], ["North", "day", 7], ["South", "night", 5], ["East", "day", 2]]
    library.add(workbook(tmp_path / "visits.xlsx", Visits=rows))
    assert told(library, "How many visits per kind?") == []
    assert told(library, "How many per kind?") == []
    assert told(library, "How many rows per kind?") == ["Sheet Visits: 3 rows by Kind: day: 2, night: 1."]


def test_two_files_that_fit_leave_open_which_is_meant_only_where_none_is_named(
    library: Library, tmp_path: Path
) -> None:
    (tmp_path / "tickets.csv").write_text(TICKETS, encoding="utf-8")
    (tmp_path / "bills.csv").write_text("bill,status,amount\nb1,closed,7\nb2,open,9\n", encoding="utf-8")
    library.add(tmp_path / "tickets.csv")
    library.add(tmp_path / "bills.csv")
    assert told(library, "What is the average amount of closed tickets?") == [f"The table in tickets.csv: {CLOSED}"]
    assert told(library, "How many tickets per status?") == [f"The table in tickets.csv: {BY_STATUS}"]


def test_rows_are_counted_by_whole_numbers_and_days_as_they_are_written(library: Library, tmp_path: Path) -> None:
    rows = [
        ["Bill", "Year", "Day"],
        ["a", 2024, date(2024, 3, 1)],
        ["b", 2025, date(2024, 3, 1)],
        ["c", 2025, date(2025, 1, 2)],
    ]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert told(library, "How many bills per year?") == ["Sheet Bills: 3 rows by Year: 2025: 2, 2024: 1."]
    assert told(library, "How many bills per day?") == ["Sheet Bills: 3 rows by Day: 2024-03-01: 2, 2025-01-02: 1."]


def test_times_of_a_day_are_no_days(library: Library, tmp_path: Path) -> None:
    (tmp_path / "bills.csv").write_text("Bill,Day,Cost\na,2024-03-01 10:00,2\nb,2024-03-01 11:30,4\n", "utf-8")
    library.add(tmp_path / "bills.csv")
    assert told(library, "How many bills per day?") == []
    assert told(library, "What is the total cost per day?") == []


def test_numbers_of_orders_name_them_and_numbers_of_visits_do_not(library: Library, tmp_path: Path) -> None:
    orders = [["Order ID", "State", "Cost"], [1001, "open", 2], [1002, "open", 4], [1003, "paid", 9]]
    visits = [["City", "No. of Visits", "Kind"], ["Ulm", 3, "day"], ["Bonn", 4, "day"], ["Kiel", 5, "night"]]
    library.add(workbook(tmp_path / "shop.xlsx", Orders=orders, Visits=visits))
    assert told(library, "How many open orders are there?") == ["Sheet Orders: 2 of 3 rows fulfil State = open."]
    assert told(library, "How many orders per state?") == ["Sheet Orders: 3 rows by State: open: 2, paid: 1."]
    assert told(library, "Which order has the highest cost?") == [
        "Sheet Orders: the highest value of Cost is 9, in row 4: Order ID: 1,003, State: paid, Cost: 9."
    ]
    assert told(library, "How many day visits are there?") == []
    assert told(library, "How many visits per kind?") == []
