"""The two to ten rows with the highest or lowest values are told by program, where it is clear which they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.rag.counted import counted
from core.rag.library import Library
from core.rag.top_questions import for_one
from tests.core.rag.test_plain_wordings import TICKETS
from tests.core.rag.test_rows_told import CHINESE, ORDERS, told, workbook


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as opened:
        yield opened


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Library, Library]]:
    """A library of tickets, and one of orders in Chinese."""
    folder = tmp_path_factory.mktemp("both")
    (folder / "tickets.csv").write_text(TICKETS, encoding="utf-8")
    by_words = {"retrieval_type": "keyword"}
    with Library.open(folder / "one", by_words) as tickets, Library.open(folder / "two", by_words) as store:
        tickets.add(folder / "tickets.csv")
        store.add(workbook(folder / "销售.xlsx", 订单=CHINESE))
        yield tickets, store


T4, T5, T2 = (
    f"row {row}: ticket: {name}, amount: {n}" for row, name, n in ((5, "T-4", 400), (6, "T-5", 300), (3, "T-2", 250))
)
THREE = f"the 3 highest values of amount: {T4}; {T5}; {T2}."


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("the three largest tickets by amount", THREE),
        ("What are the three largest tickets by amount?", THREE),
        ("top 3 tickets by amount", THREE),
        ("List the 3 tickets with the highest amount", THREE),
        ("Which two tickets have the highest amount?", f"the 2 highest values of amount: {T4}; {T5}."),
        ("Show me the top 2 closed tickets by amount",
         f"the 2 highest values of amount with status = closed: {T5}; {T2}."),
        ("Which 2 tickets have the lowest amount?",
         "the 2 lowest values of amount: row 4: ticket: T-3, amount: 50; row 7: ticket: T-6, amount: 75."),
    ],
)  # fmt: skip
def test_several_rows_are_told_with_their_values(both: tuple[Library, Library], question: str, says: str) -> None:
    assert told(both[0], question) == [f"The table in tickets.csv: {says}"]


JIA = "第 4 行：订单号: 甲3，金额: 2,500.5；第 2 行：订单号: 甲1，金额: 1,200"


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("金额最高的两个订单", f"最大的 2 个值：{JIA}。"),
        ("金额最高的2个订单是哪些？", f"最大的 2 个值：{JIA}。"),
        ("金额前两名的订单有哪些？", f"最大的 2 个值：{JIA}。"),
        ("金额排名前三的订单", f"最大的 3 个值：{JIA}；第 5 行：订单号: 甲4，金额: 900。"),
        ("哪两个订单金额最高？", f"最大的 2 个值：{JIA}。"),
        ("金额最低的两个未付订单是哪些？",
         "最小的 2 个值（条件：状态 = 未付）：第 5 行：订单号: 甲4，金额: 900；第 2 行：订单号: 甲1，金额: 1,200。"),
    ],
)  # fmt: skip
def test_so_they_are_in_chinese(both: tuple[Library, Library], question: str, says: str) -> None:
    assert told(both[1], question, "zh") == [f"工作表 订单：金额 {says}"]


@pytest.mark.parametrize(
    "question",
    [
        "What are the 10 largest tickets by amount?",  # there are six
        "What is the total amount of the three largest tickets by amount?",
        "What is the average amount of the top 3 tickets?",
        "How many of the top 3 tickets are open?",
        "the three largest amounts",
        "the three largest tickets",
        "top 3 regions by amount",
        "top 2 regions by average total amount",
        "top 3 tickets by date",  # the latest, or the first
        "top 2 tickets by amount per region",
        "Which three tickets are closed?",
        "前三个月的总金额",
    ],
)
def test_what_leaves_a_doubt_is_left_to_the_model(both: tuple[Library, Library], question: str) -> None:
    assert told(both[0], question) == []


def test_the_values_and_exactly_their_rows_go_along(both: tuple[Library, Library]) -> None:
    tickets = both[0]
    (passage,) = counted(tickets, [one.id for one in tickets.documents()], "top 3 tickets by amount").passages
    assert (passage.computed, passage.rows) == ("400, 300, 250", "3, 5–6")


def test_a_place_that_is_shared_leaves_open_who_has_it(library: Library, tmp_path: Path) -> None:
    rows = [["City", "People"], ["Ulm", 5], ["Bonn", 9], ["Kiel", 9], ["Jena", 5]]
    library.add(workbook(tmp_path / "cities.xlsx", Cities=rows))
    assert told(library, "Which three cities have the most people?") == []
    assert told(library, "top 3 cities by people") == []
    assert told(library, "top 2 cities by people") == [
        "Sheet Cities: the 2 highest values of People: row 3: City: Bonn, People: 9; row 4: City: Kiel, People: 9."
    ]


def test_what_stands_in_several_rows_has_no_places(library: Library, tmp_path: Path) -> None:
    library.add(workbook(tmp_path / "shop.xlsx", Orders=ORDERS))
    assert told(library, "top 2 customers by amount") == []
    assert len(told(library, "top 2 orders by amount")) == 1


@pytest.mark.parametrize(
    ("question", "one"),
    [
        ("top ten orders by cost", ("the highest orders by cost", 10)),
        ("Which are the 2 lowest rows by cost?", ("what is the lowest rows by cost?", 2)),
        ("金额最大的十个订单", ("金额最大的订单是哪一个", 10)),
        ("Which order has the highest cost?", ("Which order has the highest cost?", 1)),
        ("What is the cost of order 3?", ("What is the cost of order 3?", 1)),
    ],
)
def test_a_question_for_several_is_put_as_the_one_for_one(question: str, one: tuple[str, int]) -> None:
    assert for_one(question) == one
