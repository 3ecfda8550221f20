"""What a program counted bears out a sentence in other words, and never one that says it of something else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.messages.computed import Computed
from core.rag.claims.weighing import claims_of
from core.rag.document import Passage


def told(text: str, figure: str, title: str = "Orders") -> Passage:
    return Passage(text, 1.0, "orders.xlsx", "d", 1, (), title, rows="2–73", computed=Computed(figure))


ROWS = Passage(
    "Order | Region | Status | Units | Revenue | Returned\nA-1101 | East | open | 18 | 9.0 | yes\n"
    "A-1102 | West | paid | 2 | 40.0 | no\nA-1103 | East | open | 4 | 120.0 | yes",
    1.0, "orders.xlsx", "d", 1, (), "Orders", 1,
)  # fmt: skip
WEST = told("Sheet Orders: 72 of 300 rows fulfil Region = West.", "72")
OPEN = told("Sheet Orders: 64 of 300 rows fulfil Region = West and Status = open.", "64")
RETURNED = told("Sheet Orders: 81 of 300 rows fulfil Returned = yes.", "81")
KEPT = told("Sheet Orders: 219 of 300 rows fulfil Returned = no.", "219")
OTHERS = told("Sheet Orders: 228 of 300 rows fulfil Region ≠ West.", "228")
SHARE = told("Sheet Orders: 72 of 300 rows fulfil Region = West, which is 24 %.", "24 %")
SUM = told("Sheet Orders: the sum of Revenue is 5,300 (72 of 300 rows, those with Region = West).", "5,300")
BUYERS = told("Sheet Orders: 5 different values of Customer in the 72 of 300 rows that fulfil Region = West.", "5")
HAN = told("工作表 订单 ：300 行数据中有 72 行满足 地区 = 西部。", "72", "订单")
HAN_SUM = told("工作表 订单 ：金额 的总和是 5,300（300 行数据中的 72 行，条件：地区 = 西部）。", "5,300", "订单")
HAN_ROWS = Passage(
    "订单号 | 地区 | 金额\nB-01 | 西部 | 360\nB-02 | 东部 | 900\nB-03 | 西部 | 4000",
    1.0, "orders.xlsx", "d", 1, (), "订单", 1,
)  # fmt: skip
HOW_MANY, HAN_HOW_MANY = "How many orders are there?", "西部有多少订单？"


def verdict(asked: str, sentence: str, *passages: Passage) -> str:
    return next((one.verdict for one in claims_of(sentence, passages, asked=asked)), "")


@pytest.mark.parametrize(
    ("asked", "sentence", "passage"),
    [
        (HOW_MANY, "72 orders that fulfil the condition were found in the table according to the given data.", WEST),
        (HOW_MANY, "Based on the information provided, the total number of orders placed in the West is 72.", WEST),
        (HOW_MANY, "According to the provided data, 72 of the 300 orders in the table meet the criteria.", WEST),
        (HOW_MANY, "There are in all 64 orders that were found to be open and that belong to the West.", OPEN),
        (HOW_MANY, "According to the provided information, in total 81 orders were returned.", RETURNED),
        (HOW_MANY, "Based on the given data, 24 % of the orders listed in the table belong to the West.", SHARE),
        ("What is the revenue?", "According to the table, the overall revenue placed in the West is $5,300.", SUM),
        ("Wie viele Bestellungen gibt es?", "Laut Tabelle erfüllen insgesamt 72 Bestellungen die Bedingung.", WEST),
        (HAN_HOW_MANY, "根据提供的数据，符合条件的订单一共有72个。", HAN),
        (HAN_HOW_MANY, "统计结果显示，来自西部地区的订单总数为72个。", HAN),
        (HAN_HOW_MANY, "根据表格，西部的金额合计为5,300。", HAN_SUM),
    ],
)
def test_other_words_for_what_was_counted_are_borne_out(asked: str, sentence: str, passage: Passage) -> None:
    rows = HAN_ROWS if passage in {HAN, HAN_SUM} else ROWS
    (claim,) = claims_of(sentence, [rows, passage], asked=asked)
    assert (claim.verdict, claim.passages) == ("supported", (2,))


@pytest.mark.parametrize(
    ("sentence", "passage"),
    [
        ("According to the provided data, 72 orders in the table come from the East.", WEST),
        ("There are 72 orders from the East.", WEST),
        ("Based on the information provided, the total number of orders in the table is 72.", WEST),
        ("Based on the information provided, 300 orders that meet the condition were found.", WEST),
        ("According to the provided data, fewer than 72 orders placed were found to be from the West.", WEST),
        ("According to the provided information, 72 % of the orders placed belong to the West.", WEST),
        ("According to the provided information, 72 customers placed orders from out of the West.", WEST),
        ("According to the provided information, 64 orders that were listed are open.", OPEN),
        ("According to the provided data, in total 219 orders were returned.", KEPT),
        ("According to the provided data, in total 228 orders are located in the West.", OTHERS),
        ("According to the provided data, the average revenue placed in the West is 5,300.", SUM),
        ("According to the provided data, in all 5,300 orders were placed in the West.", SUM),
        ("According to the provided data, 5 orders were placed in the West.", BUYERS),
    ],
)
def test_what_was_counted_of_something_else_is_not_borne_out(sentence: str, passage: Passage) -> None:
    assert verdict(HOW_MANY, sentence, ROWS, passage) in {"weak", "unsupported"}


def test_a_value_that_was_counted_elsewhere_is_not_said_of_this_one() -> None:
    east = told("Sheet Orders: 60 of 300 rows fulfil Region = East.", "60")
    assert verdict(HOW_MANY, "There are 60 orders from the West.", WEST, east) != "supported"
    assert verdict(HOW_MANY, "There are 60 orders from the East.", WEST, east) == "supported"


def test_a_row_that_has_the_figure_may_be_meant() -> None:
    rows = replace(ROWS, text=ROWS.text.replace("| 4 |", "| 72 |"))
    sentence = "Order A-1103 from the East has 72 units and is open."
    assert verdict("What about A-1103?", sentence, WEST, rows) == "supported"


def test_a_mark_says_which_count_is_meant() -> None:
    sentence = "72 orders that fulfil the condition were found in the table according to the given data [1]."
    assert verdict(HOW_MANY, sentence, ROWS, WEST) != "supported"
    assert verdict(HOW_MANY, sentence, WEST, ROWS) == "supported"
