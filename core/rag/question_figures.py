"""Numbers and times in questions: days, months, quarters, halves of years and years, in English, German and Chinese."""

from __future__ import annotations

import re
from typing import Final

from core.rag.question_words import Token
from core.rag.tables.values import iso_date, read_number, unit_of

YEARS: Final = range(1900, 2100)
_MONTHS: Final = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|januar|februar|märz|mai|juni|juli|oktober|dezember"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|okt|dez"
)
_ENDS: Final = r"(?![^\W\u2e80-\U0010ffff])"  # no letter or figure follows, but for those of Chinese
_DATE: Final = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?![\d-])|\d{4}/\d{1,2}/\d{1,2}(?![\d/])|\d{4}\s?年\s?\d{1,2}\s?月\s?\d{1,2}\s?日"
    r"|\d{1,2}\.\d{1,2}\.\d{4}(?![\d.])"
    rf"|(?:{_MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}{_ENDS}"
    rf"|\d{{1,2}}-(?:{_MONTHS})-(?:\d{{4}}|\d\d)(?!-){_ENDS}"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:{_MONTHS})\.?,? \d{{4}}{_ENDS}"
)
_MONTH: Final = re.compile(
    rf"(?P<name>{_MONTHS}),? (?P<year>\d{{4}}){_ENDS}|(?P<iso>\d{{4}}-(?:0[1-9]|1[0-2]))(?![\d-])"
    r"|(?P<y>\d{4})\s?年\s?(?P<m>1[0-2]|0?[1-9])\s?月(?:份)?(?!\s?\d)"
)
_MONTH_ALONE: Final = re.compile(
    rf"(?P<name>{_MONTHS}){_ENDS}(?!['’.]| \d)|(?P<m>1[0-2]|[1-9])\s?月(?:份)?(?!\s?\d)", re.IGNORECASE
)
_BEFORE_MONTH: Final = re.compile(r"(?<![^\W_])(?:in|for|of|during|since|after|before|im|für|seit|vor|nach) $")
_NO_MONTH: Final = re.compile(r"[年前近每第过共后\d] ?$")  # "the last 3 months", "March of last year"
_FIRST: Final = {
    "first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "ersten": 1,
    "zweiten": 2, "dritten": 3, "vierten": 4, "erstes": 1, "zweites": 2, "drittes": 3, "viertes": 4,
    "1.": 1, "2.": 2, "3.": 3, "4.": 4,
}  # fmt: skip
_NTH: Final = "|".join(map(re.escape, (*_FIRST, "last", "letzten", "letztes")))
_PART: Final = re.compile(
    rf"(?P<nth>{_NTH}) (?P<of>quarter|half|quartal|halbjahr)(?: of| in| des jahres)? (?P<y>\d{{4}}){_ENDS}"
    rf"|(?P<short>[qh][1-4])(?: of|/|-)?\s?(?P<y2>\d{{4}}){_ENDS}|(?P<y3>\d{{4}})[ -]?(?P<short2>[qh][1-4]){_ENDS}"
    r"|(?P<y4>\d{4})\s?年\s?(?:第?(?P<han>[一二三四1-4])\s?(?:个)?季度|(?P<half>[上下])半年)"
)
_QUARTERS, _HALVES = 4, 2
_IN: Final = re.compile(r"(?<![^\W_])(?:in|during|im jahre?) $")
_YEAR: Final = re.compile(r"(?P<year>(?:19|20)\d\d)\s?年")
_NUMBER: Final = re.compile(
    r"(?P<before>[$€£¥￥]\s?)?(?P<digits>-?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?))"
    r"(?P<scale>\s?(?:thousand|million|billion)\b|\s?(?:百万|千万|万亿|[万亿千百]))?"
    r"(?P<after>\s?(?:%|€|\$|£|元|欧元|美元)|\s(?:eur|usd|gbp|euros?|dollars?)\b)?"
)
_SCALES: Final = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_THOUSANDS_OR_NOT: Final = re.compile(r"\d{1,3}\.\d{3}")  # one and a half thousand, or one point five
_UNITS: Final = {"dollar": "$", "dollars": "$", "euro": "€", "euros": "€"}


