"""Where a time, a person or a state in a question may be meant in two ways, no figure is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from core.rag.counted import counted
from core.rag.library import Library
from tests.core.rag.shop_rows import GERMAN, TO_GERMAN, count, sheet
from tests.core.rag.test_rows_told import workbook

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
def laden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("laden")
    with Library.open(folder / "library", BY_WORDS) as opened:
        opened.add(workbook(folder / "laden.xlsx", Bestellungen=sheet(GERMAN, TO_GERMAN)))
        yield opened


def figures(library: Library, question: str, *earlier: str) -> list[Any]:
    ids = [one.id for one in library.documents()]
    return [one.computed for one in counted(library, ids, question, earlier=earlier).passages]


@pytest.mark.parametrize(
    "question",
    [
        "How many orders from March 2024 on?",
        "How many orders from 2024-03-05 on are there?",
        "How many orders with a date from 2024 on?",
        "How many orders have units from 3 on?",
        "How many orders have units from 3?",
        "What is the total amount by month from March 2024?",
        "How many orders per month from March 2024?",
    ],
)
def test_what_follows_from_may_be_where_something_begins(shop: Library, question: str) -> None:
    assert figures(shop, question) == []


@pytest.mark.parametrize(
    "question", ["Wie viele Bestellungen von März 2024 an?", "Wie viele Bestellungen vom März 2024 an gab es?"]
)
def test_the_same_holds_in_german(laden: Library, question: str) -> None:
    assert figures(laden, question) == []


def test_a_question_that_goes_on_with_from_on_is_left_to_the_model(shop: Library) -> None:
    assert figures(shop, "and from April 2024 on?", "How many orders are there in March 2024?") == []


def test_from_a_month_to_another_and_orders_from_a_month_are_told(shop: Library) -> None:
    march = count(lambda one: (one.day.year, one.day.month) == (2024, 3))
    spring = count(lambda one: one.day.year == 2024 and 3 <= one.day.month <= 5)
    assert figures(shop, "How many orders are from March 2024?") == [march]
    assert figures(shop, "How many orders from March 2024 to May 2024?") == [spring]


@pytest.mark.parametrize(
    "question",
    [
        "How many orders were cancelled in 2024?",
        "How many orders were cancelled since March 2024?",
        "How many orders cancelled in March 2024?",
        "How many orders were paid by quarter?",
        "What is the total amount of orders paid in 2024?",
        "How many orders were returned in the East in 2024?",
        "How many orders were cancelled in the East in 2024?",
    ],
)
def test_a_time_after_a_state_may_be_when_it_was_reached(shop: Library, question: str) -> None:
    assert figures(shop, question) == []


def test_a_german_state_at_the_end_may_have_been_reached_in_the_time_before_it(laden: Library) -> None:
    assert figures(laden, "Wie viele Bestellungen wurden seit März 2024 storniert?") == []


@pytest.mark.parametrize(
    "question", ["How many cancelled orders are there in 2024?", "How many orders in 2024 were cancelled?"]
)
def test_a_state_apart_from_the_time_is_one_of_the_orders_of_that_time(shop: Library, question: str) -> None:
    assert figures(shop, question) == [count(lambda one: one.status == "cancelled" and one.day.year == 2024)]


def test_a_place_and_a_value_after_its_column_are_no_states(shop: Library) -> None:
    right = count(lambda one: one.region == "East" and one.day.year == 2024)
    assert figures(shop, "How many orders were in the East in 2024?") == [right]
    assert figures(shop, "How many orders with region East in 2024?") == [right]


@pytest.mark.parametrize(
    "head", ["Hire date", "Birthday", "Start date", "End", "Valid until", "Eintrittsdatum", "入职日期"]
)
def test_dates_at_which_something_begins_or_ends_are_no_times_of_the_rows(
    library: Library, tmp_path: Path, head: str
) -> None:
    days = [date(2020, 1, 5), date(2021, 2, 5), date(2021, 2, 9), date(2024, 2, 9)]
    rows = [["Name", "Team", head, "Salary"], *([f"n{at}", "IT", day, 50 + at] for at, day in enumerate(days))]
    library.add(workbook(tmp_path / "employees.xlsx", Employees=rows))
    for question in (
        "How many employees in 2021?",
        "What is the average salary in 2021?",
        "What is the total salary by year?",
        "How many employees per year?",
        "How many employees in IT since 2021-01-01?",
    ):
        assert figures(library, question) == [], question


def test_such_dates_are_told_where_they_are_named(library: Library, tmp_path: Path) -> None:
    rows = [["Name", "Hire date"], ["a", date(2020, 1, 5)], ["b", date(2021, 2, 5)], ["c", date(2021, 2, 9)]]
    library.add(workbook(tmp_path / "employees.xlsx", Employees=rows))
    assert figures(library, "How many employees have a hire date in February 2021?") == ["2"]


@pytest.mark.parametrize("values", [["yes", "no", "yes"], ["Yes", "no", "n.a."]])
def test_what_is_said_of_rows_is_no_thing_that_is_counted(library: Library, tmp_path: Path, values: list[str]) -> None:
    rows = [["Order ID", "Returned"], *([f"a{at}", value] for at, value in enumerate(values))]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=rows))
    assert figures(library, "How many returned?") in ([], ["2"])
    assert not any("different" in one for one in texts(library, "How many returned?"))


def texts(library: Library, question: str) -> list[str]:
    return [one.text for one in counted(library, [one.id for one in library.documents()], question).passages]


def test_what_is_in_stock_is_not_all_that_stands_in_a_sheet_called_so(library: Library, tmp_path: Path) -> None:
    rows = [["Product", "In stock"], ["Lamp", "yes"], ["Desk", "no"], ["Lamp", "yes"], ["Chair", "yes"]]
    library.add(workbook(tmp_path / "stock.xlsx", Stock=rows))
    assert figures(library, "How many products are in stock?") in ([], ["2"])
    assert figures(library, "How many products are there?") == ["3"]


@pytest.mark.parametrize("question", ["Who has the highest amount?", "谁的金额最高？"])
def test_who_has_most_in_one_row_may_not_have_most_in_all(library: Library, tmp_path: Path, question: str) -> None:
    amount = "金额" if "金额" in question else "Amount"
    rows = [["Order ID", "Customer", amount], ["a", "Ann", 5], ["b", "Bob", 4], ["c", "Bob", 3]]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=rows))
    assert figures(library, question) == []


def test_who_is_told_where_each_row_is_somebody(library: Library, tmp_path: Path) -> None:
    library.add(workbook(tmp_path / "staff.xlsx", Staff=[["Name", "Team", "Pay"], ["Ann", "IT", 5], ["Bob", "IT", 4]]))
    assert figures(library, "Who has the highest pay?") == ["Ann"]


@pytest.mark.parametrize(
    "question", ["Welche Produkte haben die höchste Gesamtmenge?", "Die Regionen mit der höchsten Gesamtmenge?"]
)
def test_how_many_of_several_are_asked_for_in_german_is_not_sure(laden: Library, question: str) -> None:
    assert figures(laden, question) == []


def test_one_of_them_is_told_in_german(laden: Library) -> None:
    assert len(figures(laden, "Welches Produkt hat die höchste Gesamtmenge?")) == 1
    assert len(figures(laden, "Welche Region hat die höchste Gesamtmenge?")) == 1
    assert len(figures(laden, "Die Region mit der höchsten Gesamtmenge")) == 1


@pytest.mark.parametrize("question", ["also in the West?", "and also in the West?", "and also the West?"])
def test_also_may_add_what_follows_to_what_was_asked(shop: Library, question: str) -> None:
    assert figures(shop, question, "How many orders are there in the East?") == []


def test_a_cell_with_several_words_may_be_one_of_those_that_are_asked_for(library: Library, tmp_path: Path) -> None:
    rows = [
        ["Item", "Group", "Price"],
        ["a", "Blue", 5],
        ["b", "Red", 7],
        ["c", "Red & Blue", 9],
        ["d", "Dark grey", 1],
    ]
    library.add(workbook(tmp_path / "items.xlsx", Items=[*rows, ["e", "Grey", 2]]))
    for question in (
        "How many items are in group Red?",
        "How many red items are there?",
        "How many items with group not Blue?",
        "What is the total price of blue items?",
    ):
        assert figures(library, question) == [], question
    assert figures(library, "How many items are in group Grey?") == ["1"]
    assert figures(library, "How many items are in group Red & Blue?") == ["1"]


def test_the_number_of_orders_may_be_that_of_their_pieces(library: Library, tmp_path: Path) -> None:
    library.add(workbook(tmp_path / "订单.xlsx", 订单=[["订单号", "数量"], ["a", 5], ["b", 7]]))
    assert figures(library, "订单总数量是多少？") == []
    assert figures(library, "总共多少订单？") == ["2"]


def test_what_was_done_in_a_year_may_have_been_done_to_orders_of_another(library: Library, tmp_path: Path) -> None:
    rows = [["订单号", "是否退货", "日期"], ["a", "是", date(2024, 3, 1)], ["b", "否", date(2024, 3, 1)]]
    library.add(workbook(tmp_path / "订单.xlsx", 订单=rows))
    assert figures(library, "2024年退货的订单有多少？") == []
    assert figures(library, "2024年的订单有多少？") == ["2"]
    assert figures(library, "退货的订单有多少？") == ["1"]


def test_two_values_after_one_word_may_be_those_of_which_either_is_meant(library: Library, tmp_path: Path) -> None:
    rows = [["Order ID", "Customer", "Seller", "Status"], ["a", "Bob", "Tom", "open"], ["b", "Bob", "Kim", "paid"]]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=[*rows, ["c", "Eva", "Tom", "open"]]))
    assert figures(library, "How many orders from Bob and Tom are there?") == []
    assert figures(library, "How many orders are from Bob, Tom?") == []
    assert figures(library, "How many orders are open and from Bob?") == ["1"]
    assert figures(library, "How many orders are open and with seller Tom?") == ["2"]


def test_how_many_there_are_of_what_yes_and_no_say_is_not_two(library: Library, tmp_path: Path) -> None:
    rows = [["Order ID", "Gift"], ["a", "yes"], ["b", "no"], ["c", "yes"]]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=rows))
    assert figures(library, "How many gifts?") == []
    assert figures(library, "How many orders?") == ["3"]


def test_the_highest_total_amount_is_not_the_highest_amount(library: Library, tmp_path: Path) -> None:
    rows = [["Order ID", "Amount", "Total units"], ["a", 5, 1], ["b", 7, 2]]
    library.add(workbook(tmp_path / "orders.xlsx", Orders=rows))
    assert figures(library, "What is the highest total amount?") == []
    assert figures(library, "What is the highest amount?") == ["7"]
    assert figures(library, "What is the total value of amount?") == ["12"]
    assert figures(library, "What is the highest total units?") == ["2"]
