"""Questions and sentences that are of several rows of a table are told from those that are of one."""

from __future__ import annotations

import pytest

from core.rag.several_rows import SeveralRows, asks_of_several_rows, rows_of

ORDERS = [
    "Order | Region | Product | Units | Revenue",
    "A-1101 | East | Lamp | 18 | 9.0",
    "A-1102 | West | Chair | 2 | 40.0",
    "A-1103 | East | Desk | 4 | 120.0",
]
WITH_TOTAL = [*ORDERS, "Total | | | 24 | 169.0"]
OTHER_COUNTRY = ["Name | Preis", "Lampe | 1.250,50", "Stuhl | 0,75", "Tisch | 2.400"]


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
    ("sentence", "tables", "are_told"),
    [
        ("The total is 169.", WITH_TOTAL, False),
        ("The total of the East is 169.", WITH_TOTAL, True),
        ("The total is 170.", WITH_TOTAL, True),
        ("Das macht zusammen 3.650,50 Euro für Lampe und Tisch.", OTHER_COUNTRY, True),
        ("Die Lampe kostet 1.250,50 Euro, der Tisch 2.400 Euro und der Stuhl 0,75 Euro.", OTHER_COUNTRY, False),
        ("The lamp was sold for about 9.3.", ORDERS, False),
        ("Orders since 2024 are listed.", ORDERS, False),
    ],
)
def test_a_sentence_of_several_rows_is_known(sentence: str, tables: list[str], are_told: bool) -> None:
    assert SeveralRows([tables]).are_told(sentence) is are_told


def test_columns_that_are_called_so_are_no_sign_of_several_rows() -> None:
    rows = ["Order | Customer | Total", "A-1101 | Ann | 9.0", "A-1102 | Ben | 40.0"]
    assert not SeveralRows([rows]).are_told("Ann paid a total of 9.0.")
    assert SeveralRows([rows]).are_told("They paid a total of 49.0.")
