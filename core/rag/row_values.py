"""Values of cells in sentences, and conditions on them in queries."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

from core.rag.count_questions import plain_name
from core.rag.tables.query import folded
from core.rag.tables.subjects import is_name
from core.rag.tables.wording import line, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.row_questions import Condition
    from core.rag.tables.store import Column

_PART_OF_YEAR: Final = re.compile(r"(?P<year>\d{4})-(?P<of>[QH])(?P<number>[1-4])")
_PARTS: Final = re.compile(r"[,;|/+&\n，；、]| and ")  # between several values in one cell


def cells_in_words(columns: Sequence[Column], values: Sequence[Any]) -> list[str]:
    """The cells of a row that are not empty, each with the name of its column."""
    return [
        f"{line(one.name)}: {valued(value, one)}"
        for one, value in zip(columns, values, strict=True)
        if value is not None
    ]


def valued(value: object, column: Column) -> str:
    """A value with its unit."""
    if isinstance(value, int | float) and column.kind == "number":
        return " ".join(one for one in (written(value), column.unit) if one and "/" not in one)
    return line(str(value))


def labelled(value: object, column: Column) -> str:
    """A value by which rows are counted; a whole number may be a year, and has no separators."""
    return str(value) if isinstance(value, int) and not column.unit else valued(value, column)


def percent(some: int, of: int) -> str:
    """A share in percent, to a tenth; to more places where it would look like none or all."""
    share, places = 100 * some / of, 1
    while 0 < some < of and round(share, places) in {0, 100}:
        places += 1
    return written(round(share, places))


def are_apart(values: Sequence[str]) -> bool:
    """Whether no value is another in other letters, or has a part in common with another: "open, paid"."""
    parts = [{plain_name(folded(part)) for part in _PARTS.split(value)} for value in values]
    return sum(map(len, parts)) == len(set[str]().union(*parts))


def has_part(value: str, said: str) -> bool:
    """Whether a value is several, of which this is one: "Red & Blue"; letters are compared as `folded`."""
    parts = [folded(part).strip() for part in _PARTS.split(value)]
    return len(parts) > 1 and said.strip() in parts


def quoted_text(said: str) -> str:
    """A text in a query."""
    return "'" + said.replace("'", "''") + "'"


def are_groups(column: Column, values: Sequence[Any]) -> bool:
    """Whether figures for each of these values say something: whole numbers may be years, amounts are none of one."""
    match column.kind:
        case "number":
            return is_name(column) or (not column.unit and all(float(one).is_integer() for one in values))
        case "date":
            return all(len(str(one)) <= len("2024-03-01") for one in values)  # no time of a day
        case _:
            return True


def literal(value: str | float) -> str:
    """A text or a number in a query."""
    return quoted_text(value) if isinstance(value, str) else repr(value)


def of_dates(name: str, condition: Condition) -> str:
    """A condition on dates, which are texts such as 2024-03-01, some with a time; a month or a year is all its days."""
    first, end = _span(str(condition.values[0]))
    match condition.operator:
        case "<":
            return f"{name} < '{first}'"
        case ">":
            return f"{name} >= '{end}'"
        case "<=":
            return f"{name} < '{end}'"
        case ">=":
            return f"{name} >= '{first}'"
        case "<>":
            return f"({name} < '{first}' OR {name} >= '{end}')"
        case _:
            last = max(_span(str(one))[1] for one in condition.values)
            return f"({name} >= '{min(_span(str(one))[0] for one in condition.values)}' AND {name} < '{last}')"


def _span(said: str) -> tuple[str, str]:
    """The first day of a day, a month, a part of a year or a year, and the day after its last."""
    if part := _PART_OF_YEAR.fullmatch(said):
        months = 12 // (4 if part["of"] == "Q" else 2)
        last = months * int(part["number"])
        return _month(int(part["year"]), last - months + 1), _month(int(part["year"]), last + 1)
    year, month, day = (int(one) for one in (*said[:10].split("-"), "1", "1")[:3])
    match said.count("-"):
        case 0:
            return _month(year, 1), _month(year, 13)
        case 1:
            return _month(year, month), _month(year, month + 1)
        case _:
            first = date(year, month, day)
            return first.isoformat(), (first + timedelta(days=1)).isoformat()


def _month(year: int, month: int) -> str:
    """The first day of a month; that after the twelfth is the next year's first."""
    return date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1).isoformat()
