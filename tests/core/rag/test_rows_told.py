"""Figures under a condition are told by program where the question is clear to the last word, and never else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from core.languages import Lang
from core.messages.computed import Computed
from core.rag.counted import counted
from core.rag.library import Library
from core.rag.rows_told import rows_told
from core.rag.tables.query import Answer, Named
from core.rag.tables.store import Column, Table

ORDERS = [
    ["Order ID", "Customer", "Region", "Status", "Amount", "Date"],
    ["A-1", "Anna Meyer", "North", "open", 1200, date(2024, 3, 1)],
    ["A-2", "Li Wei", "North", "paid", 800, date(2024, 3, 15)],
    ["A-3", "Anna Meyer", "South", "open", 2500.5, date(2024, 4, 2)],
    ["A-4", "Jo Smith", "East", "open", 900, date(2025, 1, 9)],
    ["A-5", "Li Wei", "South", "cancelled", 1000, date(2025, 2, 1)],
    ["Total", "", "", "", 6400.5, ""],
]
CHINESE = [
    ["订单号", "客户", "地区", "状态", "金额", "日期"],
    ["甲1", "张三", "华北", "未付", 1200, date(2024, 3, 1)],
    ["甲2", "李四", "华北", "已付", 800, date(2024, 3, 15)],
    ["甲3", "张三", "华南", "未付", 2500.5, date(2024, 4, 2)],
    ["甲4", "王五", "华东", "未付", 900, date(2025, 1, 9)],
]


def workbook(path: Path, **sheets: Sequence[Sequence[Any]]) -> Path:
    with xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd"}) as book:
        for title, rows in sheets.items():
            sheet = book.add_worksheet(title)
            for at, row in enumerate(rows):
                for column, cell in enumerate(row):
                    sheet.write(at, column, cell)
    return path


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as opened:
        yield opened


def told(library: Library, question: str, lang: Lang = "en") -> list[str]:
    return [one.text for one in counted(library, [one.id for one in library.documents()], question, lang).passages]


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


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("How many rows have status open and amount over 1,000?", "2 of 5 rows fulfil Status = open and Amount > 1,000."),  # noqa: E501 - as it is read
        ("How many open orders are there?", "3 of 5 rows fulfil Status = open."),
        ("How many orders in Region North have Amount under 1000?", "1 of 5 rows fulfil Region = North and Amount < 1,000."),  # noqa: E501 - as it is read
        ("How many orders are from Anna Meyer?", "2 of 5 rows fulfil Customer = Anna Meyer."),
        ("How many orders have an amount of at least 1,000?", "3 of 5 rows fulfil Amount ≥ 1,000."),
        ("How many orders have an amount between 800 and 1000?", "3 of 5 rows fulfil 800 ≤ Amount ≤ 1,000."),
        ("How many orders have a status other than open?", "2 of 5 rows fulfil Status ≠ open."),
        ("How many rows have a date before 1 April 2024?", "2 of 5 rows fulfil Date < 2024-04-01."),
        ("How many rows have a date after 2024?", "2 of 5 rows fulfil Date > 2024."),
        ("How many rows have a date in March 2024?", "2 of 5 rows fulfil Date = 2024-03."),
        ("How many rows where the date is March 2024?", "2 of 5 rows fulfil Date = 2024-03."),
        ("How many rows where customer contains 'Li'?", None),
        ('How many rows where customer contains "li"?', "2 of 5 rows fulfil Customer ∋ “li”."),
        ("How many customers have status open?", "2 different values of Customer in the 3 of 5 rows that fulfil Status = open."),  # noqa: E501 - as it is read
        ("What is the sum of amount where region is North?", "the sum of Amount is 2,000 (2 of 5 rows, those with Region = North)."),  # noqa: E501 - as it is read
        ("What is the total amount of A-3?", "the sum of Amount is 2,500.5 (1 of 5 rows, those with Order ID = A-3)."),
        ("What is the average amount of open orders in South?", "the average of Amount is 2,500.5 (1 of 5 rows, those with Status = open and Region = South)."),  # noqa: E501 - as it is read
        ("What is the highest amount in North?", "the highest value of Amount is 1,200 (2 of 5 rows, those with Region = North)."),  # noqa: E501 - as it is read
        ("Which order has the highest amount?", "the highest value of Amount is 2,500.5, in row 4: Order ID: A-3, Customer: Anna Meyer, Region: South, Status: open, Amount: 2,500.5, Date: 2024-04-02."),  # noqa: E501 - as it is read
        ("Which order in North has the lowest amount?", "the lowest value of Amount with Region = North is 800, in row 3: Order ID: A-2, Customer: Li Wei, Region: North, Status: paid, Amount: 800, Date: 2024-03-15."),  # noqa: E501 - as it is read
        ("Which row has the latest date?", "the highest value of Date is 2025-02-01, in row 6: Order ID: A-5, Customer: Li Wei, Region: South, Status: cancelled, Amount: 1,000, Date: 2025-02-01."),  # noqa: E501 - as it is read
    ],
)  # fmt: skip
def test_a_figure_under_a_clear_condition_is_told_with_its_condition(
    shop: Library, question: str, says: str | None
) -> None:
    assert told(shop, question) == ([] if says is None else [f"Sheet Orders: {says}"])


@pytest.mark.parametrize(
    ("question", "figure"),
    [
        ("How many rows have status open and amount over 1,000?", "2"),
        ("How many customers have status open?", "2"),
        ("What is the sum of amount where region is North?", "2,000"),
        ("Which order has the highest amount?", "A-3"),
        ("Which row has the latest date?", "2025-02-01"),
        ("How many rows are there?", "5"),
        ("How many columns are there?", "6"),
        ("How many sheets are there?", "1"),
        ("What is the total amount?", "6,400.5"),
    ],
)
def test_the_figure_that_is_the_answer_goes_along_with_its_sentence(shop: Library, question: str, figure: str) -> None:
    found = counted(shop, [one.id for one in shop.documents()], question).passages
    assert [(one.computed, one.as_dict()["computed"]) for one in found] == [(figure, figure)]
    assert all(isinstance(one.as_dict()["computed"], Computed) for one in found)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("状态是未付并且金额超过1,000的订单有多少个？", "4 行数据中有 2 行满足 状态 = 未付 且 金额 > 1,000。"),
        ("有多少行的状态为未付？", "4 行数据中有 3 行满足 状态 = 未付。"),
        ("华北有多少订单？", "4 行数据中有 2 行满足 地区 = 华北。"),
        ("金额不低于900的有几条？", "4 行数据中有 3 行满足 金额 ≥ 900。"),
        ("金额在800到1000之间的订单有多少？", "4 行数据中有 2 行满足 800 ≤ 金额 ≤ 1,000。"),
        ("金额1200以上的订单有多少？", "4 行数据中有 2 行满足 金额 ≥ 1,200。"),
        ("日期早于2024年4月的订单有几个？", "4 行数据中有 2 行满足 日期 < 2024-04。"),
        ("日期是2-Apr-2024的金额总和是多少？", "金额 的总和是 2,500.5（4 行数据中的 1 行，条件：日期 = 2024-04-02）。"),
        ("2 April 2024的金额总和是多少？", "金额 的总和是 2,500.5（4 行数据中的 1 行，条件：日期 = 2024-04-02）。"),
        ("华北的金额总和是多少？", "金额 的总和是 2,000（4 行数据中的 2 行，条件：地区 = 华北）。"),
        ("状态为未付的平均金额是多少？", "金额 的平均值是 1,533.5（4 行数据中的 3 行，条件：状态 = 未付）。"),
        (
            "哪个订单的金额最高？",
            ("金额 的最大值是 2,500.5，在第 4 行：订单号: 甲3，客户: 张三，地区: 华南，"
            "状态: 未付，金额: 2,500.5，日期: 2024-04-02。"),
        ),
        (
            "华北哪一行的金额最低？",
            ("金额 的最小值（条件：地区 = 华北）是 800，在第 3 行：订单号: 甲2，客户: 李四，地区: 华北，"
            "状态: 已付，金额: 800，日期: 2024-03-15。"),
        ),
        ("张三的金额合计是多少？", "金额 的总和是 3,700.5（4 行数据中的 2 行，条件：客户 = 张三）。"),
    ],
)  # fmt: skip
def test_so_it_is_in_chinese(store: Library, question: str, says: str) -> None:
    assert told(store, question, "zh") == [f"工作表 订单：{says}"]


@pytest.mark.parametrize(
    "question",
    [
        "How many orders have an amount over 1.000?",  # a thousand, or one
        "How many orders have an amount over 5 %?",
        "How many orders are open or paid?",
        "How many orders are not open?",
        "How many orders are nearly open?",
        "How many orders have a date before 3/4/2024?",  # in March, or in April
        "What is the sum of amount of all but North?",
        "What is the sum of the status in North?",
        "How many amounts are open?",
        "How many orders have an amount over 500 and amount over 900?",
        "What is the latest amount in North?",  # that of the latest day
        "What is the earliest amount of Li Wei?",
        "Which order has the latest amount?",
        "North的最晚金额是多少？",
        "How many orders have a date before 9999-12-31?",  # it may stand for no date at all
        "How many orders have a date before 9999-12?",
        "How many orders have a date after 0000-01?",
        "Why are so many orders in North open?",
        "华北或华南有多少订单？",
        "哪个客户的金额最高？",
    ],
)
def test_what_is_not_clear_to_the_last_word_is_left_to_the_model(shop: Library, question: str) -> None:
    assert not any("fulfil" in one or " is " in one or "满足" in one for one in told(shop, question))


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("How many orders are from München?", "2 of 7 rows fulfil City = München."),
        ("How many orders are from MU\u0308NCHEN?", "2 of 7 rows fulfil City = München."),
        ("How many orders are from New York?", "4 of 7 rows fulfil City = New York."),
        ('How many orders where street contains "straße"?', "3 of 7 rows fulfil Street ∋ “strasse”."),
        ('How many orders where street contains "ärzte"?', "1 of 7 rows fulfil Street ∋ “ärzte”."),
        ('How many orders where city contains "münchen"?', "2 of 7 rows fulfil City ∋ “münchen”."),
    ],
)
def test_letters_of_all_scripts_and_spaces_are_alike_in_questions_and_cells(
    library: Library, tmp_path: Path, question: str, says: str
) -> None:
    rows = [
        ["Order ID", "City", "Street"],
        ["a", "MÜNCHEN", "Hauptstraße"],
        ["b", "München", "Ärztehaus"],
        ["c", "Ulm", "Bahnhofstraße"],
        ["d", "New  York", "STRAßE"],
        ["e", "New York", "x"],
        ["f", "NEW YORK\u00a0", "x"],
        ["g", "New\u00a0York", "y"],
    ]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=rows))
    (only,) = told(library, question)
    assert only.casefold() == f"Sheet Orders: {says}".casefold()


def test_more_cells_than_a_second_looks_through_are_not_looked_through() -> None:
    def ask(_: str) -> Answer:
        raise AssertionError("it was looked through")

    texts = tuple(Column(name, "text") for name in ("Bill", "City", "State"))
    named = Named("bills", "bills.csv", "b", Path("none"), Table(1, "Bills", 1, 70_000, texts))
    assert rows_told("How many bills have state open?", [named], ask, "en") == []


def test_a_figure_leads_to_its_rows_and_where_there_are_places_to_its_cells(shop: Library, tmp_path: Path) -> None:
    ids = [one.id for one in shop.documents()]
    (passage,) = counted(shop, ids, "What is the sum of amount where region is North?").passages
    assert (passage.document, passage.page, passage.heading, passage.rows) == ("shop.xlsx", 1, "Orders", "2–3")
    (passage,) = counted(shop, ids, "How many open orders are there?").passages
    assert passage.rows == "2, 4–5"
    assert counted(shop, ids, "How many open orders are there?").alone


def test_a_value_that_stands_in_two_columns_needs_its_column(library: Library, tmp_path: Path) -> None:
    rows = [
        ["Trip", "From", "Destination", "Km"],
        ["a", "Rome", "Oslo", 10],
        ["b", "Oslo", "Rome", 20],
        ["c", "Rome", "Bonn", 5],
    ]
    library.add(workbook(tmp_path / "trips.xlsx", Trips=rows))
    assert told(library, "What is the sum of km for Rome?") == []
    assert told(library, "How many trips in Rome are there?") == []
    assert told(library, "What is the sum of km where destination is Rome?") == [
        "Sheet Trips: the sum of Km is 20 (1 of 3 rows, those with Destination = Rome)."
    ]


def test_of_two_sheets_each_says_its_own_and_a_named_one_says_it_alone(library: Library, tmp_path: Path) -> None:
    may = [["Region", "Amount"], ["North", 1], ["South", 2], ["North", 4]]
    june = [["Region", "Amount"], ["North", 10], ["South", 20], ["South", 40]]
    library.add(workbook(tmp_path / "sales.xlsx", May=may, June=june))
    says = [
        "Sheet May: the sum of Amount is 5 (2 of 3 rows, those with Region = North).",
        "Sheet June: the sum of Amount is 10 (1 of 3 rows, those with Region = North).",
    ]
    assert told(library, "What is the sum of amount where region is North?") == says
    assert told(library, "What is the sum of amount in June where region is North?") == says[1:]


def test_units_separators_and_shares_are_compared_as_they_are_written(library: Library, tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text(
        'Name,Rate,Cost,Area\nA,5%,"€ 1,200.50",x\nB,7%,€ 20.25,y\nC,9%,"€ 3,000.00",x\n', encoding="utf-8"
    )
    library.add(tmp_path / "rates.csv")
    table = "The table in rates.csv: "
    assert told(library, "How many rows have a cost over 1,200 €?") == [f"{table}2 of 3 rows fulfil Cost > 1,200 €."]
    assert told(library, "How many rows have a cost over 1,200 $?") == []
    assert told(library, "How many rows have a rate over 6%?") == [f"{table}2 of 3 rows fulfil Rate > 6 %."]
    assert told(library, "How many rows have a rate over 6?") == []
    assert told(library, "What is the sum of rate where area is x?") == []


def test_what_stands_in_several_rows_is_counted_once(library: Library, tmp_path: Path) -> None:
    lines = [
        ["Order ID", "Item", "State"],
        ["A", "pen", "open"],
        ["A", "ink", "open"],
        ["B", "pen", "open"],
        ["C", "cup", "paid"],
    ]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=lines))
    assert told(library, "How many open orders are there?") == [
        "Sheet Orders: 2 different values of Order ID in the 3 of 4 rows that fulfil State = open."
    ]
    assert told(library, "How many rows have state open?") == ["Sheet Orders: 3 of 4 rows fulfil State = open."]


def test_rows_that_stand_for_many_are_not_counted_as_one_each(library: Library, tmp_path: Path) -> None:
    rows = [["Region", "Kind", "Visitors"], ["North", "day", 100], ["South", "night", 50], ["East", "day", 20]]
    library.add(workbook(tmp_path / "visitors.xlsx", Visitors=rows))
    assert told(library, "How many visitors have kind day?") == []
    assert told(library, "What is the sum of visitors where kind is day?") == [
        "Sheet Visitors: the sum of Visitors is 120 (2 of 3 rows, those with Kind = day)."
    ]


def test_amounts_in_several_currencies_are_not_added_up(library: Library, tmp_path: Path) -> None:
    rows = [
        ["Bill", "Amount", "Currency", "Paid"],
        ["a", 1, "EUR", "yes"],
        ["b", 2, "USD", "yes"],
        ["c", 4, "USD", "no"],
        ["d", 4, "USD", "no"],
    ]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert told(library, "What is the sum of amount where paid is yes?") == []
    assert told(library, "What is the sum of amount where paid is no?") == [
        "Sheet Bills: the sum of Amount is 8 (2 of 4 rows, those with Paid = no)."
    ]


def test_cells_below_the_name_of_their_group_are_not_left_out_unnoticed(library: Library, tmp_path: Path) -> None:
    rows = [
        ["Region", "City", "Amount"],
        ["North", "Kiel", 1],
        ["", "Rostock", 2],
        ["South", "Ulm", 4],
        ["", "Bonn", 8],
    ]
    library.add(workbook(tmp_path / "groups.xlsx", Cities=rows))
    assert told(library, "What is the sum of amount where region is North?") == []


def test_neither_are_they_where_half_of_the_cells_or_the_last_column_are_blank(
    library: Library, tmp_path: Path
) -> None:
    rows = [
        ["ID", "Amount", "Region"],
        ["a", 1, "North"],
        ["b", 2, ""],
        ["c", 3, "South"],
        ["d", 4, ""],
        ["e", 5, "North"],
    ]
    library.add(workbook(tmp_path / "groups.xlsx", Orders=rows))
    assert told(library, "How many orders are in North?") == []
    assert told(library, "What is the sum of amount where region is North?") == []
    assert told(library, "How many orders have an amount over 3?") == ["Sheet Orders: 2 of 5 rows fulfil Amount > 3."]


@pytest.mark.parametrize(
    "head",
    [
        "Revenue (thousands)",
        "Revenue in k€",
        "Revenue (million $)",
        "Revenue, bn",
        "Revenue (万元)",
        "Revenue 百万",
        "Revenue 亿",
    ],
)
def test_a_scale_in_the_head_of_a_column_leaves_open_what_a_number_is_compared_with(
    library: Library, tmp_path: Path, head: str
) -> None:
    rows = [["Order ID", head, "Weight (千克)"], ["a", 6, 6], ["b", 3, 3], ["c", 70000, 3]]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=rows))
    assert told(library, f"How many orders have {head} over 5 thousand?") == []
    assert told(library, f"How many orders have {head} over 5?") == []
    assert told(library, "How many orders have weight (千克) over 5?") == [
        "Sheet Orders: 1 of 3 rows fulfil Weight (千克) > 5."
    ]


def test_of_two_columns_with_one_head_none_is_meant_by_it(library: Library, tmp_path: Path) -> None:
    rows = [["Order ID", "Amount", "Amount", "Status"], ["a", 6, 600, "open"], ["b", 3, 300, "paid"]]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=rows))
    assert told(library, "What is the sum of amount where status is open?") == []
    assert told(library, "How many orders have an amount over 5?") == []
    assert told(library, "What is the sum of column C where status is open?") == [
        "Sheet Orders: the sum of Amount_2 is 600 (1 of 2 rows, those with Status = open)."
    ]


def test_blank_cells_are_told_and_leave_a_not_unanswered(library: Library, tmp_path: Path) -> None:
    rows = [
        ["Bill", "Status", "Hours"],
        ["a", "open", 1],
        ["b", "open", ""],
        ["c", "due", 5],
        ["d", "paid", 5],
        ["e", "paid", 2],
    ]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert told(library, "What is the average hours where status is open?") == [
        "Sheet Bills: the average of Hours is 1 (2 of 5 rows, those with Status = open; 1 of these without a number)."
    ]
    assert told(library, "How many bills have hours of at most 2?") == ["Sheet Bills: 2 of 5 rows fulfil Hours ≤ 2."]
    assert told(library, "How many bills where hours is not 2?") == []


def test_rows_that_share_the_highest_value_are_all_named(library: Library, tmp_path: Path) -> None:
    library.add(workbook(tmp_path / "cities.xlsx", Cities=[["City", "People"], ["Ulm", 5], ["Bonn", 9], ["Kiel", 9]]))
    assert told(library, "Which city has the most people?") == [
        "Sheet Cities: the highest value of People is 9, in 2 rows: row 3: City: Bonn, People: 9; row 4: City: Kiel, People: 9."  # noqa: E501 - as it is read
    ]


def test_two_tables_with_the_same_columns_in_a_text_tell_no_part_for_the_whole(
    library: Library, tmp_path: Path
) -> None:
    text = "|Region|Amount|\n|---|---|\n|North|{}|\n|South|2|\n\nAnd so on.\n\n"
    between = "|Name|Age|City|\n|---|---|---|\n|Anna|9|Ulm|\n|Jo|8|Bonn|\n\nAnd so on.\n\n"
    (tmp_path / "a.md").write_text(f"# One\n\n{text.format(1)}# Two\n\n{between}# Three\n\n{text.format(3)}", "utf-8")
    library.add(tmp_path / "a.md")
    assert len(library.tables.of([one.id for one in library.documents()])) == 3
    assert told(library, "What is the sum of amount where region is North?") == []
    assert told(library, "Which row has the highest age?") == [
        "The table Two: the highest value of Age is 9, in row 1: Name: Anna, Age: 9, City: Ulm."
    ]


def test_a_column_below_a_common_head_is_meant_by_its_own_name(library: Library, tmp_path: Path) -> None:
    plain = [["Bill", "Net", "State"], ["a", 1, "open"], ["b", 2, "paid"], ["c", 3, "open"]]
    with xlsxwriter.Workbook(str(tmp_path / "heads.xlsx")) as book:
        first, second = book.add_worksheet("Plain"), book.add_worksheet("Headed")
        for at, row in enumerate(plain):
            first.write_row(at, 0, row)
            second.write_row(at + 1, 0, [row[0], row[1] if not at else 10 * row[1], row[2]])
        second.merge_range(0, 0, 0, 2, "All bills")
    library.add(tmp_path / "heads.xlsx")
    assert told(library, "What is the sum of net where state is open?") == [
        "Sheet Plain: the sum of Net is 4 (2 of 3 rows, those with State = open).",
        "Sheet Headed: All bills: the sum of Net is 40 (2 of 3 rows, those with State = open).",
    ]
