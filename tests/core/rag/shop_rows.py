"""A table of orders in English, German and Chinese, with its figures reckoned by hand: none of the product's code."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any


@dataclass(frozen=True, slots=True)
class Order:
    """One row."""

    number: str
    customer: str
    region: str
    product: str
    status: str
    returned: str
    units: int
    amount: float
    day: date


def _made() -> list[Order]:
    lot = random.Random(29)
    return [
        Order(
            f"A-{1100 + at}",
            lot.choice(["Anna Meyer", "Li Wei", "Jo Smith", "Eva Stein"]),
            lot.choice(["East", "West", "North", "South"]),
            lot.choice(["Lamp", "Chair", "Desk", "Shelf", "Stool"]),
            lot.choice(["open", "paid", "cancelled"]),
            lot.choice(["yes", "no", "no"]),
            lot.randrange(1, 40),
            lot.randrange(500, 90_000) / 4,
            date(2024, 1, 5) + timedelta(days=lot.randrange(500)),
        )
        for at in range(47)
    ]


ORDERS = _made()
HEAD = ("Order ID", "Customer", "Region", "Product", "Status", "Returned", "Units", "Amount", "Date")
GERMAN = ("Bestellnummer", "Kunde", "Region", "Produkt", "Status", "Zurückgegeben", "Menge", "Betrag", "Datum")
CHINESE = ("订单号", "客户", "地区", "产品", "状态", "是否退货", "数量", "金额", "日期")
TO_GERMAN = {
    "East": "Ost", "West": "West", "North": "Nord", "South": "Süd", "Lamp": "Lampe", "Chair": "Stuhl",
    "Desk": "Tisch", "Shelf": "Regal", "Stool": "Hocker", "open": "offen", "paid": "bezahlt",
    "cancelled": "storniert", "yes": "ja", "no": "nein",
}  # fmt: skip
TO_CHINESE = {
    "East": "东部", "West": "西部", "North": "北部", "South": "南部", "Lamp": "灯", "Chair": "椅子",
    "Desk": "书桌", "Shelf": "书架", "Stool": "凳子", "open": "未付", "paid": "已付",
    "cancelled": "取消", "yes": "是", "no": "否",
}  # fmt: skip


def cells(order: Order, words: dict[str, str] | None = None) -> list[Any]:
    """The cells of a row, texts by `words`."""
    texts = (order.customer, order.region, order.product, order.status, order.returned)
    return [order.number, *((words or {}).get(one, one) for one in texts), order.units, order.amount, order.day]


def sheet(head: Sequence[str] = HEAD, words: dict[str, str] | None = None, *, without: Iterable[str] = ()) -> list[Any]:
    """The rows of a sheet, the head first, without the columns that are named."""
    left = [at for at, name in enumerate(head) if name not in set(without)]
    return [[row[at] for at in left] for row in ([*head], *(cells(one, words) for one in ORDERS))]


Where = Callable[[Order], bool]


def held(where: Where) -> list[Order]:
    """The rows that fulfil something."""
    return [one for one in ORDERS if where(one)]


def number(value: float) -> str:
    """A number as a person would write it in English, to four places."""
    return f"{value:,.4f}".rstrip("0").rstrip(".")


def count(where: Where) -> str:
    """How many rows fulfil something."""
    return number(len(held(where)))


def total(where: Where) -> str:
    """The sum of the amounts of these."""
    return number(sum(one.amount for one in held(where)))


def units(where: Where) -> str:
    """The sum of the units of these."""
    return number(sum(one.units for one in held(where)))


def mean(where: Where) -> str:
    """The average amount of these."""
    found = [one.amount for one in held(where)]
    return number(sum(found) / len(found))


def share(where: Where) -> str:
    """The share of these in percent."""
    return f"{number(round(100 * len(held(where)) / len(ORDERS), 1))} %"


def sums_by(of: Callable[[Order], str], what: Callable[[Order], float], where: Where = bool) -> dict[str, float]:
    """The sum of something for each value of something."""
    found: dict[str, float] = {}
    for one in held(where):
        found[of(one)] = found.get(of(one), 0) + what(one)
    return found
