"""Questions that take several rows of a table are told from those that one row answers."""

from __future__ import annotations

import pytest

from core.rag.several_rows import asks_of_several_rows, is_told_by_a_row, rows_of

ORDERS = [
    "Order | Region | Product | Units | Revenue",
    "A-1101 | East | Lamp | 18 | 9.0",
    "A-1102 | West | Chair | 2 | 40.0",
    "A-1103 | East | Desk | 4 | 120.0",
]
WITH_TOTAL = [*ORDERS, "Total | | | 24 | 169.0"]


@pytest.mark.parametrize(
    "question",
    [
        "What is the total revenue of the orders in the East region, and how many were returned there?",
        "How many orders were returned?",
        "What is the revenue per product?",
        "What is the average price?",
        "What percentage of the orders were returned?",
        "Which order has the highest revenue?",
        "Who is the oldest?",
        "List the three largest orders.",
        "top 5 customers",
        "Show the revenue by region.",
        "What is the revenue for each region?",
        "What is the number of returns?",
        "Wie viele Bestellungen sind offen?",
        "Was ist die Summe der Beträge in Berlin?",
        "Durchschnittlicher Preis je Kategorie",
        "Welche Bestellung hat den höchsten Betrag?",
        "每个班级的平均成绩是多少?",
        "东区一共有多少订单？",
        "有几个订单被退货？",
        "哪个产品的销售额最高？",
        "各地区的总销售额是多少？",
        "退货的比例是多少？",
    ],
)
def test_a_question_for_several_rows_is_known(question: str) -> None:
    assert asks_of_several_rows(question)


@pytest.mark.parametrize(
    "question",
    [
        "What does order A-1103 cost?",
        "When was A-1103 delivered?",
        "What is the telephone number of Anna?",
        "Which warranty has the pump at least?",
        "How much is the lamp?",
        "What is the price per unit of the lamp?",
        "What does gross margin mean?",
        "Wie lautet die Telefonnummer von Anna?",
        "Wer hat den Bericht geschrieben?",
        "Was the order returned by customer Ann?",
        "A-1103 多少钱？",
        "张三的成绩是多少？",
        "总部在哪里？",
        "最近一次会议说了什么？",
        "总经理是谁？",
    ],
)
def test_a_question_for_one_cell_is_none(question: str) -> None:
    assert not asks_of_several_rows(question)


def test_rows_of_a_table_are_told_from_prose() -> None:
    assert rows_of("\n".join(ORDERS), "orders.pdf") == ORDERS
    assert rows_of(ORDERS[1], "orders.xlsx") == ORDERS[1:2]
    assert rows_of(ORDERS[1], "orders.pdf") == []
    assert rows_of("We sold lamps.\nIn the East | West report\nall is told.\nIt was 9.", "orders.xlsx") == []


@pytest.mark.parametrize(
    ("question", "said", "rows"),
    [
        ("What is the total of order A-1103?", "It is 120.0.", ORDERS),
        ("A-1103 的总额是多少？", "120。", ORDERS),
        ("What is the total revenue?", "169", WITH_TOTAL),
    ],
)
def test_a_row_that_the_question_names_or_that_sums_up_may_tell_it(question: str, said: str, rows: list[str]) -> None:
    assert is_told_by_a_row(question, said, [rows])


@pytest.mark.parametrize(
    ("question", "said", "rows"),
    [
        ("What is the total of order A-1103?", "It is 129.0.", ORDERS),
        ("What is the total revenue in the East?", "It is 9.0.", ORDERS),
        ("What is the total revenue in the East?", "It is 169.0.", WITH_TOTAL),
        ("What is the total revenue?", "It is 170.0.", WITH_TOTAL),
        ("How many orders were returned?", "18", ORDERS),
    ],
)
def test_no_row_tells_another_figure_or_one_under_a_condition(question: str, said: str, rows: list[str]) -> None:
    assert not is_told_by_a_row(question, said, [rows])
