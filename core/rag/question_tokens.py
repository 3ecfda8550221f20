"""The words of a question as tokens, in English and Chinese: columns and values of a table, comparisons, figures."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from core.rag.count_questions import plain_name
from core.rag.german_words import is_german, taken_apart
from core.rag.question_figures import is_letter, is_month, is_sure_day, number_at, time_at
from core.rag.question_words import Token, lexicon
from core.rag.tables.values import iso_date

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.rag.question_words import Lexicon

Spellings: TypeAlias = tuple[str | int | float, ...]
Wording: TypeAlias = re.Pattern[str]
LONGEST: Final = 240  # letters of a question that is looked at
AND: Final = "&"
_YIELD: Final = frozenset({"percentage", "percent"})  # what a column is called so means it
_TOTALS: Final = frozenset({"total", "sum", "summe"})  # of a column that is called so the sum, or its name
_MONTHS: Final = re.compile(r"month|monat|月|period")
_FROM_ON: Final = frozenset({("from", "on"), ("von", "an"), ("vom", "an")})  # with one word between them
NAMES_A_ROW: Final = frozenset({"thing", "subject", "column"})
_QUOTED: Final = re.compile(r"[\"“‘「『']([^\"”’」』']{1,80})[\"”’」』']")


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
        amounts: Columns of numbers that are no names of anything, and no years.
        year: That of all dates, where there is one column of them, and a month may stand in the question; else "".
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
    amounts: tuple[int, ...] = ()
    year: str = ""

    def called(self, wording: Wording, kind: str = "") -> list[int]:
        """The columns of which a name has something in it, of one kind or of any."""
        found = {at for name, columns in self.columns.items() if wording.search(name) for at in columns}
        return sorted(at for at in found if not kind or self.kinds[at] == kind)

    def holds(self, value: str) -> tuple[int, ...]:
        """The columns in which a value stands."""
        return tuple(self.values.get(value, ()))

    def spelled(self, value: str, column: int) -> tuple[str, ...]:
        """The spellings of a value in a column."""
        return self.values.get(value, {}).get(column, ())


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
            day = "" if value else iso_date(said) if is_sure_day(said) else ""
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
    figure = time_at(text, at, known.year) or number_at(text, at)
    longest = max(len(word), len(name), figure[0] - at if figure else 0)
    if not longest:
        return None
    if name and len(name) == longest:
        token = _named(name, text[at : at + longest], before, known)
        if token is None:
            return None
        if len(word) < longest or _yields(words.words[word]) or _is_said_of(before, token, known):
            return None if _may_be_month(token, known) else (at + longest, token)
        if token.kind == "column" and word in _TOTALS:
            return at + longest, replace(token, kind="both")
        if token.kind == "column":
            return None  # "count" is a figure, and a column
    if word and len(word) == longest:
        return at + longest, words.words[word]
    return figure if figure is not None and figure[0] - at == longest else None


def _yields(word: Token) -> bool:
    """Whether a name of the table that is called as this word is meant, and not the word."""
    return word.text in _YIELD or word.kind == "period" or (word.kind == "thing" and bool(word.said))


def _may_be_month(token: Token, known: Vocabulary) -> bool:
    """Whether it is somebody's name and a month, "May", beside dates."""
    if token.kind != "value" or not is_month(token.text) or "date" not in known.kinds:
        return False
    return not set(known.holds(token.text)) <= set(known.called(_MONTHS))


def _is_said_of(before: Token | None, token: Token, known: Vocabulary) -> bool:
    """Whether what stands before is compared with this: "是" is no value of a column that holds no such one."""
    if before is None or not (_is_compared(before) or before.kind == "figure"):
        return False
    if before.kind == "figure":
        return token.kind == "column"
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
    begins = not at or not (is_letter(text[at]) and is_letter(text[at - 1]))
    ends = end >= len(text) or not (is_letter(text[end - 1]) and is_letter(text[end]))
    return begins and ends


def _word_at(text: str, at: int, words: Lexicon) -> str:
    """The longest known word that begins at a place."""
    for size in range(min(words.longest, len(text) - at), 0, -1):
        word = text[at : at + size]
        if word in words.words and _is_bounded(text, at, at + size):
            return word
    return ""
