"""A column of yes and no is asked for by what it says: "how many were returned?", and nothing else is taken for one."""

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
from core.rag.row_flags import flag_names, yes_and_no
from tests.core.rag.shop_rows import (
    CHINESE,
    ORDERS,
    TO_CHINESE,
    Order,
    count,
    held,
    mean,
    number,
    share,
    sheet,
    sums_by,
    total,
    units,
)
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
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """The same orders without what could be counted beside them."""
    folder = tmp_path_factory.mktemp("plain")
    with Library.open(folder / "library", BY_WORDS) as opened:
        opened.add(workbook(folder / "shop.xlsx", Orders=sheet(without=["Units"])))
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


def back(one: Order) -> bool:
    return one.returned == "yes"


def kept(one: Order) -> bool:
    return one.returned == "no"


BY_REGION = sums_by(lambda one: one.region, lambda one: one.amount, back)


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("How many orders were returned?", count(back)),
        ("How many orders have been returned?", count(back)),
        ("How many of the orders were returned?", count(back)),
        ("How many returned orders are there?", count(back)),
        ("How many orders were not returned?", count(kept)),
        ("How many orders weren't returned?", count(kept)),
        ("How many orders have not been returned?", count(kept)),
        ("How many orders returned?", count(back)),
        ("How many orders were returned in the East?", count(lambda one: back(one) and one.region == "East")),
        ("How many orders in the East were not returned?", count(lambda one: kept(one) and one.region == "East")),
        ("How many open orders were returned?", count(lambda one: back(one) and one.status == "open")),
        ("How many orders are open and not returned?", count(lambda one: kept(one) and one.status == "open")),
        ("How many orders where returned is no?", count(kept)),
        ("How many orders by returned?", f"{count(kept)}, {count(back)}"),
        ("How many orders have returned = yes?", count(back)),
        ("What is the total amount of returned orders?", total(back)),
        ("What is the total amount of orders that were returned?", total(back)),
        ("What is the total amount of orders that were not returned?", total(kept)),
        ("What is the average amount of returned orders in the West?",
         mean(lambda one: back(one) and one.region == "West")),
        ("What is the sum of units of orders not returned?", units(kept)),
        ("What percentage of orders were returned?", share(back)),
        ("What percentage of the orders were not returned?", share(kept)),
        ("Which returned order has the highest amount?", max(held(back), key=lambda one: one.amount).number),
        ("How many orders with an amount over 9,000 were returned?",
         count(lambda one: back(one) and one.amount > 9_000)),
        ("What is the total amount of returned orders by region?",
         ", ".join(number(one) for one in sorted(BY_REGION.values(), reverse=True))),
    ],
)  # fmt: skip
def test_what_a_column_of_yes_and_no_says_is_a_condition(shop: Library, question: str, right: str) -> None:
    assert figures(shop, question) == [right]


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("有多少订单退货了？", count(back)),
        ("退货的订单有多少？", count(back)),
        ("已退货的订单有多少个？", count(back)),
        ("没有退货的订单有多少？", count(kept)),
        ("未退货的订单有多少？", count(kept)),
        ("东部退货的订单有多少？", count(lambda one: back(one) and one.region == "East")),
        ("退货订单的金额总和是多少？", total(back)),
        ("未退货订单的平均金额是多少？", mean(kept)),
        ("退货订单的比例是多少？", share(back)),
        ("是否退货为是的订单有多少？", count(back)),
    ],
)
def test_so_it_is_in_chinese(store: Library, question: str, right: str) -> None:
    assert figures(store, question, "zh") == [right]


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("How many were returned?", count(back)),
        ("How many were not returned?", count(kept)),
        ("How many were returned in the North?", count(lambda one: back(one) and one.region == "North")),
        ("What percentage were returned?", share(back)),
        ("What percentage were not returned?", share(kept)),
    ],
)
def test_where_no_word_says_what_is_counted_rows_are_where_nothing_else_can_be(
    plain: Library, shop: Library, question: str, right: str
) -> None:
    assert figures(plain, question) == [right]
    assert figures(shop, question) == []  # units of goods may be meant


@pytest.mark.parametrize(
    "question",
    [
        "How many customers were returned?",
        "How many customers returned?",
        "How many orders were returned or open?",
        "How many orders were nearly returned?",
        "How many orders were returned in March 2024?",  # of orders of that month, or in that month
        "How many orders were returned there?",
        "How many orders were not open?",
        "How many orders were returned and not returned?",
        "How many orders were not returned and open?",  # open ones that were not, or all that were not both
        "How many orders have no returned?",
        "How many returned are open?",
        "What is the total returned?",
        "What is the sum of returned?",
        "What percentage of returned orders are open?",
        "How many orders were unreturned?",
        "How many orders will be returned?",
        "How many orders were never returned?",
        "How many were returned and open?",
        "How many times were orders returned?",
        "Is the order with the highest amount returned?",
    ],
)
def test_what_leaves_a_doubt_is_left_to_the_model(shop: Library, question: str) -> None:
    assert figures(shop, question) == []


@pytest.mark.parametrize(
    ("yes", "no"),
    [("yes", "no"), ("Y", "N"), ("TRUE", "FALSE"), (True, False), ("ja", "nein"), ("是", "否"), (1, 0), ("1", "0")],
)
def test_yes_and_no_may_be_written_in_many_ways(library: Library, tmp_path: Path, yes: Any, no: Any) -> None:
    rows = [["Bill", "Paid", "Amount"], ["a", yes, 5], ["b", no, 7], ["c", yes, 9], ["d", yes, 1]]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert figures(library, "How many bills were paid?") == ["3"]
    assert figures(library, "How many bills are not paid?") == ["1"]
    assert figures(library, "How many were paid?") == ["3"]
    assert figures(library, "What is the total amount of paid bills?") == ["15"]
    assert figures(library, "What percentage of bills are paid?") == ["75 %"]


