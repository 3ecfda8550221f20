"""Times that a text tells from its own date: "on Wednesday", "in June", "last year" of an article of 2 March 2017."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from core.rag.claims.lists import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from core.rag.claims.figures import Figure

_LONGEST_LINE = 80  # characters of a line that dates a text, and says little else
_MOST_DATES = 8
_MOST_LINES = 2_000
_MONTHS: Final = in_order("jan feb mar apr may jun jul aug sep oct nov dec")
_DAYS: Final = in_order("mon tue wed thu fri sat sun")
_HAN_DAYS = "一二三四五六日"
_MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?!\d)(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)\d\d(?!\d)"
# With a day, a year or both. Two digits are a year only in the line that dates a text.
_WRITTEN: Final = re.compile(
    rf"\b(?P<m1>{_MONTH})\b\.?\s(?P<d1>{_DAY})(?:,?\s(?P<y1>{_YEAR}))?"
    rf"|(?<!\d)(?P<d2>{_DAY})[\s-](?:of\s)?(?P<m2>{_MONTH})\b\.?,?(?:[\s-](?P<y2>{_YEAR})|\s['’]?(?P<short>\d\d)(?![\d:.]))?"
    rf"|\b(?P<m3>{_MONTH})\b\.?,?\s(?P<y3>{_YEAR})"
    rf"|(?<!\d)(?P<y4>{_YEAR})-(?P<m4>0[1-9]|1[0-2])-(?P<d4>0[1-9]|[12]\d|3[01])(?!\d)"
    r"|(?:(?P<y5>(?:19|20)\d\d)\s?年\s?)?(?P<m5>1[0-2]|0?[1-9])\s?月(?:\s?(?P<d5>[12]\d|3[01]|0?[1-9])\s?[日号])?",
    re.IGNORECASE,
)
_WEEKDAY: Final = re.compile(
    r"\b(?P<day>Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:(?:s|nes|rs|ur)?day)?\b|(?:星期|周|礼拜)(?P<han>[一二三四五六日天])"
)
_BARE_MONTH: Final = re.compile(
    r"\b(?:in|of|since|until|by|for|from|to|last|this|next|late|early|mid)[\s-](?P<month>january|february|march|april|may"
    r"|june|july|august|september|october|november|december)\b(?!\.?,?\s(?:\d{1,2}(?:st|nd|rd|th)?,?\s)?(?:19|20)\d\d)"
    r"|(?<![\d年])(?P<han>1[0-2]|0?[1-9])\s?月",
    re.IGNORECASE,
)
_YEARS: Final[Mapping[int, re.Pattern[str]]] = {
    -1: re.compile(r"\b(?:last|the previous) year\b|\ba year (?:ago|earlier)\b|去年", re.IGNORECASE),
    0: re.compile(r"\b(?:this|the current) year\b|\bthis year's\b|今年|本年", re.IGNORECASE),
    1: re.compile(r"\bnext year\b|明年", re.IGNORECASE),
}
_NEAR_DAYS: Final[Mapping[int, re.Pattern[str]]] = {
    -1: re.compile(r"\byesterday\b|昨[天日晚]", re.IGNORECASE),
    0: re.compile(r"\b(?:today|tonight)\b|今[天日晚]", re.IGNORECASE),
    1: re.compile(r"\btomorrow\b|明[天日晚]", re.IGNORECASE),
}
_WEEK = 7
_YEAR_OF_MONTHS = 12


class _Written(NamedTuple):
    start: int
    end: int
    year: int | None
    month: int
    day: int | None


@dataclass(slots=True)
class Times:
    """What words say of a text that is dated.

    Args:
        years: Those that are meant by "last year" and the like.
        months: A year and a month: "in June" is within a year of the date.
        days: Those that are meant by a weekday, or by "yesterday".
    """

    years: set[int] = field(default_factory=set[int])
    months: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    days: set[date] = field(default_factory=set[date])

    def have(self, figure: Figure, text: str) -> bool:
        """Whether a year, or a part of a date, of a text is one of these."""
        if figure.kind == "date" and figure.unit == "" and int(figure.number) in self.years:
            return True
        return any(self._are(one) for one in _dates_in(text) if one.start <= figure.start < one.end)

    def _are(self, one: _Written) -> bool:
        if one.day is None:
            return (one.year, one.month) in self.months
        return any((day.month, day.day) == (one.month, one.day) and one.year in {None, day.year} for day in self.days)


def dates_of(texts: Iterable[str]) -> list[date]:
    """The days that short lines of a text give for it, such as "By Ann Lee on March 2, 2017"."""
    found: dict[date, None] = {}
    for text in texts:
        for line in text.split("\n")[:_MOST_LINES]:
            if len(line) <= _LONGEST_LINE:
                found |= dict.fromkeys(day for one in _dates_in(line) if (day := _day(one)))
    return list(found)[:_MOST_DATES]


def times_of(text: str, dated: Iterable[date]) -> Times:
    """The times that a text tells by words, if it is of one of these days."""
    found = Times()
    days = list(dated)
    if not days:
        return found
    for step, word in _YEARS.items():
        if word.search(text):
            found.years |= {day.year + step for day in days}
    for step, word in _NEAR_DAYS.items():
        if word.search(text):
            found.days |= {day + timedelta(step) for day in days}
    for weekday in {_weekday(match) for match in _WEEKDAY.finditer(text)}:
        for day in days:
            after = (weekday - day.weekday()) % _WEEK
            found.days |= {day + timedelta(after), day + timedelta(after - _WEEK)}
    for month in {_month(match["month"] or match["han"]) for match in _BARE_MONTH.finditer(text)}:
        for day in days:
            found.months |= {
                (year, month)
                for year in (day.year - 1, day.year, day.year + 1)
                if abs(_YEAR_OF_MONTHS * (year - day.year) + month - day.month) < _YEAR_OF_MONTHS
            }
    return found


def _dates_in(text: str) -> Iterator[_Written]:
    for match in _WRITTEN.finditer(text):
        part = match.groupdict()
        year, month, day = (
            next((part[f"{of}{at}"] for at in range(1, 6) if part.get(f"{of}{at}")), None) for of in "ymd"
        )
        whole = int(year) if year else 2000 + int(part["short"]) if part["short"] else None
        number = int(re.sub(r"\D", "", day)) if day else None
        yield _Written(*match.span(), whole, _month(month or ""), number)


def _day(one: _Written) -> date | None:
    """The day, where it is one of the calendar and has a year."""
    if one.year is None or one.day is None:
        return None
    try:
        return date(one.year, one.month, one.day)
    except ValueError:  # 30 February
        return None


def _month(word: str) -> int:
    return int(word) if word.isdecimal() else 1 + _MONTHS.index(word[:3].lower())


def _weekday(match: re.Match[str]) -> int:
    return _DAYS.index(match["day"].lower()) if match["day"] else _HAN_DAYS.index(match["han"].replace("天", "日"))
