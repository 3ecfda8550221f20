"""The values of a column with the highest or lowest sums are told by program: "top 3 products by total units"."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.languages import Lang
from core.rag.counted import counted
from core.rag.library import Library
from tests.core.rag.shop_rows import CHINESE, TO_CHINESE, Order, number, sheet, sums_by
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


def figures(library: Library, question: str, lang: Lang = "en") -> list[Any]:
    return [one.computed for one in counted(library, [one.id for one in library.documents()], question, lang).passages]


def product(one: Order) -> str:
    return one.product


def amount(one: Order) -> float:
    return one.amount


def units(one: Order) -> float:
    return one.units


def ranked(
    of: Callable[[Order], str],
    what: Callable[[Order], float],
    many: int,
    where: Callable[[Order], bool] = bool,
    *,
    lowest: bool = False,
    mean: bool = False,
) -> list[tuple[str, float]]:
    """The values with the highest figures."""
    sums, rows = sums_by(of, what, where), sums_by(of, lambda _: 1, where)
    each = {key: value / rows[key] if mean else value for key, value in sums.items()}
    return sorted(each.items(), key=lambda one: one[1] if lowest else -one[1])[:many]


def values(them: list[tuple[str, float]]) -> str:
    return ", ".join(number(value) for _, value in them)


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("top 3 products by total units", values(ranked(product, units, 3))),
        ("Top 3 products by total amount", values(ranked(product, amount, 3))),
        ("What are the top 2 products by total amount?", values(ranked(product, amount, 2))),
        ("the three largest products by total units", values(ranked(product, units, 3))),
        ("List the 3 products with the highest total units", values(ranked(product, units, 3))),
        ("Show me the two regions with the lowest total amount",
         values(ranked(lambda one: one.region, amount, 2, lowest=True))),
        ("Which product has the highest total amount?", ranked(product, amount, 1)[0][0]),
        ("Which product has the most total units?", ranked(product, units, 1)[0][0]),
        ("Which region has the lowest total units?", ranked(lambda one: one.region, units, 1, lowest=True)[0][0]),
        ("Which customer has the highest total amount?", ranked(lambda one: one.customer, amount, 1)[0][0]),
        ("Which customer has the highest average amount?",
         ranked(lambda one: one.customer, amount, 1, mean=True)[0][0]),
        ("Which 2 customers have the highest total amount?", values(ranked(lambda one: one.customer, amount, 2))),
        ("Which two products have the lowest total units?", values(ranked(product, units, 2, lowest=True))),
        ("top 3 products by average amount", values(ranked(product, amount, 3, mean=True))),
        ("top 2 products by total units in the East",
         values(ranked(product, units, 2, lambda one: one.region == "East"))),
        ("top 3 products by total amount in 2024",
         values(ranked(product, amount, 3, lambda one: one.day.year == 2024))),
        ("Which product has the highest total amount in the West?",
         ranked(product, amount, 1, lambda one: one.region == "West")[0][0]),
        ("Which product with status paid has the highest total amount?",
         ranked(product, amount, 1, lambda one: one.status == "paid")[0][0]),
        ("the product with the highest total units", ranked(product, units, 1)[0][0]),
        ("top 4 regions by total amount", values(ranked(lambda one: one.region, amount, 4))),
        ("top two customers by sum of amount", values(ranked(lambda one: one.customer, amount, 2))),
    ],
)  # fmt: skip
def test_values_are_told_by_their_sums(shop: Library, question: str, right: str) -> None:
    assert figures(shop, question) == [right]


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("总金额最高的3个产品", values(ranked(product, amount, 3))),
        ("总金额最高的两个客户是哪些？", values(ranked(lambda one: one.customer, amount, 2))),
        ("按总金额排名前三的产品", values(ranked(product, amount, 3))),
        ("总金额前三的产品", values(ranked(product, amount, 3))),
        ("哪个产品的总金额最高？", TO_CHINESE[ranked(product, amount, 1)[0][0]]),
        ("哪个客户的总金额最低？", ranked(lambda one: one.customer, amount, 1, lowest=True)[0][0]),
        ("平均金额最高的产品是哪一个？", TO_CHINESE[ranked(product, amount, 1, mean=True)[0][0]]),
    ],
)
def test_so_they_are_in_chinese(store: Library, question: str, right: str) -> None:
    assert figures(store, question, "zh") == [right]


@pytest.mark.parametrize(
    "question",
    [
        "top 3 products by units",  # of one order, or of all
        "top 3 products",
        "top 9 products by total units",  # there are five
        "top 3 products by total status",
        "top 3 products by total units and amount",
        "top 3 products by total units per region",
        "top 3 dates by total units",
        "Which products have the highest total units?",  # how many of them
        "What is the total amount of the top 3 products?",
        "What is the average amount of the top 3 products?",
        "What is the highest total amount per region?",
        "What is the total of the highest amount?",
        "What is the total amount of the three largest orders by amount?",
        "Which product has the highest total?",
        "How many of the top 3 products by total units are open?",
        "前3个产品的平均金额",
        "前三个月的总金额",
    ],
)
def test_what_leaves_a_doubt_is_left_to_the_model(shop: Library, question: str) -> None:
    assert figures(shop, question) == []


def test_the_sentence_says_the_values_and_their_sums(library: Library, tmp_path: Path) -> None:
    rows = [["Product", "Units"], ["Lamp", 5], ["Desk", 7], ["Lamp", 4], ["Chair", 1]]
    library.add(workbook(tmp_path / "sales.xlsx", Sales=rows))
    assert told(library, "top 2 products by total units") == [
        "Sheet Sales: the 2 values of Product with the highest sum of Units: Lamp: 9, Desk: 7 (4 rows)."
    ]
    assert told(library, "Which product has the highest total units?") == [
        "Sheet Sales: the value of Product with the highest sum of Units: Lamp: 9 (4 rows)."
    ]
    assert told(library, "总units最高的两个product", "zh") == [
        "工作表 Sales：Units 的总和最高的 2 个 Product：Lamp：9，Desk：7（4 行数据）。"
    ]
    (passage,) = counted(library, [one.id for one in library.documents()], "top 2 products by total units").passages
    assert passage.rows == "2–4"


@pytest.mark.parametrize(
    "rows",
    [
        [["Lamp", 5], ["Desk", 7], ["Chair", 5]],  # the second place is shared
        [["Lamp", 0.1], ["Lamp", 0.2], ["Desk", 7], ["Chair", 0.3]],  # so it is, but for the last digit
        [["Lamp", 5], ["", 7], ["Chair", 6]],  # a group may be named in its first row alone
        [["Lamp", 5], ["Desk", ""], ["Chair", 6]],  # what is not known may be the most
        [["Lamp", 5], ["lamp", 7], ["Chair", 6]],
        [["Lamp", 5], ["Lamp, Desk", 7], ["Chair", 6]],
        [["Lamp", 5], ["Lamp", 7]],
    ],
)
def test_where_places_or_values_leave_a_doubt_nothing_is_told(
    library: Library, tmp_path: Path, rows: list[list[Any]]
) -> None:
    library.add(workbook(tmp_path / "sales.xlsx", Sales=[["Product", "Units"], *rows]))
    assert figures(library, "top 2 products by total units") == []


def test_shares_and_several_currencies_have_no_sums(library: Library, tmp_path: Path) -> None:
    rates = [
        ["Product", "Rate", "Cost", "Currency"],
        ["A", "5%", 1, "EUR"],
        ["B", "7%", 2, "USD"],
        ["A", "8%", 3, "EUR"],
    ]
    library.add(workbook(tmp_path / "rates.xlsx", Rates=rates))
    assert figures(library, "top 2 products by total cost") == []
    assert figures(library, "top 2 currencies by total cost") == ["4, 2"]
    plain = [row[:2] for row in rates]
    library.add(workbook(tmp_path / "plain.xlsx", Shares=[["Item", "Part"], *plain[1:]]))
    assert figures(library, "top 2 items by total part") == []
    assert figures(library, "top 2 items by average part") == ["7, 6.5"]


def test_any_table_has_the_places_that_a_sort_by_hand_gives(library: Library, tmp_path: Path) -> None:
    lot = random.Random(5)
    rows = [[f"p{lot.randrange(8)}", lot.randrange(100)] for _ in range(60)]
    library.add(workbook(tmp_path / "sales.xlsx", Sales=[["Product", "Units"], *rows]))
    sums: dict[str, int] = {}
    for name, n in rows:
        sums[name] = sums.get(name, 0) + n
    best = sorted(sums.values(), reverse=True)
    for many in range(2, 9):
        right = [] if many < len(best) and best[many] == best[many - 1] else [", ".join(map(number, best[:many]))]
        assert figures(library, f"top {many} products by total units") == (right if many <= len(best) else [])
