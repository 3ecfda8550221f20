"""Conditions on rows in a question: a column with what it is compared, a value that stands in one column, a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.rag.count_questions import plain_name
from core.rag.question_figures import YEARS
from core.rag.question_tokens import AND
from core.rag.row_times import lasts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.question_tokens import Vocabulary
    from core.rag.question_words import Token

Operator: TypeAlias = Literal["=", "<>", "<", ">", "<=", ">=", "between", "contains", "empty"]
_SIGNS: Final[dict[str, Operator]] = {"<": "<", ">": ">", "<=": "<=", ">=": ">="}
_FULL_YEARS: Final = range(1, 9999)  # those with a year before and one after
_YEAR: Final = re.compile(r"\byears?\b|年")
_FISCAL: Final = re.compile(r"fiscal|\bfy\b|geschäftsjahr|财年|财季|财务年度")
_SCALED: Final = re.compile(
    r"\b(?:hundreds?|thousands?|millions?|billions?|trillions?|tsd|mio|mrd|mn|mln|bn|tn|k|teur|tausend|millionen"
    r"|milliarden)\b|[€$£¥](?:k|m|b)\b|\b[kmt][€$£¥]|\b(?:usd|eur|gbp|chf|rmb|cny)(?:k|m)\b|\b[kmt](?:usd|eur|gbp)\b"
    r"|['’]?\b000s?\b|[万萬亿億]|百万|千(?![米克瓦卡])"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a row has to fulfil.

    Args:
        column: The number of the column, from 0.
        values: What it is compared with: spellings of one value, a number, a date in ISO 8601 as far as it was given,
            or the two ends of a range, both of which belong to it; a part of a year is "2024-Q1", "2024-H2".
    """

    column: int
    operator: Operator
    values: tuple[str | int | float, ...]


def are_of_full_years(condition: Condition) -> bool:
    """Whether the years of dates have one before and one after them, as calendars of programs end there."""
    return all(int(str(one)[:4]) in _FULL_YEARS for one in condition.values)


_SHAPES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("between", re.compile(r"ci?b([nd])&([nd])|ci?([nd])t([nd])b?")),
    ("compare", re.compile(r"ci?o([nd])|ci?([nd])w")),
    ("empty", re.compile(r"ec(?=&|$)")),
    ("not", re.compile(r"cx[vnq]")),
    ("contains", re.compile(r"ck[vq]")),
    ("is", re.compile(r"ci?[vndq]")),
    ("flag", re.compile(r"x?f")),
    ("value_of", re.compile(r"vc(?=&|$)")),
    ("value", re.compile(r"v")),
    ("days", re.compile(r"b(d)&(d)|(d)t(d)b?")),
    ("day_compare", re.compile(r"o(d)|(d)w")),
    ("day", re.compile(r"d")),
    ("year", re.compile(r"n")),
)
_LETTERS: Final = {
    "column": "c", "value": "v", "number": "n", "date": "d", "quoted": "q", "is": "i", "not": "x", "compare": "o",
    "contains": "k", "flag": "f", "between": "b", "to": "t", "or_more": "w", "none": "e", "and": "&",
    "subject": "", "thing": "",
}  # fmt: skip


_DENIES_BOTH: Final = re.compile(r"xf(?:&[vf]|f)")  # "not returned and paid": not returned, but paid, or not both
_IS: Final = "i"
_IN_TIME: Final = frozenset({
    "before", "after", "since", "on or before", "on or after", "earlier than", "later than",
    "之前", "之后", "早于", "晚于", "不早于", "不晚于",
})  # fmt: skip


def conditions_of(tokens: list[Token], known: Vocabulary) -> tuple[Condition, ...] | None:
    """All conditions that the tokens say; `None` where they say something else."""
    kept = [one for one in tokens if _LETTERS.get(one.kind, "?")]
    signs = "".join(_LETTERS.get(one.kind, "?") for one in kept)
    if any(not kept[one.start()].wide for one in _DENIES_BOTH.finditer(signs)):
        return None
    found: list[Condition] = []
    at = 0
    while at < len(signs):
        if signs[at] in {AND, _IS}:  # "orders are from Rome"
            at += 1
            continue
        matches = ((name, shape.match(signs, at)) for name, shape in _SHAPES)
        name, end = next(((name, one.end()) for name, one in matches if one is not None), ("", at))
        condition = _condition(name, kept[at:end], known) if name else None
        if condition is None:
            return None
        found.append(condition)
        at = end
    return tuple(found)


