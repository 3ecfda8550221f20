"""Daily questions on daily tables: how many a program tells, and that it tells no wrong figure.

    python -m bench.tables_daily [show]

What is right is reckoned here from the rows that the files are written of, never by what reads the files. A question
that leaves a doubt has no right figure: it is to be left to a model, and counts as wrong where it is told.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TypeAlias

from bench.daily_tables import BILLS, EXPENSES, HOUSES, MARKS, ORDERS, SALES, STAFF, TEAM, Row, made
from bench.figures import Figure, report
from core.rag.counted import counted
from core.rag.document import Passage
from core.rag.library import Library

Right: TypeAlias = tuple[object, ...] | frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Daily:
    """A question on a table.

    Args:
        table: The name of its file.
        right: The figures or names that are told, in their order; a set of names that are all told; `None` where the
            question is to be left to a model.
        earlier: The questions before it.
    """

    table: str
    text: str
    right: Right
    earlier: tuple[str, ...] = ()


def questions() -> Iterator[Daily]:
    """All questions."""
    for table, of in _ASKED.items():
        for text, right, *earlier in of():
            yield Daily(table, text, right, tuple(earlier))


# ---- what is right


def _of(rows: Sequence[Row], **of: object) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in of.items())]


def _n(rows: Sequence[Row], **of: object) -> tuple[int]:
    return (len(_of(rows, **of)),)


def _sum(rows: Sequence[Row], name: str) -> tuple[float]:
    return (sum(row[name] for row in rows),)


def _mean(rows: Sequence[Row], name: str) -> tuple[float]:
    return (statistics.mean(row[name] for row in rows),)


def _in(rows: Sequence[Row], name: str, first: str, last: str) -> list[Row]:
    return [row for row in rows if date.fromisoformat(first) <= row[name] <= date.fromisoformat(last)]


def _over(rows: Sequence[Row], name: str, least: float) -> list[Row]:
    return [row for row in rows if row[name] > least]


def _sums(rows: Sequence[Row], by: str | Callable[[Row], str], name: str) -> list[tuple[str, float]]:
    """The sums by value, the highest first."""
    each: dict[str, float] = {}
    for row in rows:
        said = row[by] if isinstance(by, str) else by(row)
        each[said] = each.get(said, 0) + row[name]
    return sorted(each.items(), key=lambda one: -one[1])


def _by(rows: Sequence[Row], by: str, name: str) -> tuple[float, ...]:
    return tuple(figure for _, figure in _sums(rows, by, name))


def _month(name: str) -> Callable[[Row], str]:
    return lambda row: f"{row[name]:%Y-%m}"


def _most(rows: Sequence[Row], by: str) -> tuple[str, ...]:
    """The value that most rows have."""
    return (Counter(row[by] for row in rows).most_common(1)[0][0],)


def _top(rows: Sequence[Row], by: str, of: str) -> tuple[object]:
    return (max(rows, key=lambda row: row[by])[of],)


def _low(rows: Sequence[Row], by: str, of: str) -> tuple[object]:
    return (min(rows, key=lambda row: row[by])[of],)


def _names(rows: Sequence[Row], of: str) -> frozenset[str]:
    return frozenset(str(row[of]) for row in rows)


# ---- the questions of each table: text, what is right, those before it

_Asked: TypeAlias = list[tuple[str, Right] | tuple[str, Right, str] | tuple[str, Right, str, str]]


def _of_orders() -> _Asked:
    o, east, west = ORDERS, _of(ORDERS, region="East"), _of(ORDERS, region="West")
    months = sorted(_sums(_in(o, "date", "2024-01-01", "2024-12-31"), _month("date"), "total"))
    south_back = _n(o, region="South", returned="yes")
    by_region, by_total = _sums(o, "region", "total"), _by(o, "region", "total")
    return [
        ("How many orders are from the East?", _n(o, region="East")),
        ("And in the South?", south_back, "How many orders were returned?"),
        ("And in the West?", south_back[:0] + _n(o, region="West", returned="yes"), "How many orders were returned?",
         "And in the South?"),
        ("What is the total by region?", by_total),
        ("total per region", by_total),
        ("What is the total for March 2024?", _sum(_in(o, "date", "2024-03-01", "2024-03-31"), "total")),
        ("What is the total for March?", None),
        ("What is the average total in the North?", _mean(_of(o, region="North"), "total")),
        ("What is the total quantity by product?", _by(o, "product", "quantity")),
        ("Which region has the highest total?", (by_region[0][0],)),
        ("Which region sold the most?", (by_region[0][0],)),
        ("Which product was sold the most?", ("Lamp",)),
        ("What is the best-selling product?", ("Lamp",)),
        ("Which customer has the most orders?", None),  # some orders have no customer
        ("Which region has the most orders?", _most(o, "region")),
        ("which product has the fewest orders?", (min(_sums(o, "product", "quantity"), key=lambda one: len(
            _of(o, product=one[0])))[0],)),
        ("Which month has the highest total?", None),
        ("Which month of 2024 had the highest total?", (max(months, key=lambda one: one[1])[0],)),
        ("How many more orders are in the East than in the West?", (*_n(o, region="East"), *_n(o, region="West"),
         len(east) - len(west))),
        ("How many fewer orders are in the West than in the East?", (*_n(o, region="West"), *_n(o, region="East"),
         len(east) - len(west))),
        ("What is the difference between the highest and the lowest total?", (max(r["total"] for r in o),
         min(r["total"] for r in o), max(r["total"] for r in o) - min(r["total"] for r in o))),
        ("What is the difference between the total quantity in the East and in the West?", (*_sum(east, "quantity"),
         *_sum(west, "quantity"), _sum(east, "quantity")[0] - _sum(west, "quantity")[0])),
        ("How many orders after 1 March 2024?", (len(_in(o, "date", "2024-03-02", "2099-01-01")),)),
        ("How many orders were there between 1 March 2024 and 15 April 2024?",
         (len(_in(o, "date", "2024-03-01", "2024-04-15")),)),
        ("How many orders in the last quarter of 2023?", (len(_in(o, "date", "2023-10-01", "2023-12-31")),)),
        ("What is the total for Q1 2024?", _sum(_in(o, "date", "2024-01-01", "2024-03-31"), "total")),
        ("How many orders in the first half of 2024?", (len(_in(o, "date", "2024-01-01", "2024-06-30")),)),
        ("Is there any order with a total above 5000?", (len(_over(o, "total", 5000)),)),
        ("Are there any orders with a total above 100,000?", (0,)),
        ("Is there any order above 5000?", None),
        ("Which orders have no customer?", _names(_of(o, customer=""), "order_id")),
        ("How many orders have no customer?", _n(o, customer="")),
        ("Which orders are overdue?", None),
        ("How many orders are not from the East?", None),
        ("How many orders are from the East or the West?", None),
        ("How many orders except those from the East?", None),
        ("How many were returned?", None),
        ("List all products sold in the East", _names(east, "product")),
        ("top 3 products by total", tuple(figure for _, figure in _sums(o, "product", "total"))),
        ("How many orders are from the East but not returned?", _n(o, region="East", returned="no")),
    ]  # fmt: skip


def _of_staff() -> _Asked:
    s = STAFF
    return [
        ("How many people work in Kiel?", _n(s, Stadt="Kiel")),
        ("Wie viele Personen arbeiten in Kiel?", _n(s, Stadt="Kiel")),
        ("Und in Bonn?", _n(s, Stadt="Bonn"), "Wie viele Personen arbeiten in Kiel?"),
        ("Wie viele arbeiten in Teilzeit?", _n(s, Teilzeit="ja")),
        ("Wie viele Mitarbeiter arbeiten in der Technik?", _n(s, Abteilung="Technik")),
        ("Wie viele Mitarbeiter hat die Abteilung Einkauf?", _n(s, Abteilung="Einkauf")),
        ("Wer verdient am meisten?", _top(s, "Gehalt", "Name")),
        ("Wer verdient am wenigsten?", _low(s, "Gehalt", "Name")),
        ("Wer verdient in Kiel am meisten?", _top(_of(s, Stadt="Kiel"), "Gehalt", "Name")),
        ("Who earns the most?", _top(s, "Gehalt", "Name")),
        ("Welche Stadt hat die meisten Mitarbeiter?", _most(s, "Stadt")),
        ("Wie hoch ist das durchschnittliche Gehalt in Technik?", _mean(_of(s, Abteilung="Technik"), "Gehalt")),
        ("Durchschnittliches Gehalt nach Abteilung", tuple(sorted((_mean(_of(s, Abteilung=one), "Gehalt")[0]
         for one in ("Einkauf", "Technik", "Verkauf")), reverse=True))),
        ("Summe der Gehälter nach Stadt", _by(s, "Stadt", "Gehalt")),
        ("Was ist die Differenz zwischen dem höchsten und dem niedrigsten Gehalt?", (max(r["Gehalt"] for r in s),
         min(r["Gehalt"] for r in s), max(r["Gehalt"] for r in s) - min(r["Gehalt"] for r in s))),
        ("Wie viele Mitarbeiter arbeiten nicht in Kiel?", None),
        ("Wie viele Personen wohnen in Kiel?", None),
        ("Welche Personen arbeiten in Ulm?", _names(_of(s, Stadt="Ulm"), "Name")),
    ]  # fmt: skip


def _of_sales() -> _Asked:
    s = SALES
    return [
        ("北京的订单有多少？", _n(s, 城市="北京")),
        ("上海有多少订单？", _n(s, 城市="上海")),
        ("How many orders are from 上海?", _n(s, 城市="上海")),
        ("北京的销售额是多少？", _sum(_of(s, 城市="北京"), "销售额")),
        ("北京的总销售额是多少？", _sum(_of(s, 城市="北京"), "销售额")),
        ("哪个月销售额最高？", (_sums(s, _month("日期"), "销售额")[0][0],)),
        ("哪个城市的销售额最高？", (_sums(s, "城市", "销售额")[0][0],)),
        ("哪个城市的订单最多？", _most(s, "城市")),
        ("3月的销售额是多少？", _sum(_in(s, "日期", "2024-03-01", "2024-03-31"), "销售额")),
        ("2024年第二季度的总销售额", _sum(_in(s, "日期", "2024-04-01", "2024-06-30"), "销售额")),
        ("各产品的总数量", _by(s, "产品", "数量")),
        ("哪个产品卖得最好？", (_sums(s, "产品", "数量")[0][0],)),
        ("不在北京的订单有多少？", None),
        ("北京比上海多多少订单？", (*_n(s, 城市="北京"), *_n(s, 城市="上海"),
         _n(s, 城市="北京")[0] - _n(s, 城市="上海")[0])),
        ("茶的平均销售额是多少？", _mean(_of(s, 产品="茶"), "销售额")),
        ("那咖啡呢？", _mean(_of(s, 产品="咖啡"), "销售额"), "茶的平均销售额是多少？"),
        ("How many orders are from 北京 in May?", (len(_in(_of(s, 城市="北京"), "日期", "2024-05-01", "2024-05-31")),)),
    ]  # fmt: skip


def _of_expenses() -> _Asked:
    e = EXPENSES
    return [
        ("What is the total amount for Travel?", _sum(_of(e, Category="Travel"), "Amount (EUR)")),
        ("What is the total amount by category?", _by(e, "Category", "Amount (EUR)")),
        ("How much did we spend on Travel?", _sum(_of(e, Category="Travel"), "Amount (EUR)")),
        ("How much was spent in March?", _sum(_in(e, "Date", "2024-03-01", "2024-03-31"), "Amount (EUR)")),
        ("How many expenses are above 1,000?", (len(_over(e, "Amount (EUR)", 1000)),)),
        ("Is there any expense above 2000?", (len(_over(e, "Amount (EUR)", 2000)),)),
        ("Which month has the highest total amount?", (_sums(e, _month("Date"), "Amount (EUR)")[0][0],)),
        ("Which category has the most expenses?", None),
        ("List all vendors for Software", _names(_of(e, Category="Software"), "Vendor")),
        ("How many expenses are unpaid?", None),
        ("How many expenses are not paid?", _n(e, Paid="no")),
        ("How many expenses were there in the second quarter of 2024?",
         (len(_in(e, "Date", "2024-04-01", "2024-06-30")),)),
        ("What is the total?", (round(sum(row["Amount (EUR)"] for row in e), 2),)),
    ]  # fmt: skip


def _of_stock() -> _Asked:
    return [
        ("How many items are in Hall A?", None),
        ("Which item has the highest stock?", ("Screw",)),
        ("What is the total stock in Hall B?", (355,)),
        ("Which supplier has the lowest days?", ("Krall",)),
        ("List all suppliers", frozenset({"Krall", "Lund", "Mori"})),
    ]


def _of_readings() -> _Asked:
    return [
        ("What is the average value of A?", None),
        ("What is the highest value?", None),
        ("What is the total share?", None),
        ("How many rows have probe B?", (2,)),
        ("Which probe has the highest share?", ("B",)),
        ("How many rows are above 50%?", (1,)),
    ]


def _of_bills() -> _Asked:
    b = BILLS
    return [
        ("How many invoices are open?", _n(b, Status="open")),
        ("What is the total net of open invoices?", _sum(_of(b, Status="open"), "Net")),
        ("Which client has the most invoices?", _most(b, "Client")),
        ("Which client has the most open invoices?", _most(_of(b, Status="open"), "Client")),
        ("How many invoices were issued after 1 March 2024?", (len(_in(b, "Issued", "2024-03-02", "2099-01-01")),)),
        ("How many invoices are from Q4 2023?", (len(_in(b, "Issued", "2023-10-01", "2023-12-31")),)),
        ("Which clients have open invoices?", _names(_of(b, Status="open"), "Client")),
        ("Are there any invoices over 15,000?", (len(_over(b, "Net", 15000)),)),
        ("How many invoices are overdue?", None),
        ("How many more invoices are paid than open?", (*_n(b, Status="paid"), *_n(b, Status="open"),
         _n(b, Status="paid")[0] - _n(b, Status="open")[0])),
        ("How many invoices does Ito Ltd have?", _n(b, Client="Ito Ltd")),
        ("How many invoices are open or cancelled?", None),
    ]  # fmt: skip


def _of_houses() -> _Asked:
    h = HOUSES
    return [
        ("Wie viele Häuser stehen in Kiel?", _n(h, Stadt="Kiel")),
        ("Wie viele Häuser gibt es in Bonn?", _n(h, Stadt="Bonn")),
        ("Welches Haus ist das teuerste?", _top(h, "Preis", "Haus") if len(_of(h, Preis=max(
            r["Preis"] for r in h))) == 1 else None),
        ("Welche Stadt hat die meisten Häuser?", _most(h, "Stadt")),
        ("Durchschnittlicher Preis der Häuser nach Städten", tuple(sorted((_mean(_of(h, Stadt=one), "Preis")[0]
         for one in ("Kiel", "Bonn", "Ulm")), reverse=True))),
        ("Wie viele neue Häuser gibt es?", _n(h, Zustand="neu")),
        ("Welche Häuser sind saniert?", _names(_of(h, Zustand="saniert"), "Haus")),
    ]  # fmt: skip


def _of_marks() -> _Asked:
    m = MARKS
    return [
        ("一班有多少学生？", _n(m, 班级="一班")),
        ("一班有多少人？", _n(m, 班级="一班")),
        ("谁的数学最高？", _top(m, "数学", "姓名")),
        ("二班的平均数学是多少？", _mean(_of(m, 班级="二班"), "数学")),
        ("数学最高分和最低分的差是多少？", None),
        ("哪个班级的人最多？", _most(m, "班级") if _n(m, 班级="一班") != _n(m, 班级="二班") else None),
    ]


def _of_team() -> _Asked:
    t = TEAM
    return [
        ("How many people work in Kiel?", _n(t, Office="Kiel")),
        ("How many people work in Sales?", _n(t, Department="Sales")),
        ("How many people live in Kiel?", None),
        ("How many employees are in Support?", _n(t, Department="Support")),
        ("Who earns the most?", _top(t, "Salary", "Name")),
        ("Who earns the least in Research?", _low(_of(t, Department="Research"), "Salary", "Name")),
        ("Who is the oldest?", _top(t, "Age", "Name")),
        ("Who is the youngest in Sales?", _low(_of(t, Department="Sales"), "Age", "Name")),
        ("Which department has the most people?", _most(t, "Department")),
        ("How many people are older than 30?", (len(_over(t, "Age", 30)),)),
        ("List all people in Lyon", _names(_of(t, Office="Lyon"), "Name")),
        ("How many people work in May?", None),
        ("How much does Dora earn?", None),
        ("What is the average salary by department?", tuple(sorted((_mean(_of(t, Department=one), "Salary")[0]
         for one in ("Sales", "Support", "Research")), reverse=True))),
    ]  # fmt: skip


_ASKED: dict[str, Callable[[], _Asked]] = {
    "shop_orders.csv": _of_orders, "personal.csv": _of_staff, "销售记录.xlsx": _of_sales, "expenses.xlsx": _of_expenses,
    "store.xlsx": _of_stock, "readings.csv": _of_readings, "invoices.csv": _of_bills, "haeuser.csv": _of_houses,
    "成绩.xlsx": _of_marks, "team.csv": _of_team,
}  # fmt: skip


# ---- asking


def is_told_right(told: Sequence[Passage], right: Right) -> bool:
    """Whether all figures and names are told that are right, and no others."""
    if right is None or not told:
        return False
    if isinstance(right, frozenset):
        text, many = told[0].text, str(told[0].computed).replace(",", "")
        named = re.split(r"[,，。.:：] ?", text)
        return many == str(len(right)) and right <= {one.strip() for one in named}
    said = [one for passage in told for one in re.split(r", ", str(passage.computed))]
    return len(said) == len(right) and all(map(_is_same, said, right))


def _is_same(said: str, right: object) -> bool:
    if isinstance(right, str):
        return said == right
    figure = re.fullmatch(r"(-?[\d,]+(?:\.\d+)?)(?: \S+)?", said)
    if figure is None or not isinstance(right, int | float):
        return False
    return abs(float(figure[1].replace(",", "")) - right) <= 1e-4 * max(1.0, abs(right))


def main() -> None:
    """Ask, and count."""
    every, told, right = list(questions()), 0, 0
    sure = sum(one.right is not None for one in every)
    costs: list[float] = []
    with (
        tempfile.TemporaryDirectory() as place,
        Library.open(Path(place) / "l", {"retrieval_type": "keyword"}) as library,
    ):
        ids = {name: library.add(path).id for name, path in made(Path(place)).items()}
        library.tables.of(list(ids.values()))
        for one in every:
            began = time.process_time()
            found = counted(library, [ids[one.table]], one.text, earlier=one.earlier).passages
            costs.append((time.process_time() - began) * 1000)
            good = is_told_right(found, one.right)
            told, right = told + bool(found), right + good
            if "show" in sys.argv and not good and (found or one.right is not None):
                state = "WRONG" if found else "left"
                print(state, one.table, one.text, one.right, [each.text for each in found], file=sys.stderr)
    how = f"{told} of {sure} that can be told, on {len(ids)} tables; {len(every) - sure} more are to be left to a model"
    report([
        Figure("daily questions on daily tables, told by program", told / sure, 0.7, "", how, at_least=True),
        Figure("of those told, right", right / max(1, told), 1.0, "", f"{right} of {told}", at_least=True),
        Figure("the same, CPU a question, p50", statistics.median(costs), 30, "ms",
               f"p95 {statistics.quantiles(costs, n=20)[-1]:.1f} ms of CPU"),
    ])  # fmt: skip


if __name__ == "__main__":
    main()
