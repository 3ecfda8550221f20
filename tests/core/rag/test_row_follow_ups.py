"""A question that goes on, "and in the West?", asks what the one before asked with one condition exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.languages import Lang
from core.rag.counted import counted
from core.rag.library import Library
from core.rag.row_follow_ups import fragment_of, goes_on, refers_back
from tests.core.rag.shop_rows import (
    CHINESE,
    GERMAN,
    TO_CHINESE,
    TO_GERMAN,
    count,
    held,
    mean,
    number,
    share,
    sheet,
    total,
)
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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("store")
    with Library.open(folder / "library", BY_WORDS) as opened:
        opened.add(workbook(folder / "销售.xlsx", 订单=sheet(CHINESE, TO_CHINESE)))
        yield opened


def figures(library: Library, question: str, *earlier: str, lang: Lang = "en") -> list[Any]:
    """The figures that are told of a question after others."""
    ids = [one.id for one in library.documents()]
    return [one.computed for one in counted(library, ids, question, lang, earlier=earlier).passages]


EAST = "How many orders are there in the East?"
OPEN = "What is the total amount of open orders in the South?"


@pytest.mark.parametrize(
    ("earlier", "question", "right"),
    [
        ([EAST], "and in the West?", count(lambda one: one.region == "West")),
        ([EAST], "And in the North?", count(lambda one: one.region == "North")),
        ([EAST], "What about the South?", count(lambda one: one.region == "South")),
        ([EAST], "how about West?", count(lambda one: one.region == "West")),
        ([EAST], "And how many in the West?", count(lambda one: one.region == "West")),
        ([EAST], "In the West?", count(lambda one: one.region == "West")),
        ([EAST], "ok, and for region South?", count(lambda one: one.region == "South")),
        ([EAST], "And in the East?", count(lambda one: one.region == "East")),
        ([EAST], "und West?", count(lambda one: one.region == "West")),
        ([EAST, "and in the West?"], "and in the North?", count(lambda one: one.region == "North")),
        ([EAST, "and in the West?", "what about the North?"], "and South?", count(lambda one: one.region == "South")),
        (["How many open orders are there?"], "and paid ones?", count(lambda one: one.status == "paid")),
        ([OPEN], "and in the North?", total(lambda one: one.status == "open" and one.region == "North")),
        ([OPEN], "and of paid orders?", total(lambda one: one.status == "paid" and one.region == "South")),
        ([OPEN, "and paid ones?"], "and in the West?",
         total(lambda one: one.status == "paid" and one.region == "West")),
        (["What is the average amount for Li Wei?"], "and for Anna Meyer?",
         mean(lambda one: one.customer == "Anna Meyer")),
        (["What percentage of orders are open?"], "and paid?", share(lambda one: one.status == "paid")),
        (["How many orders have an amount over 5,000?"], "And with an amount over 10,000?",
         count(lambda one: one.amount > 10_000)),
        (["What is the total amount in March 2024?"], "and in April 2024?",
         total(lambda one: (one.day.year, one.day.month) == (2024, 4))),
        (["How many orders are there in 2024?"], "and in 2025?", count(lambda one: one.day.year == 2025)),
        (["What is the highest amount in the East?"], "and in the West?",
         number(max(one.amount for one in held(lambda one: one.region == "West")))),
        (["Which order in the East has the highest amount?"], "what about the North?",
         max(held(lambda one: one.region == "North"), key=lambda one: one.amount).number),
    ],
)  # fmt: skip
def test_one_condition_of_the_question_before_is_exchanged(
    shop: Library, earlier: list[str], question: str, right: str
) -> None:
    assert figures(shop, question, *earlier) == [right]


@pytest.mark.parametrize(
    ("earlier", "question", "right"),
    [
        ("东部有多少订单？", "那西部呢？", count(lambda one: one.region == "West")),
        ("东部有多少订单？", "西部呢？", count(lambda one: one.region == "West")),
        ("东部有多少订单？", "那么北部的呢", count(lambda one: one.region == "North")),
        ("未付的订单有多少？", "已付的呢？", count(lambda one: one.status == "paid")),
        ("东部的金额总和是多少？", "那南部怎么样？", total(lambda one: one.region == "South")),
        ("状态为未付的平均金额是多少？", "那已付的呢？", mean(lambda one: one.status == "paid")),
        ("东部有多少订单？", "那西部有多少？", count(lambda one: one.region == "West")),
    ],
)
def test_so_it_is_in_chinese(store: Library, earlier: str, question: str, right: str) -> None:
    assert figures(store, question, earlier, lang="zh") == [right]


@pytest.mark.parametrize(
    ("earlier", "question"),
    [
        ([], "and in the West?"),
        (["Who wrote the report?"], "and in the West?"),
        (["How many open orders are there?"], "and in the West?"),  # open ones there, or all
        ([EAST], "and in the Far West?"),
        ([EAST], "and not in the West?"),
        ([EAST], "and elsewhere?"),
        ([EAST], "and open ones?"),
        ([EAST], "and in the West and the North?"),
        ([EAST], "and the total amount in the West?"),
        ([EAST], "and per product?"),
        ([EAST], "and in 2024?"),
        ([EAST], "and why in the West?"),
        ([EAST, "Who lives there?"], "and in the West?"),
        ([EAST, "and elsewhere?"], "and in the West?"),
        (["How many orders have a status other than open?"], "and paid?"),
        (["What is the total amount in the East?"], "and how many in the West?"),
        (["How many orders have an amount over 5,000?"], "and an amount under 5,000?"),
        (["How many orders are there since March 2024?"], "and in April 2024?"),
        (["How many orders are in the East or in the West?"], "and in the North?"),
        (["How many orders per region?"], "and in the West?"),
        ([EAST], "How many of these orders are open?"),
        ([EAST], "How many open orders are there there?"),
        ([EAST], "And how many orders are open?"),
        ([EAST], "What is the total amount of these open orders?"),
        ([EAST], "How many orders have status open there?"),
    ],
)
def test_what_leaves_a_doubt_is_left_to_the_model(shop: Library, earlier: list[str], question: str) -> None:
    assert figures(shop, question, *earlier) == []


def test_a_value_of_two_columns_is_not_exchanged(library: Library, tmp_path: Path) -> None:
    rows = [["Trip", "From", "Destination"], ["a", "Rome", "Oslo"], ["b", "Oslo", "Bonn"], ["c", "Bonn", "Ulm"]]
    library.add(workbook(tmp_path / "trips.xlsx", Trips=rows))
    assert figures(library, "How many trips are there to Rome?") == []
    assert figures(library, "How many trips in Ulm are there?") == ["1"]
    assert figures(library, "and in Oslo?", "How many trips in Ulm are there?") == []
    assert figures(library, "and in Bonn?", "How many trips with destination Ulm are there?") == []
    assert figures(library, "and with destination Oslo?", "How many trips with destination Ulm are there?") == ["1"]


def test_what_stands_twice_in_the_question_before_is_not_exchanged(library: Library, tmp_path: Path) -> None:
    rows = [["Bill", "Open", "Open cost"], ["a", "open", 5], ["b", "paid", 7]]
    library.add(workbook(tmp_path / "bills.xlsx", Bills=rows))
    assert figures(library, "and is paid?", "What is the sum of open cost where open is open?") == []


def test_of_two_tables_both_are_told_as_if_the_whole_question_was_asked(library: Library, tmp_path: Path) -> None:
    may = [["Region", "Amount"], ["North", 1], ["South", 2], ["North", 4]]
    june = [["Region", "Amount"], ["North", 10], ["South", 20], ["West", 40]]
    library.add(workbook(tmp_path / "sales.xlsx", May=may, June=june))
    north = "What is the sum of amount where region is North?"
    assert figures(library, "and South?", north) == ["2", "20"]
    assert figures(library, "and West?", north) == figures(library, north.replace("North", "West")) == ["40"]


@pytest.mark.parametrize(
    "question",
    [
        "and in the West?", "What about the West?", "And the paid ones?", "und im Westen?", "Und in Berlin?",
        "Was ist mit dem Westen?", "Wie sieht es mit Berlin aus?", "那西部呢?", "西部呢？", "还有北部呢",
        "In the West?", "and how many in May?",
    ],
)  # fmt: skip
def test_a_question_that_goes_on_is_known(question: str) -> None:
    assert goes_on(question)


@pytest.mark.parametrize(
    "question",
    [
        "How many orders are there in the West?", "And who wrote it?", "And why is that?", "What is the West?",
        "Und wer hat das geschrieben?", "那为什么呢？", "Who is Andy?", "and", "", "West",
        "And now tell me in full length what stands in the third chapter of the book on the West and its people",
    ],
)  # fmt: skip
def test_any_other_question_is_none(question: str) -> None:
    assert not goes_on(question)


def test_a_question_that_may_be_of_what_was_spoken_of_is_known() -> None:
    assert all(
        map(refers_back, ["How many of them?", "Were any open there?", "其中未付的有多少？", "Wie viele davon?"])
    )
    assert not any(map(refers_back, ["How many orders are there in all?", "Are there open orders?", "有多少订单？"]))


REGIONS = st.sampled_from(["East", "West", "North", "South"])
WORDINGS = st.sampled_from(["and in the {}?", "What about the {}?", "And {}?", "how about region {}?", "and for {}?"])
ASKED = st.sampled_from([
    "How many orders are there in the {}?",
    "What is the total amount of paid orders in {}?",
    "What is the average amount where region is {}?",
    "Which order in {} has the lowest amount?",
    "What percentage of orders are from the {}?",
])  # fmt: skip


@settings(max_examples=20)
@given(ASKED, REGIONS, st.lists(st.tuples(WORDINGS, REGIONS), min_size=1, max_size=3))
def test_whatever_is_exchanged_says_what_the_whole_question_says(
    shop: Library, asked: str, first: str, then: list[tuple[str, str]]
) -> None:
    *before, last = [asked.format(first), *(wording.format(region) for wording, region in then)]
    assert figures(shop, last, *before) == figures(shop, asked.format(then[-1][1])) != []


@given(st.text(st.sampled_from("and what about how in the West?那呢 und im,"), max_size=100))
def test_no_text_breaks_what_looks_for_such_questions(question: str) -> None:
    found = fragment_of(question)
    assert found is None or (found.said and found.said in question)
