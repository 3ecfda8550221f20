"""Tables as people have them at work, odd ones among them: the rows, and the files that are written of them.

`bench.tables_daily` asks questions on them.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import xlsxwriter

Row: TypeAlias = Mapping[str, Any]


def made(folder: Path) -> dict[str, Path]:
    """The files of all tables, by their names."""
    for name, write in _WRITTEN.items():
        write(folder / name)
    return {name: folder / name for name in _WRITTEN}


# ---- rows


def _days(lot: random.Random, first: date, days: int) -> date:
    return first + timedelta(days=lot.randrange(days))


def _orders() -> list[Row]:
    lot = random.Random(3)
    return [
        {
            "order_id": f"S-{at:04}",
            "date": _days(lot, date(2023, 1, 1), 730),
            "region": lot.choice(("East", "West", "South", "North", "East")),
            "customer": "" if at in {7, 31, 55} else lot.choice(("Acme", "Birch & Co", "Cobalt", "Dune")),
            "product": lot.choice(("Chair", "Desk", "Lamp", "Lamp")),
            "quantity": lot.randint(1, 9),
            "total": round(lot.uniform(40, 6000), 2),
            "returned": lot.choice(("yes", "no", "no")),
        }
        for at in range(1, 91)
    ]


def _staff() -> list[Row]:
    lot = random.Random(5)
    return [
        {
            "Name": f"Person {at}",
            "Stadt": lot.choice(("Kiel", "Bonn", "Ulm")),
            "Abteilung": lot.choice(("Einkauf", "Technik", "Verkauf")),
            "Eintritt": _days(lot, date(2015, 1, 1), 3000),
            "Gehalt": round(lot.uniform(2500, 9000) * 2) / 2,
            "Teilzeit": lot.choice(("ja", "nein")),
        }
        for at in range(1, 61)
    ]


def _sales() -> list[Row]:
    lot = random.Random(7)
    return [
        {
            "日期": _days(lot, date(2024, 1, 1), 366),
            "城市": lot.choice(("北京", "上海", "广州", "北京")),
            "产品": lot.choice(("茶", "咖啡", "果汁")),
            "数量": lot.randint(1, 20),
            "销售额": lot.randint(20, 900),
        }
        for _ in range(70)
    ]


def _expenses() -> list[Row]:
    lot = random.Random(9)
    return [
        {
            "Date": _days(lot, date(2024, 1, 1), 366),
            "Category": lot.choice(("Travel", "Office", "Software")),
            "Vendor": lot.choice(("Rail", "Paperworks", "Cloudly", "Stay Inn")),
            "Amount (EUR)": round(lot.uniform(5, 2400), 2),
            "Paid": lot.choice(("yes", "no", "yes")),
        }
        for _ in range(48)
    ]


def _bills() -> list[Row]:
    lot = random.Random(11)
    return [
        {
            "Invoice No": 5000 + at,
            "Client": lot.choice(("Halden AG", "Ito Ltd", "Juno Inc")),
            "Issued": _days(lot, date(2023, 6, 1), 500),
            "Status": lot.choice(("open", "paid", "paid", "cancelled")),
            "Net": round(lot.uniform(300, 20000), 2),
        }
        for at in range(40)
    ]


def _houses() -> list[Row]:
    lot = random.Random(13)
    return [
        {
            "Haus": f"Haus {at}",
            "Stadt": lot.choice(("Kiel", "Bonn", "Ulm")),
            "Baujahr": lot.randint(1950, 2020),
            "Preis": lot.randint(150, 900) * 1000,
            "Zustand": lot.choice(("neu", "saniert", "alt")),
        }
        for at in range(1, 31)
    ]


def _marks() -> list[Row]:
    lot = random.Random(15)
    names = ("张伟", "王芳", "李娜", "刘洋", "陈静", "杨帆", "赵磊", "黄丽", "周杰", "吴敏", "徐强", "孙悦")
    return [
        {"姓名": name, "班级": lot.choice(("一班", "二班")), "年龄": lot.randint(15, 18), "数学": lot.randint(50, 100)}
        for name in names
    ]


def _team() -> list[Row]:
    lot = random.Random(19)
    names = ("Ada", "Bo", "Cem", "Dora", "Eve", "Finn", "Gus", "Hana", "Ian", "Jule", "Kim", "Lars", "May", "Nina")
    return [
        {
            "Name": name,
            "Department": lot.choice(("Sales", "Support", "Research")),
            "Office": lot.choice(("Kiel", "Lyon", "Kiel")),
            "Age": 22 + 2 * at + lot.randrange(2),
            "Salary": 30_000 + 1_111 * ((5 * at) % 14),
        }
        for at, name in enumerate(names)
    ]


ORDERS, STAFF, SALES, EXPENSES = _orders(), _staff(), _sales(), _expenses()
BILLS, HOUSES, MARKS, TEAM = _bills(), _houses(), _marks(), _team()
STOCK = [("Bolt", "Hall A", 120), ("Nut", "Hall A", 80), ("Screw", "Hall B", 310), ("Washer", "Hall B", 45)]
SUPPLIERS = [("Krall", "Kiel", 3), ("Lund", "Oslo", 5), ("Mori", "Kobe", 9)]
READINGS = [
    ("A", 12.5, 0.4, "10%"), ("A", 13.1, 0.6, "12%"), ("B", 9.9, 0.1, "55%"), ("B", 10.4, "n/a", "40%"),
    ("C", 14.2, 0.9, "7%"), ("C", 11.0, 0.3, "31%"),
]  # fmt: skip


# ---- files


def _csv(path: Path, rows: Sequence[Row], mark: str = ",", **written: Callable[[Any], str]) -> None:
    text = io.StringIO()
    lines = csv.writer(text, delimiter=mark, lineterminator="\n")
    lines.writerow(rows[0])
    for row in rows:
        lines.writerow([written.get(name, str)(value) for name, value in row.items()])
    path.write_text(text.getvalue(), encoding="utf-8")


def _with_comma(value: float) -> str:
    return f"{value:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def _sheet(path: Path, title: str, lines: Iterable[Sequence[Any]]) -> None:
    with xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd"}) as book:
        sheet = book.add_worksheet(title)
        for at, row in enumerate(lines):
            for column, cell in enumerate(row):
                if cell is not None:
                    sheet.write(at, column, cell)


def _lines(rows: Sequence[Row]) -> list[list[Any]]:
    return [list(rows[0]), *(list(row.values()) for row in rows)]


def _write_expenses(path: Path) -> None:
    total = ["Total", None, None, round(sum(row["Amount (EUR)"] for row in EXPENSES), 2), None]
    lines = _lines(EXPENSES)
    _sheet(path, "Expenses", [["Expenses of 2024"], [], lines[0], *lines[1:20], [], *lines[20:], [], total])


def _write_stock(path: Path) -> None:
    first = [("Item", "Place", "Stock"), *STOCK]
    _sheet(path, "Store", [*first, (), (), ("Supplier", "City", "Days"), *SUPPLIERS])


def _write_readings(path: Path) -> None:
    lines = [("Probe", "Value", "Value", "Share"), *READINGS]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n", encoding="utf-8")


def _write_bills(path: Path) -> None:
    forms = ("%d.%m.%Y", "%Y/%m/%d", "%d %b %Y")
    lot = random.Random(1)
    _csv(path, BILLS, ";", Issued=lambda day: day.strftime(lot.choice(forms)), Net=lambda value: f"{value:,.2f}")


_WRITTEN: Mapping[str, Callable[[Path], None]] = {
    "shop_orders.csv": lambda path: _csv(path, ORDERS),
    "personal.csv": lambda path: _csv(
        path, STAFF, ";", Eintritt=lambda day: day.strftime("%d.%m.%Y"), Gehalt=_with_comma
    ),
    "销售记录.xlsx": lambda path: _sheet(path, "销售", _lines(SALES)),
    "expenses.xlsx": _write_expenses,
    "store.xlsx": _write_stock,
    "readings.csv": _write_readings,
    "invoices.csv": _write_bills,
    "haeuser.csv": lambda path: _csv(path, HOUSES, ";"),
    "成绩.xlsx": lambda path: _sheet(path, "成绩", _lines(MARKS)),
    "team.csv": lambda path: _csv(path, TEAM),
}
