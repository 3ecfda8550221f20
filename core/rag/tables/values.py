"""Numbers and dates as people write them in tables: in English, German and Chinese, with currencies and percent."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.rag.numerals import HAN_NUMERALS, number_of_han

if TYPE_CHECKING:
    from collections.abc import Sequence

Notation: TypeAlias = Literal["point", "comma"]
"""What stands before decimals: 1,234.5 or 1.234,5."""
DateOrder: TypeAlias = Literal["day", "month"]
"""What comes first in 3/4/2024."""
Kind: TypeAlias = Literal["number", "date", "text"]
Value: TypeAlias = int | float | str | None

_NOTATIONS: tuple[Notation, ...] = ("point", "comma")
_ORDERS: tuple[DateOrder, ...] = ("day", "month")
LONGEST = 48  # letters of a number or a date; what is longer is text
_LARGEST_WHOLE = 2**63 - 1
_PLAIN = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?")  # the usual case, and what parsers write for numbers
_SCIENTIFIC = re.compile(r"[-+]?\d{1,17}(?:\.\d{1,17})?[eE][-+]?\d{1,3}")
_NO_VALUES = (
    "|-|–|—|--|…|...|.|/|n/a|n.a.|na|nan|null|none|nil|#n/a|k.a.|k. a.|keine angabe|entfällt"
    "|无|無|暂无|不详|未知|空|不适用"
)
_NOTHING = frozenset(_NO_VALUES.split("|"))
_CURRENCIES = {
    "€": "€",
    "eur": "€",
    "euro": "€",
    "$": "$",
    "us$": "$",
    "usd": "$",
    "£": "£",
    "gbp": "£",
    "chf": "CHF",
    "fr.": "CHF",
    "¥": "¥",
    "￥": "¥",
    "rmb": "¥",
    "cny": "¥",
    "元": "¥",
    "人民币": "¥",
    "圆": "¥",
    "jpy": "JPY",
    "kr": "kr",
    "sek": "SEK",
    "nok": "NOK",
    "dkk": "DKK",
    "pln": "PLN",
    "zł": "PLN",
    "₹": "₹",
    "inr": "₹",
    "hk$": "HK$",
    "hkd": "HK$",
    "港元": "HK$",
    "a$": "A$",
    "aud": "A$",
    "c$": "C$",
    "cad": "C$",
    "美元": "$",
    "欧元": "€",
    "₩": "₩",
    "krw": "₩",
    "₽": "₽",
    "rub": "₽",
    "ca$": "C$",
    "nt$": "NT$",
}
_CURRENCY = "|".join(re.escape(one) for one in sorted(_CURRENCIES, key=len, reverse=True))
_SCALES = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000, "千": 1_000, "百": 100}
_LONG_SCALES = {"百万": 1_000_000, "千万": 10_000_000, "万亿": 10**12}
_FIGURE = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[-+])?\s*(?P<before>{_CURRENCY})?\s*(?P<inner>[-+])?\s*"
    r"(?P<digits>\d[\d.,' ]*|[.,]\d+)\s*"
    rf"(?P<scale>百万|千万|万亿|[万萬亿億千百])?\s*(?P<percent>[%‰])?\s*(?P<after>{_CURRENCY})?\s*(?P<late>-)?\s*"
    r"(?P<close>\))?",
    re.IGNORECASE,
)
_HAN = re.compile(rf"([{HAN_NUMERALS}]+(?:点[{HAN_NUMERALS}]+)?)\s*(元|人民币|%)?")
_GROUPED = {mark: re.compile(rf"\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+") for mark in ".,' "}
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})*,\d{3}")
_SAME_WIDTH = str.maketrans({"−": "-", "–": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'", "＇": "'"})
_MONTHS = (
    ("jan", "january", "januar", "jänner", "jän"),
    ("feb", "february", "februar"),
    ("mar", "march", "märz", "mär", "mrz", "maerz"),
    ("apr", "april"),
    ("may", "mai"),
    ("jun", "june", "juni"),
    ("jul", "july", "juli"),
    ("aug", "august"),
    ("sep", "sept", "september"),
    ("oct", "october", "okt", "oktober"),
    ("nov", "november"),
    ("dec", "december", "dez", "dezember"),
)
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
_TIME = r"(?:[ T](?P<time>\d{1,2}:\d{2}(?::\d{2})?)(?:\.\d+)?)?"
_ISO = re.compile(rf"(?P<year>\d{{4}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}}){_TIME}")
_MARKED = re.compile(
    rf"(?P<one>\d{{1,2}})\s?(?P<mark>[./-])\s?(?P<two>\d{{1,2}})\s?(?P=mark)\s?(?P<year>\d{{4}}|\d\d){_TIME}"
)
_CHINESE = re.compile(rf"(?P<year>\d{{4}})\s?年\s?(?P<month>\d{{1,2}})\s?月\s?(?P<day>\d{{1,2}})\s?日{_TIME}")
_NAMED = re.compile(
    r"(?:(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?[ -](?P<name>[^\W\d_]{3,9})\.?"
    r"|(?P<first>[^\W\d_]{3,9})\.? (?P<then>\d{1,2})(?:st|nd|rd|th)?),?[ -](?P<year>\d{4}|\d\d)"
)
_CENTURY = 70  # two figures of a year from here on are of the last century


@dataclass(frozen=True, slots=True)
class Reading:
    """How the cells of a column are read.

    Args:
        kind: What most of them are.
        notation: What parts whole numbers from decimals.
        order: Whether the day or the month comes first in dates of figures.
        unit: A currency or "%" that numbers are written with; several are parted by "/".
    """

    kind: Kind = "text"
    notation: Notation = "point"
    order: DateOrder = "day"
    unit: str = ""

    def value(self, cell: str) -> Value:
        """A cell as a value of the column: a number, a date as in ISO 8601, else its text; `None` where it is empty."""
        if self.kind == "number":
            return number(cell, self.notation) if not is_nothing(cell) else None
        if is_empty(cell):
            return None
        if self.kind == "date":
            return iso_date(cell, self.order) or cell
        return cell


def is_empty(cell: str) -> bool:
    """Whether nothing stands in it."""
    return not cell or cell.isspace()


def is_nothing(cell: str) -> bool:
    """Whether it is empty, or says that there is no value, such as "n/a" or "–"."""
    return len(cell) <= LONGEST and cell.strip().casefold() in _NOTHING


def number(cell: str, notation: Notation = "point") -> Value:
    """The number that a cell is, as it is written: 25 of "25 %"; the cell itself where it is none."""
    # What a parser writes for a number of a workbook, whatever the notation of texts beside it.
    if _PLAIN.fullmatch(cell) and (notation == "point" or not _GROUPED["."].fullmatch(cell.lstrip("-"))):
        return float(cell) if "." in cell else int(cell)
    found = read_number(cell, notation)
    return cell if found is None else found


def read_number(cell: str, notation: Notation = "point") -> int | float | None:
    """The number that a cell is, `None` where it is none; figures with leading zeros are codes, not numbers."""
    if not cell or len(cell) > LONGEST:
        return None
    text = _plain(cell)
    if _SCIENTIFIC.fullmatch(text):
        found = float(text)
        return found if abs(found) < float("inf") else None
    match = _FIGURE.fullmatch(text)
    if match is None:
        han = _HAN.fullmatch(text)
        return number_of_han(han[1]) if han else None
    if bool(match["open"]) != bool(match["close"]) or (match["before"] and match["after"]):
        return None
    found = _digits(match["digits"].strip(), notation)
    if found is None:
        return None
    signs = [match["sign"], match["inner"], match["late"]]
    if sum(sign is not None for sign in signs) + bool(match["open"]) > 1:
        return None
    if scale := match["scale"]:
        found = _exact(found * (_LONG_SCALES.get(scale) or _SCALES[scale]))
    return -found if "-" in signs or match["open"] else found


def unit_of(cell: str) -> str:
    """The currency or the "%" that a number is written with; "" where there is none."""
    if len(cell) > LONGEST or (cell.isascii() and cell.isalnum()):
        return ""
    match = _FIGURE.fullmatch(_plain(cell))
    if match is None:
        return ""
    currency = match["before"] or match["after"]
    return _CURRENCIES[currency.casefold()] if currency else match["percent"] or ""


def _plain(cell: str) -> str:
    text = cell.translate(_SAME_WIDTH).strip()
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_SAME_WIDTH)


def _digits(text: str, notation: Notation) -> int | float | None:
    """A run of figures with marks between as a number, if it can be one in this notation."""
    point, between = (".", ",") if notation == "point" else (",", ".")
    whole, mark, rest = text.partition(point)
    if mark and (not rest.isdecimal() or not rest.isascii()):
        return None
    if not whole:
        whole = "0"
    elif not whole.isdecimal():
        marks = {letter for letter in whole if not letter.isdecimal()}
        if len(marks) != 1 or not marks <= {between, "'", " "}:
            return None
        if not _GROUPED[used := marks.pop()].fullmatch(whole) and not (used == "," and _INDIAN.fullmatch(whole)):
            return None
        whole = whole.replace(used, "")
    elif len(whole) > 1 and whole[0] == "0":
        return None
    if not whole.isascii():
        return None
    if mark:
        return float(f"{whole}.{rest}")
    found = int(whole)
    return found if found <= _LARGEST_WHOLE else float(found)


def _exact(found: float) -> int | float:
    whole = round(found)
    return whole if abs(found - whole) < 1e-6 and abs(whole) <= _LARGEST_WHOLE else found


def iso_date(cell: str, order: DateOrder = "day") -> str:
    """A date as 2024-03-01, with its time where one is given; "" where the cell is none."""
    if not 6 <= len(cell) <= LONGEST:
        return ""
    text = _plain(cell)
    if match := _ISO.fullmatch(text) or _CHINESE.fullmatch(text):
        return _written(match["year"], match["month"], match["day"], match["time"])
    if match := _MARKED.fullmatch(text):
        year = match["year"] if len(match["year"]) > 2 else _with_century(match["year"])
        one, two = match["one"], match["two"]
        day, month = (two, one) if order == "month" and match["mark"] != "." else (one, two)
        return _written(year, month, day, match["time"])
    if match := _NAMED.fullmatch(text):
        month = _MONTH.get((match["name"] or match["first"]).casefold())
        year = match["year"] if len(match["year"]) > 2 else _with_century(match["year"])
        return _written(year, str(month), match["day"] or match["then"], None) if month else ""
    return ""


def _with_century(year: str) -> str:
    return f"{'19' if int(year) >= _CENTURY else '20'}{year}"


def _written(year: str, month: str, day: str, time: str | None) -> str:
    try:
        found = date(int(year), int(month), int(day)).isoformat()
        if not time:
            return found
        clock = datetime.strptime(time, "%H:%M:%S" if time.count(":") > 1 else "%H:%M")  # noqa: DTZ007 - a time of day
    except ValueError:
        return ""
    return f"{found} {clock:%H:%M:%S}"


@dataclass(slots=True)
class _Seen:
    """What the cells of a column look like."""

    filled: int = 0
    numbers: Counter[Notation] = field(default_factory=Counter[Notation])
    sure: Counter[Notation] = field(default_factory=Counter[Notation])
    dates: Counter[DateOrder] = field(default_factory=Counter[DateOrder])
    units: Counter[str] = field(default_factory=Counter[str])

    def take(self, cell: str) -> None:
        if is_nothing(cell):
            return
        self.filled += 1
        if len(cell) > LONGEST:
            return
        known: list[Notation] = [notation for notation in _NOTATIONS if read_number(cell, notation) is not None]
        self.numbers.update(known)
        if len(known) == 1 and any(mark in cell for mark in ".,"):
            self.sure.update(known)
        if known:
            self.units[unit_of(cell)] += 1
        self.dates.update(order for order in _ORDERS if iso_date(cell, order))


_MOST = 0.9  # of the filled cells have to be numbers, or dates
_FIRST = 2_000  # cells of a column from which it is told how the rest are read


def readings(rows: Sequence[Sequence[str]], width: int) -> list[Reading]:
    """How each column is read, by the first rows below the header.

    Columns of a table are written by one person: where one cannot be told, it has the notation of the others.
    """
    seen = [_Seen() for _ in range(width)]
    for row in rows[:_FIRST]:
        for one, cell in zip(seen, row, strict=False):
            one.take(cell)
    sure = Counter[Notation]()
    for one in seen:
        if _is_mostly(max(one.numbers.values(), default=0), one.filled):
            sure.update(one.sure)
    usual: Notation = "comma" if sure["comma"] > sure["point"] else "point"
    return [_reading(one, usual) for one in seen]


def _reading(seen: _Seen, usual: Notation) -> Reading:
    if _is_mostly(max(seen.dates.values(), default=0), seen.filled):
        order: DateOrder = "day"
        if seen.dates["month"] > seen.dates["day"] or (
            seen.dates["month"] == seen.dates["day"] and usual == "point" and seen.dates["day"] > 0
        ):
            order = "month"
        return Reading("date", usual, order)
    notation = usual
    if seen.sure["comma"] != seen.sure["point"]:
        notation = "comma" if seen.sure["comma"] > seen.sure["point"] else "point"
    if seen.numbers[notation] < max(seen.numbers.values(), default=0):
        notation = "comma" if notation == "point" else "point"
    if not _is_mostly(seen.numbers[notation], seen.filled):
        return Reading()
    return Reading("number", notation, unit="/".join(sorted(unit for unit in seen.units if unit)[:3]))


def _is_mostly(some: int, filled: int) -> bool:
    return filled > 0 and some >= _MOST * filled


def is_figure(cell: str) -> bool:
    """Whether a cell is a number or a date in any notation."""
    if len(cell) > LONGEST:
        return False
    return any(read_number(cell, one) is not None for one in ("point", "comma")) or bool(iso_date(cell))
