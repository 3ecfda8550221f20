"""What people ask of tables every day is told by program where one reading is possible, and else left to the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.rag.counted import counted
from core.rag.library import Library

ORDERS = """order_id,date,region,customer,product,quantity,total,returned
S-1,2024-01-05,East,Acme,Lamp,2,100,yes
S-2,2024-01-20,East,,Desk,1,900,no
S-3,2024-03-09,West,Acme,Lamp,5,300,no
S-4,2024-05-02,South,Dune,Lamp,4,250,yes
S-5,2024-05-30,East,Dune,Desk,2,1700,no
"""
TEAM = """Name,Department,Office,Age,Salary
Ada,Sales,Kiel,30,3000
Bo,Sales,Lyon,40,5000
May,Support,Kiel,50,4000
"""
LEFT = """Name,Department,City,Salary,Bonus,Exit date
Ada,Sales,Kiel,3000,10,
Bo,Sales,Kiel,5000,0,2023-01-01
Cy,Support,Kiel,4000,90,
"""
MONTHS = "Month,Year,Revenue\nJanuary,2023,100\nFebruary,2023,300\nJanuary,2024,250\nFebruary,2024,90\n"
SUMS = "Region,Revenue\nNorth,100\nSouth,200\nAll regions,300\n"
TWICE = "Probe,Value,Value\nA,1,9\nB,2,7\n"
STOCK = "Item,Place,Price,Cost,Stock\nLamp,Hall,20,9,0\nDesk,Hall,200,120,2\nChair,Yard,80,40,7\n"
GERMAN = "Haus;Stadt;Preis (EUR);Zustand\nH1;Kiel;1.200,50;neu\nH2;Bonn;900,00;alt\nH3;Kiel;300,00;neu\n"
CHINESE = """日期,城市,产品,数量,销售额
2024-01-05,北京,茶,2,100
2024-01-20,上海,咖啡,1,90
2024-03-09,北京,茶,5,300
2024-03-09,北京,咖啡,4,250
"""
FILES = {
    "orders.csv": ORDERS, "team.csv": TEAM, "left.csv": LEFT, "months.csv": MONTHS, "sums.csv": SUMS,
    "twice.csv": TWICE, "stock.csv": STOCK, "haeuser.csv": GERMAN, "销售记录.csv": CHINESE,
}  # fmt: skip


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Library, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("daily")
    with Library.open(folder / "library", {"retrieval_type": "keyword"}) as opened:
        ids: dict[str, str] = {}
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
            ids[name] = opened.add(folder / name).id
        yield opened, ids


def figures(shelf: tuple[Library, dict[str, str]], name: str, question: str, *earlier: str) -> list[str]:
    library, ids = shelf
    return [str(one.computed) for one in counted(library, [ids[name]], question, earlier=earlier).passages]


@pytest.mark.parametrize(
    ("name", "question", "right"),
    [
        ("team.csv", "How many people work in Kiel?", ["2"]),
        ("team.csv", "Wie viele Personen arbeiten in Kiel?", ["2"]),
        ("team.csv", "Who works in Lyon?", ["1"]),
        ("team.csv", "Who earns most?", ["Bo"]),
        ("team.csv", "Wer verdient in Kiel am meisten?", ["May"]),
        ("team.csv", "Who is the youngest?", ["Ada"]),
        ("team.csv", "How many people are older than 35?", ["2"]),
        ("team.csv", "Which department has the most people?", ["Sales"]),
        ("team.csv", "What is the average salary of employees in Kiel?", ["3,500"]),
        ("orders.csv", "What is the total by region?", ["2,700, 300, 250"]),
        ("orders.csv", "What is the total for March?", ["300"]),
        ("orders.csv", "What is the total in Q2 2024?", ["1,950"]),
        ("orders.csv", "How many orders in the first half of 2024?", ["5"]),
        ("orders.csv", "Which region has the highest total?", ["East"]),
        ("orders.csv", "Which month has the highest total?", ["2024-05"]),
        ("orders.csv", "Which region has the most orders?", ["East"]),
        ("orders.csv", "Which product was sold the most?", []),
        ("orders.csv", "Is there any order with a total above 1000?", ["1"]),
        ("orders.csv", "Which orders have no customer?", ["1"]),
        ("orders.csv", "List all products in the East", ["2"]),
        ("orders.csv", "How many orders are from the East but not returned?", ["2"]),
        ("orders.csv", "How many more orders are in the East than in the West?", ["3", "1", "2"]),
        ("orders.csv", "How many fewer orders are in the West than in the East?", ["1", "3", "2"]),
        ("orders.csv", "What is the difference between the highest and the lowest total?", ["1,700", "100", "1,600"]),
        ("haeuser.csv", "Welches Haus ist das teuerste?", ["H1"]),
        ("haeuser.csv", "Welche Häuser sind neu?", ["2"]),
        ("haeuser.csv", "Gesamtpreis nach Stadt", ["1,500.5, 900"]),
        ("销售记录.csv", "北京的订单有多少？", ["3"]),
        ("销售记录.csv", "北京的销售额是多少？", ["650"]),
        ("销售记录.csv", "哪个月销售额最高？", ["2024-03"]),
        ("销售记录.csv", "哪个产品卖得最好？", ["茶"]),
        ("销售记录.csv", "3月的销售额是多少？", ["550"]),
        ("销售记录.csv", "北京比上海多多少订单？", ["3", "1", "2"]),
        ("stock.csv", "Which item has the most stock?", ["Chair"]),
    ],
)
def test_a_daily_question_is_told(
    shelf: tuple[Library, dict[str, str]], name: str, question: str, right: list[str]
) -> None:
    assert figures(shelf, name, question) == right


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("team.csv", "How many people live in Kiel?"),  # an office
        ("team.csv", "How many people work in May?"),
        ("team.csv", "How many people are over 35?"),
        ("left.csv", "How many people work in Kiel?"),  # one left
        ("left.csv", "Which department has the most people?"),
        ("left.csv", "Who earns most?"),  # with the bonus, or without
        ("months.csv", "Which month has the highest revenue?"),  # of two years
        ("months.csv", "Which month has the lowest revenue?"),
        ("sums.csv", "Which region has the highest revenue?"),  # a row adds up the others
        ("sums.csv", "What is the total revenue?"),
        ("twice.csv", "What is the highest value?"),
        ("stock.csv", "How many items have no stock?"),  # none of it, and no empty cell
        ("stock.csv", "How many items are in Hall?"),  # pieces
        ("stock.csv", "How many items cost more than 50?"),  # the price, or the cost
        ("stock.csv", "Which item is the cheapest?"),
        ("stock.csv", "Which item sold the most?"),
        ("orders.csv", "Which customers have a total above 200?"),  # each order, or all of them
        ("orders.csv", "How many customers have no orders?"),
        ("orders.csv", "How many orders are not from the East?"),
        ("orders.csv", "What is the sum of total of all but East?"),
        ("orders.csv", "Is there any order above 500?"),  # pieces, or money
        ("orders.csv", "Which orders are overdue?"),
        ("orders.csv", "Who has the most orders?"),  # one order has no customer
        ("销售记录.csv", "除北京外的订单有多少？"),
    ],
)
def test_a_daily_question_that_leaves_a_doubt_is_left_to_the_model(
    shelf: tuple[Library, dict[str, str]], name: str, question: str
) -> None:
    assert figures(shelf, name, question) == []


def test_a_question_that_goes_on_adds_a_condition_to_one_that_asked_of_all(
    shelf: tuple[Library, dict[str, str]],
) -> None:
    returned = "How many orders were returned?"

    assert figures(shelf, "orders.csv", "And in the South?", returned) == ["1"]
    assert figures(shelf, "orders.csv", "And in the East?", returned, "And in the South?") == ["1"]
    assert figures(shelf, "orders.csv", "And in the East?", "What is the total?") == ["2,700"]


def test_a_question_that_goes_on_adds_nothing_to_one_that_asked_of_some(
    shelf: tuple[Library, dict[str, str]],
) -> None:
    assert figures(shelf, "orders.csv", "And for Lamp?", "How many orders are from the East?") == []


def test_values_that_share_the_place_are_all_told(shelf: tuple[Library, dict[str, str]]) -> None:
    assert figures(shelf, "orders.csv", "Which region has the fewest orders?") == ["South, West"]


def test_a_long_list_says_that_it_is_cut(tmp_path: Path) -> None:
    lines = [f"S-{at},East" for at in range(60)]
    (tmp_path / "orders.csv").write_text("\n".join(["order,region", *lines, "S-99,West"]) + "\n", encoding="utf-8")
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as library:
        (told,) = counted(library, [library.add(tmp_path / "orders.csv").id], "Which orders are in the East?").passages

    assert str(told.computed) == "60"
    assert "S-39, and 20 more" in told.text
