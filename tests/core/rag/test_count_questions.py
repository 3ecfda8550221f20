"""Questions that count rows, sheets or pages are known from those that set a condition: what may be one is none."""

from __future__ import annotations

import pytest

from core.rag.count_questions import CountQuestion, count_question, plain_name

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
