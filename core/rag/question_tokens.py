"""The words of a question as tokens, in English and Chinese: columns and values of a table, comparisons, figures."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from core.rag.count_questions import plain_name
from core.rag.german_words import is_german, taken_apart
from core.rag.question_words import Token, lexicon
from core.rag.tables.values import iso_date, read_number, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.rag.question_words import Lexicon

Spellings: TypeAlias = tuple[str | int | float, ...]
YEARS: Final = range(1900, 2100)
LONGEST: Final = 240  # letters of a question that is looked at
AND: Final = "&"
_YIELD: Final = frozenset({"percentage", "percent"})  # what a column is called so means it
_FROM_ON: Final = frozenset({("from", "on"), ("von", "an"), ("vom", "an")})  # with one word between them
NAMES_A_ROW: Final = frozenset({"thing", "subject", "column"})


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a table is called, and what it holds.

    Args:
        columns: The names of columns as in questions, each with the numbers of those called so.
        kinds: "number", "date" or "text" of each column.
        units: The unit of each, or "".
        values: The texts that stand in columns of texts, as names are compared, each with its columns and there with
            its spellings.
        subjects: What a row or the table is called.
        flags: Columns that hold yes and no alone, each with the spellings of both.
        flag_names: What is said of a row where such a column says yes, "returned".
    """

    columns: Mapping[str, tuple[int, ...]]
    kinds: Sequence[str]
    units: Sequence[str]
    values: Mapping[str, Mapping[int, tuple[str, ...]]] = field(
        default_factory=dict[str, "Mapping[int, tuple[str, ...]]"]
    )
    subjects: frozenset[str] = frozenset()
    flags: Mapping[int, tuple[Spellings, Spellings]] = field(default_factory=dict[int, "tuple[Spellings, Spellings]"])
    flag_names: frozenset[str] = frozenset()

    def holds(self, value: str) -> tuple[int, ...]:
        """The columns in which a value stands."""
        return tuple(self.values.get(value, ()))

    def spelled(self, value: str, column: int) -> tuple[str, ...]:
        """The spellings of a value in a column."""
        return self.values.get(value, {}).get(column, ())


# ---- numbers and dates

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
_IN: Final = re.compile(r"(?<![^\W_])(?:in|during|im jahre?) $")
_YEAR: Final = re.compile(r"(?P<year>(?:19|20)\d\d)\s?年")
_NUMBER: Final = re.compile(
    r"(?P<before>[$€£¥￥]\s?)?(?P<digits>-?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?))"
    r"(?P<scale>\s?(?:thousand|million|billion)\b|\s?(?:百万|千万|万亿|[万亿千百]))?"
    r"(?P<after>\s?(?:%|€|\$|£|元|欧元|美元)|\s(?:eur|usd|gbp|euros?|dollars?)\b)?"
)
_SCALES: Final = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_THOUSANDS_OR_NOT: Final = re.compile(r"\d{1,3}\.\d{3}")  # one and a half thousand, or one point five
_QUOTED: Final = re.compile(r"[\"“‘「『']([^\"”’」』']{1,80})[\"”’」』']")
_UNITS: Final = {"dollar": "$", "dollars": "$", "euro": "€", "euros": "€"}


def _number_at(text: str, at: int) -> tuple[int, Token] | None:
    match = _NUMBER.match(text, at)
    if match is None or (at and (text[at - 1].isdecimal() or text[at - 1] in ".,")):
        return None
    end = match.end()
    if end < len(text) and (text[end].isdecimal() or _is_letter(text[end]) or re.match(r"[.,%/]\d", text[end:])):
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


def _is_sure(said: str) -> bool:
    """Whether a date says itself which of its numbers is the day."""
    return bool(_DATE.fullmatch(said))


def _date_at(text: str, at: int) -> tuple[int, Token] | None:
    if at and text[at - 1].isdecimal():
        return None
    if (match := _DATE.match(text, at)) and (found := iso_date(re.sub(r"\s*([年月])\s*", r"\1", match[0]))):
        return match.end(), Token("date", match[0], match[0], date=found)
    if match := _MONTH.match(text, at):
        if match["iso"]:
            return match.end(), Token("date", match[0], match[0], date=match["iso"])
        first = iso_date(f"1 {match['name']} {match['year']}") if match["name"] else ""
        return match.end(), Token("date", match[0], match[0], date=first[:7] or f"{match['y']}-{int(match['m']):02}")
    if match := _YEAR.match(text, at):
        return match.end(), Token("date", match[0], match[0], date=match["year"])
    return None


# ---- the question