def names_a_month(question: str) -> bool:
    """Whether a month may stand in a question without its year."""
    return bool(_MONTH_ALONE.search(question))


def is_month(text: str) -> bool:
    """Whether a text, in lower case, is the name of a month."""
    return bool(_MONTH_ALONE.fullmatch(text))


def number_at(text: str, at: int) -> tuple[int, Token] | None:
    """The number that begins at a place, and where it ends."""
    match = _NUMBER.match(text, at)
    if match is None or (before := text[max(at - 1, 0) : at]).isdecimal() or (before and before in ".,"):
        return None
    end = match.end()
    if end < len(text) and (text[end].isdecimal() or is_letter(text[end]) or re.match(r"[.,%/]\d", text[end:])):
        return None
    digits, scale = match["digits"], (match["scale"] or "").strip()
    if _THOUSANDS_OR_NOT.fullmatch(digits.lstrip("-")):
        return None
    times = _SCALES.get(scale)
    value = read_number(digits if times else digits + scale, "point")
    if value is None:
        return None
    said = (match["before"] or match["after"] or "").strip()
    unit = _UNITS.get(said) or (unit_of(f"1 {said}") if said else "")
    is_year = match[0].isdecimal() and value in YEARS and _IN.search(text, 0, at) is not None
    return end, Token("number", match[0], digits, "year" if is_year else "", number=value * (times or 1), unit=unit)


def is_sure_day(said: str) -> bool:
    """Whether a date says itself which of its numbers is the day."""
    return bool(_DATE.fullmatch(said))


def time_at(text: str, at: int, year: str = "") -> tuple[int, Token] | None:
    """The day, month, quarter, half or year that begins at a place, and where it ends.

    Args:
        year: That of a month which is named without one; "" where it may be one of several.
    """
    if text[max(at - 1, 0) : at].isdecimal():
        return None
    if (match := _DATE.match(text, at)) and (found := iso_date(re.sub(r"\s*([年月])\s*", r"\1", match[0]))):
        return match.end(), Token("date", match[0], match[0], date=found)
    for pattern, named in ((_PART, _part_of_year), (_MONTH, _month_of_year)):
        if match := pattern.match(text, at):
            found = named(match)
            return (match.end(), Token("date", match[0], match[0], date=found)) if found else None
    if match := _YEAR.match(text, at):
        return match.end(), Token("date", match[0], match[0], date=match["year"])
    match = _MONTH_ALONE.match(text, at) if year else None
    if match and (_BEFORE_MONTH.search(text[:at]) if match["name"] else not _NO_MONTH.search(text[:at])):
        month = match["m"] or _number_of_month(match["name"])
        return match.end(), Token("date", match[0], match[0], date=f"{year}-{int(month):02}")
    return None


def _number_of_month(name: str) -> str:
    return iso_date(f"1 {name} 2000")[5:7]


def _month_of_year(match: re.Match[str]) -> str:
    if match["iso"]:
        return match["iso"]
    if match["name"]:
        return f"{match['year']}-{_number_of_month(match['name'])}"
    return f"{match['y']}-{int(match['m']):02}"


def _part_of_year(match: re.Match[str]) -> str:
    """A quarter or a half of a year as "2024-Q1" or "2024-H2"; "" where there is none such."""
    year = match["y"] or match["y2"] or match["y3"] or match["y4"]
    if half := match["half"]:
        return f"{year}-H{1 if half == '上' else 2}"
    if han := match["han"]:
        return f"{year}-Q{han if han.isdecimal() and han.isascii() else '一二三四'.index(han) + 1}"
    short = match["short"] or match["short2"] or ""
    is_half = short.startswith("h") or match["of"] in {"half", "halbjahr"}
    most = _HALVES if is_half else _QUARTERS
    number = int(short[1]) if short else _FIRST.get(match["nth"], most)
    return f"{year}-{'H' if is_half else 'Q'}{number}" if number <= most else ""


def is_letter(letter: str) -> bool:
    """Whether it is a letter or a figure of a script whose words are parted by spaces."""
    return letter < "\u2e80" and letter.isalnum()
