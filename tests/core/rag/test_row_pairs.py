"""Two questions in one sentence are both told by program, or neither."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.languages import Lang
from core.rag.counted import counted
from core.rag.library import Library
from core.rag.row_pairs import parted
from tests.core.rag.shop_rows import CHINESE, TO_CHINESE, count, held, mean, number, share, sheet, total, units
from tests.core.rag.test_rows_told import told, workbook

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
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("store")
    with Library.open(folder / "library", BY_WORDS) as opened:
        opened.add(workbook(folder / "销售.xlsx", 订单=sheet(CHINESE, TO_CHINESE)))
        yield opened


def figures(library: Library, question: str, lang: Lang = "en", *, earlier: tuple[str, ...] = ()) -> list[Any]:
    ids = [one.id for one in library.documents()]
    return [one.computed for one in counted(library, ids, question, lang, earlier=earlier).passages]


def are_open(one: Any) -> bool:
    return one.status == "open"


def east(one: Any) -> bool:
    return one.region == "East"


def li_wei(one: Any) -> bool:
    return one.customer == "Li Wei"


def west(one: Any) -> bool:
    return one.region == "West"


def east_back(one: Any) -> bool:
    return one.region == "East" and one.returned == "yes"


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("How many orders are open and what is their total amount?", [count(are_open), total(are_open)]),
        ("How many orders are open, and what is their average amount?", [count(are_open), mean(are_open)]),
        ("How many open orders are there and what is their total amount?", [count(are_open), total(are_open)]),
        ("How many orders are open and how much is their total amount?", [count(are_open), total(are_open)]),
        ("What is the total amount of open orders and how many of them are in the East?",
         [total(are_open), count(lambda one: are_open(one) and east(one))]),
        ("What is the total amount of the orders in the East region, and how many were returned there?",
         [total(east), count(east_back)]),
        ("What is the total amount of orders in the East and how many of those were returned?",
         [total(east), count(east_back)]),
        ("How many orders are in the East and how many are in the West?", [count(east), count(west)]),
        ("How many orders are in the East and how many in the West?", [count(east), count(west)]),
        ("How many orders are open and how many are paid?",
         [count(are_open), count(lambda one: one.status == "paid")]),
        ("How many orders are open and how many orders are cancelled?",
         [count(are_open), count(lambda one: one.status == "cancelled")]),
        ("What is the total amount in the East and what is the total amount in the West?", [total(east), total(west)]),
        ("What is the total amount in the East and what is the average amount in the East?",
         [total(east), mean(east)]),
        ("How many orders were returned and how many were not returned?",
         [count(lambda one: one.returned == "yes"), count(lambda one: one.returned == "no")]),
        ("How many orders were returned and what is their total amount?",
         [count(lambda one: one.returned == "yes"), total(lambda one: one.returned == "yes")]),
        ("What percentage of orders are open and what is their total amount?", [share(are_open), total(are_open)]),
        ("How many orders have an amount over 5,000 and what is their sum of units?",
         [count(lambda one: one.amount > 5_000), units(lambda one: one.amount > 5_000)]),
        ("How many orders are from Li Wei and which of them has the highest amount?",
         [count(li_wei), max(held(li_wei), key=lambda one: one.amount).number]),
        ("How many orders are there in March 2024 and what is their total amount?",
         [count(lambda one: (one.day.year, one.day.month) == (2024, 3)),
          total(lambda one: (one.day.year, one.day.month) == (2024, 3))]),
        ("How many orders are in the East and what is the highest amount there?",
         [count(east), number(max(one.amount for one in held(east)))]),
        ("How many orders are open and their total amount?", [count(are_open), total(are_open)]),
    ],
)  # fmt: skip
def test_both_are_told(shop: Library, question: str, right: list[str]) -> None:
    assert figures(shop, question) == right


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("未付的订单有多少，它们的总金额是多少？", [count(are_open), total(are_open)]),
        ("东部有多少订单，其平均金额是多少？", [count(east), mean(east)]),
        ("东部有多少订单，西部有多少订单？", [count(east), count(west)]),
        ("未付的订单有多少，这些订单的总金额是多少？", [count(are_open), total(are_open)]),
        ("东部有多少订单以及它们的总金额是多少？", [count(east), total(east)]),
    ],
)
def test_so_they_are_in_chinese(store: Library, question: str, right: list[str]) -> None:
    assert figures(store, question, "zh") == right


@pytest.mark.parametrize(
    "question",
    [
        "How many orders are open and what is the total amount?",  # of the open ones, or of all
        "How many orders are open and how many are in the East?",  # of the open ones, or of all
        "How many orders in the East are open and how many are paid?",  # there, or in all
        "How many orders are there and what is their total amount?",
        "How many customers have open orders and what is their total amount?",
        "How many customers have status open and what is their total amount?",  # of all their orders
        "Which order has the highest amount and what is its status?",
        "Which three orders have the highest amount and what is their total amount?",
        "How many orders are open and why is that?",
        "How many orders are open and what is their colour?",
        "How many orders are nearly open and what is their total amount?",
        "How many orders are open and what is their total amount and what is their average amount?",
        "How many orders per region are open and what is their total amount?",
        "How many orders are open and what is the total amount of these customers?",
        "How many of them are open and what is their total amount?",
        "How many orders are open and how many of them are paid?",
        "How many orders are in the East or West and what is their total amount?",
        "How many orders are open and what is their total status?",
    ],
)
def test_where_either_leaves_a_doubt_neither_is_told(shop: Library, question: str) -> None:
    assert figures(shop, question) == []


def test_the_second_says_its_conditions_too(shop: Library) -> None:
    _, second = told(shop, "How many orders are open and what is their total amount?")
    assert second.endswith(f" ({count(are_open)} of 47 rows, those with Status = open).")


def test_their_rows_are_those_of_the_sentence_and_not_of_an_earlier_one(shop: Library) -> None:
    asked = "How many orders are open and what is their total amount?"
    assert figures(shop, asked, earlier=("How many orders are in the East?",)) == [count(are_open), total(are_open)]
    of_them = "How many of these orders are open and what is their total amount?"
    assert figures(shop, of_them, earlier=("How many orders are in the East?",)) == []


def test_neither_is_told_where_amounts_are_in_two_currencies(library: Library, tmp_path: Path) -> None:
    rows = [
        ["Bill", "State", "Amount", "Currency"],
        ["a", "open", 1, "EUR"],
        ["b", "open", 2, "USD"],
        ["c", "paid", 4, "EUR"],
    ]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert figures(library, "How many bills are open and what is their total amount?") == []
    assert figures(library, "How many bills are paid and what is their total amount?") == ["1", "4"]


@pytest.mark.parametrize(
    "question",
    ["How many are open and paid?", "a and what is b and what is c", "and what is it?", "有多少？", "", "Und wie?"],
)
def test_one_question_has_no_two_parts(question: str) -> None:
    assert parted(question) is None


SAID = st.sampled_from(["and ", "what", " how many ", "，", "多少", "their ", "a ", "?"])


@given(st.lists(SAID, max_size=9).map("".join) | st.text())
def test_parts_stand_in_the_sentence(question: str) -> None:
    found = parted(question)
    assert found is None or all(one and one in question for one in found)