@pytest.mark.parametrize(
    "values",
    [
        ["yes", "no", ""],  # no, or not known
        ["yes", "no", "partly"],
        ["yes", "no", "n/a"],
        ["yes", "nein", "no"],
        [1, 0, 2],
        [1, 0, ""],
        ["x", "", ""],
        ["open", "due", "due"],
    ],
)
def test_a_column_with_anything_else_is_none(library: Library, tmp_path: Path, values: list[Any]) -> None:
    rows = [["Bill", "Paid"], *([f"b{at}", value] for at, value in enumerate(values))]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert [one for one in told(library, "How many bills were paid?") if "fulfil" in one] == []
    assert figures(library, "How many bills were not paid?") == []


def test_a_word_that_is_a_column_and_a_value_is_left_to_the_model(library: Library, tmp_path: Path) -> None:
    rows = [["Bill", "Returned", "Status"], ["a", "yes", "returned"], ["b", "no", "returned"], ["c", "no", "open"]]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert figures(library, "How many bills were returned?") == []
    assert figures(library, "How many bills have status returned?") == ["2"]


def test_two_columns_that_say_the_same_are_left_to_the_model(library: Library, tmp_path: Path) -> None:
    rows = [["Bill", "Returned", "Is returned"], ["a", "yes", "no"], ["b", "no", "no"]]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert figures(library, "How many bills were returned?") == []


def test_what_stands_in_several_rows_is_not_counted_by_them(library: Library, tmp_path: Path) -> None:
    rows = [["Bill ID", "Item", "Paid"], ["a", "pen", "yes"], ["a", "ink", "yes"], ["b", "pen", "no"]]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert figures(library, "How many bills were paid?") == []
    assert figures(library, "How many were paid?") == []
    assert figures(library, "How many rows were paid?") == ["2"]


def test_of_two_such_columns_each_is_a_condition_unless_both_may_be_denied(library: Library, tmp_path: Path) -> None:
    rows = [["Bill", "Paid", "Late"], ["a", "yes", "no"], ["b", "no", "yes"], ["c", "yes", "yes"], ["d", "no", "no"]]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=[*rows, ["e", "yes", "no"]]))
    assert figures(library, "How many bills are paid and late?") == ["1"]
    assert figures(library, "How many bills are paid and not late?") == ["2"]
    assert figures(library, "How many bills are not paid and not late?") == ["1"]
    assert figures(library, "How many bills are not paid and late?") == []
    assert figures(library, "How many not paid late bills are there?") == []


def test_a_column_that_is_called_percentage_is_meant_by_the_word(library: Library, tmp_path: Path) -> None:
    rows = [["City", "Percentage", "Region"], ["a", 5, "East"], ["b", 7, "East"], ["c", 9, "West"]]
    library.add(workbook(tmp_path / "cities.xlsx", Cities=rows))
    assert figures(library, "What is the average percentage in the East?") == ["6"]


def test_months_are_no_things_that_are_open(library: Library, tmp_path: Path) -> None:
    rows = [["Month", "Visitors", "Open"], ["May", 100, "yes"], ["June", 50, "no"], ["July", 20, "yes"]]
    library.add(workbook(tmp_path / "visitors.xlsx", Visitors=rows))
    assert figures(library, "How many were open?") == []
    assert figures(library, "How many visitors were open?") == []
    assert figures(library, "How many rows were open?") == ["2"]


def test_a_column_that_says_no_alone_counts_none(library: Library, tmp_path: Path) -> None:
    library.add(workbook(tmp_path / "bills.xlsx", Bills=[["Bill", "Is paid?"], ["a", "no"], ["b", "no"]]))
    assert told(library, "How many bills were paid?") == ["Sheet Bills: 0 of 2 rows fulfil Is paid? ≠ no."]
    assert figures(library, "How many bills are not paid?") == ["2"]


def test_the_condition_may_be_exchanged_beside_it(shop: Library) -> None:
    right = count(lambda one: back(one) and one.region == "West")
    assert figures(shop, "and in the West?", earlier=("How many orders were returned in the East?",)) == [right]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("returned", {"returned"}),
        ("is returned", {"returned"}),
        ("paid?", {"paid"}),
        ("paid (yes/no)", {"paid"}),
        ("是否退货", {"退货", "已退货", "已经退货"}),
        ("已付款", {"付款", "已付款", "已经付款"}),
        ("is", {"is"}),
    ],
)
def test_what_a_column_says_of_a_row(name: str, says: set[str]) -> None:
    assert set(flag_names(name)) >= says


@given(st.lists(st.sampled_from(["yes", "no", "Yes", "NO", "ja", "", "maybe", 0, 1, 2, 0.5, None]), max_size=5))
def test_only_both_of_one_pair_are_yes_and_no(values: list[Any]) -> None:
    found = yes_and_no(values)
    said = {str(one).casefold() for one in values if one is not None}
    fits = [{"yes", "no"}, {"0", "1"}, {"ja", "nein"}]
    assert (found is not None) == (bool(said) and any(said <= pair for pair in fits))
    if found is not None:
        assert sorted(map(str, (*found[0], *found[1]))) == sorted(str(one) for one in values if one is not None)


def test_the_orders_hold_both() -> None:
    assert {one.returned for one in ORDERS} == {"yes", "no"}