def tokens_of(question: str, known: Vocabulary, *, german: bool = False) -> list[Token] | None:
    """The tokens of a question; `None` where a word of it is not known, or may be two things.

    Args:
        german: Whether it is known to be German by what was asked before.
    """
    if len(question) > LONGEST:
        return None
    german = german or is_german(question)
    text = " ".join(question.casefold().replace("’", "'").replace("：", " ").split()).strip(" ?？!.。！")
    if german:
        every = {*known.columns, *known.subjects, *known.values}
        text = taken_apart(text, known.columns.__contains__, every)
    names = _names_in(text, known)
    words = lexicon(german=german)
    found: list[Token] = []
    at = 0
    while at < len(text):
        if text[at] in ' "“”「」':
            quoted = _QUOTED.match(text, at)
            if quoted is None or text[at] == " ":
                at += 1
                continue
            said = quoted[1].strip()
            value = plain_name(said) in known.values
            day = "" if value else iso_date(said) if _is_sure(said) else ""
            kind = "value" if value else "date" if day else "quoted"
            found.append(Token(kind, plain_name(said), said, date=day))
            at = quoted.end()
            continue
        step = _next(text, at, names, found[-1] if found else None, known, words)
        if step is None:
            return None
        at, token = step
        found.append(token)
    if any(_is_from_on(one, then) for one, then in zip(found, found[2:], strict=False)):
        return None  # "from March 2024 on" is no month
    return _with_nach(found) if german else found


def _is_from_on(token: Token, then: Token) -> bool:
    return (token.text, then.text) in _FROM_ON


def _with_nach(tokens: list[Token]) -> list[Token]:
    """The tokens of a German question, in which "nach" is "after" before a day and else "by"."""
    later: list[Token | None] = [*tokens[1:], None]
    return [
        replace(one, kind="compare", text="after", said=">") if _is_after(one, then) else one
        for one, then in zip(tokens, later, strict=True)
    ]


def _is_after(token: Token, then: Token | None) -> bool:
    return (token.kind, token.text) == ("each", "by") and then is not None and then.kind == "date"


def _next(
    text: str, at: int, names: Sequence[str], before: Token | None, known: Vocabulary, words: Lexicon
) -> tuple[int, Token] | None:
    """The longest thing that begins here; `None` where there is none, or two are as long."""
    word = _word_at(text, at, words)
    name = next((one for one in names if _stands(text, at, one)), "")
    figure = _date_at(text, at) or _number_at(text, at)
    longest = max(len(word), len(name), figure[0] - at if figure else 0)
    if not longest:
        return None
    if name and len(name) == longest:
        token = _named(name, text[at : at + longest], before, known)
        if token is None:
            return None
        yields = word in _YIELD or (bool(word) and words.words[word].kind == "period")
        if len(word) < longest or yields or _is_said_of(before, token, known):
            return at + longest, token
        if not word or token.kind == "column":
            return None  # "total" is a figure, and a column
    if word and len(word) == longest:
        return at + longest, words.words[word]
    return figure if figure is not None and figure[0] - at == longest else None


def _is_said_of(before: Token | None, token: Token, known: Vocabulary) -> bool:
    """Whether what stands before is compared with this: "是" is no value of a column that holds no such one."""
    if before is None or not _is_compared(before):
        return False
    is_other = token.kind == "value" and before.column is not None and before.column not in known.holds(token.text)
    return not is_other


def _is_compared(before: Token | None) -> bool:
    return before is not None and before.kind in {"column", "is", "not"}


def _named(name: str, raw: str, before: Token | None, known: Vocabulary) -> Token | None:
    """What a name of the table means here; `None` where it may mean several things."""
    columns, held = known.columns.get(name, ()), known.holds(name)
    if len(columns) > 1:
        return None
    if held and (_is_compared(before) or not columns):
        if name in known.subjects and not _is_compared(before):
            return None
        return Token("value", name, raw)
    if columns:
        return None if held else Token("column", name, raw, column=columns[0])
    return Token("subject", name, raw)


def _names_in(text: str, known: Vocabulary) -> list[str]:
    """The names of the table that stand in the question, the longest first."""
    bare = text.replace("_", " ").replace("-", " ")
    every: Iterable[str] = {*known.columns, *known.subjects, *known.values}
    return sorted((one for one in every if one and (one in text or one in bare)), key=len, reverse=True)


def _stands(text: str, at: int, name: str) -> bool:
    """Whether a name begins at a place, and ends where a word does."""
    end = at + len(name)
    if re.sub(r"[_\-]", " ", text[at:end]) != name and text[at:end] != name:
        return False
    return _is_bounded(text, at, end)


def _is_bounded(text: str, at: int, end: int) -> bool:
    begins = not at or not (_is_letter(text[at]) and _is_letter(text[at - 1]))
    ends = end >= len(text) or not (_is_letter(text[end - 1]) and _is_letter(text[end]))
    return begins and ends


def _is_letter(letter: str) -> bool:
    """Whether it is a letter or a figure of a script whose words are parted by spaces."""
    return letter < "\u2e80" and letter.isalnum()


def _word_at(text: str, at: int, words: Lexicon) -> str:
    """The longest known word that begins at a place."""
    for size in range(min(words.longest, len(text) - at), 0, -1):
        word = text[at : at + size]
        if word in words.words and _is_bounded(text, at, at + size):
            return word
    return ""
