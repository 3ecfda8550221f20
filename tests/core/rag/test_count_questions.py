"""Questions that count rows, or sum a column, are known from those that set a condition: what may be one is none."""

from __future__ import annotations

import pytest

from core.rag.count_questions import CountQuestion, FigureQuestion, count_question, figure_question, plain_name

NAMES = ("Shop 2024.xlsx", "Shop 2024", "Orders", "Customers", "annual report", "订单", "客户表")


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How many rows are in the sheet?", CountQuestion("rows")),
        ("Hello, how many rows does this table have in total?", CountQuestion("rows")),
        ("how many entries are there", CountQuestion("rows", "entries")),
        ("What is the number of rows in Shop_2024.xlsx?", CountQuestion("rows", names=frozenset({"shop 2024.xlsx"}))),
        ("Tell me how many columns are in “Customers”.", CountQuestion("columns", names=frozenset({"customers"}))),
        ("Count the orders.", CountQuestion("things", "orders")),
        ("How many different customers has Orders?", CountQuestion("things", "customers", True, frozenset({"orders"}))),
        ("How many sheets has the workbook?", CountQuestion("sheets")),
        ("How many pages does the annual report have?", CountQuestion("pages", names=frozenset({"annual report"}))),
        ("So, how many slides are there in the deck?", CountQuestion("pages")),
        ("表里一共有多少行？", CountQuestion("rows")),
        ("请问这个表格有几条记录？", CountQuestion("rows", "记录")),
        ("客户表有多少列？", CountQuestion("columns", names=frozenset({"客户表"}))),
        ("这个 PDF 一共有几页？", CountQuestion("pages")),
        ("一共有几个工作表？", CountQuestion("sheets")),
        ("有多少笔订单？", CountQuestion("things", "订单")),
        ("订单总数是多少？", CountQuestion("things", "订单")),
        ("有几个不同的客户？", CountQuestion("things", "客户", True)),
    ],
)  # fmt: skip
def test_what_is_counted_is_known_from_the_words(question: str, asked: CountQuestion) -> None:
    assert count_question(question, NAMES) == asked


@pytest.mark.parametrize(
    "question",
    [
        "How many orders are over 100 €?",
        "How many orders are there from Berlin?",
        "How many rows are empty?",
        "How many rows have a negative amount?",
        "How many orders were placed in 2023?",
        "How many orders did Anna place?",
        "How many orders are there per month?",
        "How many rows are not in the sheet?",
        "How many pages mention hail?",
        "How many pages are in chapter 3?",
        "How many pages may the report have at most?",
        "How many pages have tables?",
        "How many pages contain a table?",
        "How many slides have a list?",
        "How many rows have a total?",
        "How many sheets are tables?",
        "How many sheets are called Orders?",
        "有表格的有多少页？",
        "有数据的一共有多少行？",
        "How many files are there?",
        "How much is an order?",
        "What is the number of the order?",
        "张三有几笔订单？",
        "五月有多少订单？",
        "第三章有多少页？",
        "有多少行是空的？",
        "多少页提到冰雹？",
        "一共有几个文件？",
    ],
)
def test_a_question_that_may_set_a_condition_counts_nothing(question: str) -> None:
    asked = count_question(question, NAMES)
    assert asked is None or (asked.counted == "things" and asked.things not in {"order", "orders", "订单"})


def test_a_condition_before_the_word_belongs_to_what_is_counted_and_matches_no_name() -> None:
    for question in ("How many open orders are there?", "有多少笔超过15元的订单？"):
        asked = count_question(question, NAMES)
        assert asked is not None
        assert asked.things not in {*map(plain_name, NAMES)}


def test_a_long_question_counts_nothing() -> None:
    assert count_question("How many rows are there?" + " please" * 100, NAMES) is None


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("What is the sum of the amounts?", FigureQuestion("sum", ("amounts",), "sum amounts")),
        ("What is the total amount?", FigureQuestion("sum", ("amount",), "total amount")),
        ("Please add up all amounts.", FigureQuestion("sum", ("amounts",))),
        ("Sum up the Amount column", FigureQuestion("sum", ("amount",))),
        ("What's the average amount in Orders?",
         FigureQuestion("average", ("amount",), "average amount", frozenset({"orders"}))),
        ("How high is the highest amount?", FigureQuestion("highest", ("amount",), "highest amount")),
        ("Calculate the mean of the values in column B.", FigureQuestion("average", ("b",), "mean b")),
        ("What is the minimum price of the table?", FigureQuestion("lowest", ("price",), "minimum price")),
        ("金额的总和是多少？", FigureQuestion("sum", ("金额",))),
        ("请计算金额一列的总和", FigureQuestion("sum", ("金额",))),
        ("金额加起来是多少？", FigureQuestion("sum", ("金额",))),
        ("总金额是多少？", FigureQuestion("sum", ("金额",), "总金额")),
        ("订单的平均金额是多少？", FigureQuestion("average", ("金额",), "平均金额", frozenset({"订单"}))),
        ("这个表格里金额的最大值是多少？", FigureQuestion("highest", ("金额", "这个表格里金额"))),
    ],
)  # fmt: skip
def test_which_figure_of_which_column_is_asked_for_is_known_from_the_words(
    question: str, asked: FigureQuestion
) -> None:
    assert count_question(question, NAMES) is None
    assert figure_question(question, NAMES) == asked


@pytest.mark.parametrize(
    "question",
    [
        "What is the total amount of orders from Rome?",
        "What is the total amount over 100?",
        "What is the average amount per city?",
        "What is the highest amount in Rome?",
        "What is the sum of all amounts that are open?",
        "Who has the highest amount?",
        "What is the total?",
        "What is the sum of 17, 25 and 38?",
        "What is the amount?",
        "罗马的总金额是多少？",
        "北京订单金额的总和是多少？",
        "金额超过100的总和是多少？",
        "谁的金额最高？",
    ],
)
def test_a_figure_under_a_condition_is_of_no_column(question: str) -> None:
    asked = figure_question(question, NAMES)
    assert asked is None or not {"amount", "amounts", "金额"}.intersection(asked.columns)