def _condition(shape: str, tokens: list[Token], known: Vocabulary) -> Condition | None:
    said = [one for one in tokens if one.kind in {"value", "number", "date", "quoted"}]
    if shape in {"day", "days", "day_compare", "year"}:
        return _of_time(shape, tokens, said, known)
    if shape == "flag":
        return _of_flag(tokens[-1].column, is_said=len(tokens) == 1, known=known)
    if shape == "value":
        columns = [one for one in known.holds(said[0].text) if known.kinds[one] == "text"]
        if len(columns) != 1:  # it stands in two columns: which of them is meant nobody knows
            return None
        return Condition(columns[0], "=", known.spelled(said[0].text, columns[0]))
    column = next((one.column for one in tokens if one.column is not None), None)
    if column is None:
        return None
    if shape == "empty":  # what has "no stock" has none of it, and no empty cell
        return None if known.kinds[column] == "number" else Condition(column, "empty", ())
    if known.kinds[column] == "text":
        return _of_text(shape, column, said[0], known)
    return _of_numbers(shape, column, tokens, [_compared(one, column, known) for one in said])


def _of_flag(column: int | None, *, is_said: bool, known: Vocabulary) -> Condition | None:
    """A condition on a column of yes and no; where it holds one of them alone, the other one is what is not it."""
    if column is None:
        return None
    yes, no = known.flags[column]
    wanted, other = (yes, no) if is_said else (no, yes)
    return Condition(column, "=", wanted) if wanted else Condition(column, "<>", other)


def _of_time(shape: str, tokens: Sequence[Token], said: Sequence[Token], known: Vocabulary) -> Condition | None:
    """A condition on the only column of dates, which is not named: "in March 2024", "since 2024-03-01", "in 2024"."""
    days = [at for at, kind in enumerate(known.kinds) if kind == "date"]
    if len(days) != 1 or lasts(days[0], known) or (_is_part(said) and known.called(_FISCAL)):
        return None
    match shape:
        case "day":
            return Condition(days[0], "=", (said[0].date,))
        case "days":
            return Condition(days[0], "between", _ordered([one.date for one in said]))
        case "day_compare":
            sign = next(one for one in tokens if one.kind in {"compare", "or_more"})
            return Condition(days[0], _SIGNS[sign.said], (said[0].date,)) if sign.text in _IN_TIME else None
        case _:
            is_there = any(_YEAR.search(name) for name in known.columns)  # a column of years may be meant
            return Condition(days[0], "=", (said[0].raw,)) if said[0].said == "year" and not is_there else None


def _is_part(said: Sequence[Token]) -> bool:
    """Whether a quarter or a half of a year is named, which may be one of another year than the calendar's."""
    return any(not one.date.replace("-", "").isdecimal() for one in said if one.date)


def _of_numbers(
    shape: str, column: int, tokens: Sequence[Token], compared: Sequence[str | int | float | None]
) -> Condition | None:
    """A condition on a column of numbers or dates."""
    values = tuple(one for one in compared if one is not None)
    if len(values) < len(compared):
        return None
    match shape:
        case "between":
            return Condition(column, "between", _ordered(values))
        case "compare":
            signs = [one.said for one in tokens if one.kind in {"compare", "or_more"}]
            return Condition(column, _SIGNS[signs[0]], values)
        case "is" | "not":
            return Condition(column, "=" if shape == "is" else "<>", values)
        case _:
            return None


def _ordered(values: Sequence[str | int | float]) -> tuple[str | int | float, ...]:
    """The lesser one first: "between 9 and 5" is meant as well. All are numbers, or all are dates."""
    numbers = sorted(one for one in values if isinstance(one, int | float))
    return (*numbers, *sorted(one for one in values if isinstance(one, str)))


def _of_text(shape: str, column: int, said: Token, known: Vocabulary) -> Condition | None:
    """A condition on a column of texts: it is one of its values, or holds words in quotation marks."""
    if shape == "contains":
        return Condition(column, "contains", (said.raw,)) if said.raw else None
    if shape not in {"is", "not", "value_of"}:
        return None
    spelled = known.spelled(plain_name(said.raw), column)
    return Condition(column, "<>" if shape == "not" else "=", spelled) if spelled else None


def _compared(token: Token, column: int, known: Vocabulary) -> str | int | float | None:
    """What a column of numbers or dates is compared with; `None` where its kind or its unit is another."""
    if known.kinds[column] == "date":
        if token.kind == "date":
            return token.date
        year = token.number
        return str(year) if isinstance(year, int) and year in YEARS and token.raw.isdecimal() else None
    if token.kind != "number" or token.number is None:
        return None
    names = [name for name, columns in known.columns.items() if column in columns]
    if token.said == "year" and not any(map(_YEAR.search, names)):
        return None  # "orders with an amount in 2024"
    if any(map(_SCALED.search, names)):
        return None  # of "Revenue (thousands)" 6 is 6,000: what a number in the question counts is not sure
    unit, own = token.unit, known.units[column]
    if "/" in own or (own == "%") != (unit == "%"):
        return None
    return None if unit and own and unit != own else token.number
