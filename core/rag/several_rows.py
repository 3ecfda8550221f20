"""Sentences that tell a count, sum, average, share or extreme of several rows of a table, which no program counted.

What decides is the sentence: a figure that is said, and that neither one row of the tables, nor prose, nor a program
gave. The wording of the question is a hint alone, for answers that are too short to have a wording of their own.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from core.rag.attribution import DENIAL, is_figure, words_of
from core.rag.claims.figures import OF_DATES, ROMAN, Figure, figures_of
from core.rag.claims.rules import is_near
from core.rag.document import numbered_as
from core.rag.parsers.base import is_ideograph
from core.rag.row_follow_ups import goes_on, gone_on
from core.rag.search.terms import STOP_WORDS
from core.rag.top_questions import for_one

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_EXTREME: Final = (
    r"\b(?:highest|lowest|largest|biggest|greatest|smallest|maximum|minimum|fewest|oldest|youngest|newest|cheapest"
    r"|longest|shortest|latest|earliest|heaviest|lightest)\b|\bthe (?:best|worst|top)\b|(?<!\bat )\b(?:most|least)\b"
    r"|\bmost expensive\b|\branks? (?:first|last)\b|\brang(?:e|es|ed|ing) from\b"
    r"|\b(?:höchst|größt|niedrigst|kleinst|geringst|teuerst|billigst|günstigst|ältest|jüngst|längst|kürzest)e[rsnm]?\b"
    r"|\b(?:die|den|am) (?:meisten|wenigsten)\b|最[大小高低早晚贵便好差老年长短新重轻]|最[多少](?!\s?\d)|排名第"
)
_OVER_ROWS: Final = (
    r"\bcount\b|\bsums?\b|\btotal(?:s|ed|ing|led|ling)?\b|\badds? up\b|\baltogether\b|\baverages?d?\b|\bmedian\b"
    r"|\b(?:percent|percentage|share|proportion|fraction|half|majority) of\b|\b(?:the|total|what) number of\b|%\s?of\b"
    r"|\b(?:anzahl|summe|durchschnitt\w*|mittelwert|gesamt(?:betrag|summe|umsatz|menge|zahl|kosten))\b"
    r"|\b(?:anteil|prozentsatz) (?:der|des|an)\b|一共|共计|共有|合计|之和|求和|加起来|汇总|平均|均值|中位"
    r"|总(?:共|计|数|和|额|量|价|分|金额|收入|营收|销[售量]|成[本绩]|利润)|比例|占比|百分比|百分之"
)
_ASKS: Final = re.compile(
    rf"{_EXTREME}|{_OVER_ROWS}|\bhow many\b|\bthe mean\b|\b(?:for|in|of|by) (?:each|every)\b"
    r"|\bper (?!(?:unit|piece|item|hour|night|kg|kilo|m²|m2|person|cent)\b)\w"
    r"|\bby (?:region|product|month|year|quarter|week|day|category|customer|class|department|team|country|city|store"
    r"|type|status)(?=\W*\Z| (?:in|for|of|and|from)\b)|\bbreak ?downs?\b|\bbroken down\b"
    r"|\bwie ?viele?\b(?! kostet)|\b(?:je|pro|nach) (?:monat|quartal|jahr|region|produkt|kategorie|kunde|land|status)\b"
    r"|[有共了]多少(?!钱)|(?:多少|几)[个名位条笔份件张家人单次种项](?!月)|百分之几|排名|排行"
    r"|每一?[个种位名家人月年天周季班类项]|各[个种类地区部班月年产门店]|按.{1,8}(?:统计|分组|分类|计算)",
    re.IGNORECASE,
)
_IS_EXTREME: Final = re.compile(_EXTREME, re.IGNORECASE)
_TELLS: Final = re.compile(
    rf"{_OVER_ROWS}|\bin all\b|\bcombined\b|\btogether\b|\boverall\b|\bout of\b|\d of (?:the |these |those |all )?\d"
    r"|\binsgesamt\b|\bzusammen\b|\bgesamt\w*|\d (?:von|der)(?: den)? \d|(?:\bprozent|%)\s?(?:der|aller)\b|占",
    re.IGNORECASE,
)
_RANKED: Final = re.compile(r"\b(?:highest|lowest|by)\b|最|按")  # in the sentence of a program: `tables.wording`
_DENIES: Final = re.compile(r"\b(?:no|not|none|cannot|kein\w*|nicht)\b|n['’]t\b|[不没未无]", re.IGNORECASE)
_SUMS: Final = re.compile(
    r"(?:grand |sub)?(?:totals?|sum|average|mean|median|count)\b|(?:gesamt|summe)\b|合计|总[计和]|小计|平均",
    re.IGNORECASE,
)
_MONTHS: Final = (
    r"(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-zäöü]*\.?"  # of a day, in both languages
)
_DATES: Final = re.compile(
    rf"\d{{4}}(?:-\d\d|[-/.]\d\d?[-/.]\d\d?)(?!\d)|\d\d?[./]\d\d?[./]\d{{4}}"
    rf"|\b\d\d?(?:st|nd|rd|th|\.)? {_MONTHS}(?: \d{{4}})?"
    rf"|\b{_MONTHS} \d\d?(?:st|nd|rd|th)?\b(?:,? \d{{4}})?|\d{{1,4}}\s?[年月日号]|\d\d?:\d\d",
    re.IGNORECASE,
)
_OF_A_YEAR: Final = re.compile(
    r"(?:\b(?:in|since|from|until|of|for|by|to|year|im|seit|ab|von|bis|jahr)|[(–/-])\s?\Z", re.IGNORECASE
)
_WHICH: Final = re.compile(
    r"(?:\b(?:rows?|no\.?|nr\.?|page|sheet|step|order|zeile|seite|version|section|id|table|top|first|last)"
    r"|#|第)\s?\Z",
    re.IGNORECASE,
)
_ORDINAL: Final = re.compile(r"\d(?:st|nd|rd|th)\Z|(?:third|th)\Z")
_POINTS: Final = re.compile(
    r"(?<![\d.,])(\d{1,3}(?:\.\d{3})+)(?:,(\d+))?(?![\d.]*\d)|(?<![\d.,])(\d+),(\d{1,2})(?![\d,])"
)
_NOUN: Final = re.compile(
    r"\s(?:[^\W\d_]+\s){0,2}?((?:[^\W\d_]{2,}s|people|men|women|children|[A-ZÄÖÜ][^\W\d_]{3,}))\b"
)
_ONE: Final = re.compile(r"\s([^\W\d_]{2,})\b")
_THERE_ARE: Final = re.compile(
    r"(?:\b(?:there (?:is|are|was|were)|gibt es|es (?:gibt|sind|waren))\s(?:[^\W\d_]+\s){0,2}|[有共]\s?)\Z",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(r"\b([^\W\d_]+(?:s|en)): ?\Z")  # "orders: 14"
_LETTERS: Final = re.compile(r".[^\W\d_]|[^\W\d_].")
_WORD: Final = re.compile(r"[^\W\d_]{3,}|\d{4,}")
_NAMING: Final = re.compile(r"\b[A-ZÄÖÜ][^\W\d_]{2,}|\d{4,}")
_EMPHASIS: Final = re.compile(r"[*`]+")
_MEASURE: Final = re.compile(r"\s?[个笔条位名家项次种单人行张]")
_YEARS: Final = range(1900, 2101)
_CELL: Final = " | "
_LONGEST: Final = 2_000  # letters of a question or a sentence that are looked at
_MOST_TEXT: Final = 24_000  # and of what was given besides rows, of which a passage has some thousands
_MOST_CELLS: Final = 20_000
_SHORT: Final = 4  # digits of a number that names no row: it may count rows, or be one of the list
_SMALL: Final = 3  # so many are spoken of without being counted: "here are 3 ways"
_NEAR: Final = 0.2  # further apart is no figure that is said to be "about" another one
_BARE: Final = 3  # words of an answer that is a figure and little else
_NO_NAMES: Final = STOP_WORDS | {"yes", "ja", "nein", "true", "false"}


def asks_of_several_rows(question: str, earlier: Sequence[str] = ()) -> bool:
    """Whether it asks for a count, sum, average, share or extreme, the first few, or a figure for each value.

    Args:
        earlier: The questions before it, oldest first: "and in the West?" asks what the one before it asked.
    """
    if goes_on(question):
        question = f"{question} {gone_on(question, earlier)[0]}"
    question = question[:_LONGEST]
    return bool(_ASKS.search(question)) or for_one(question)[1] > 1


def rows_of(text: str, document: str) -> list[str]:
    """The lines of a passage that is rows of a table, the first of which may be its head; none of what is prose.

    Args:
        document: Its name: a line with cells is a row in a workbook, elsewhere only with another one.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    rows = [line for line in lines if _CELL in line]
    least = 1 if numbered_as(document) == "sheet" else 2
    return rows if len(rows) >= least and 2 * len(rows) >= len(lines) else []


@dataclass(frozen=True)
class _Row:
    """A row: what it is called, its cells, and its figures."""

    name: str
    cells: frozenset[str]
    figures: tuple[Figure, ...]
    sums_up: bool


class SeveralRows:
    """Holds sentences against rows of tables.

    Args:
        tables: The rows of each passage of a table; the first is its head.
        counted: What programs counted or computed, as texts.
        asked: The question.
        earlier: The questions before it, oldest first.
    """

    def __init__(
        self, tables: Iterable[Sequence[str]], counted: Sequence[str] = (), asked: str = "", earlier: Sequence[str] = ()
    ) -> None:
        self._tables = [list(one) for one in tables]
        self._counted = list(counted)
        self._asked = asked[:_LONGEST]
        self._wants = asks_of_several_rows(asked, earlier)

    def are_told(self, sentence: str, prose: Sequence[str] = (), *, above: str = "", of_rows: bool = False) -> bool:
        """Whether a sentence tells what several rows give, such as their sum or the highest, and no program counted it.

        Args:
            prose: Texts that it may be from as well.
            above: The head of the table that it is a row of.
            of_rows: Whether its mark says that it is of rows.
        """
        said = _EMPHASIS.sub("", sentence[:_LONGEST])
        if DENIAL.search(said):
            return False
        names = self._named(said)
        told = [*self._computed, *_figures("\n".join(prose))]
        plain = _without(said, names)
        readings = dict.fromkeys((plain, _POINTS.sub(_with_point, plain)))  # "5.300" in English and in German
        return all(self._is_told(one, f"{above}\n{said}", names, told, prose, of_rows=of_rows) for one in readings)

    def _is_told(
        self, plain: str, said: str, names: set[str], told: Sequence[Figure], prose: Sequence[str], *, of_rows: bool
    ) -> bool:
        figures = [one for one in _amounts(plain) if not _is_of_one(one, plain)]
        untold = [one for one in figures if not _has(one, told, plain)]
        words = words_of(plain)
        is_bare = len(words) <= _BARE
        if (names or figures) and not _DENIES.search(said) and self._is_extreme(said, bare=is_bare and bool(names)):
            ranked = "\n".join([*prose, *(text for text in self._counted if _RANKED.search(text))]).casefold()
            return bool(untold) or not all(one in ranked for one in names)
        cue = self._has_words_of(_TELLS, said)
        about = of_rows or bool(names) or bool(words & self._words)
        return any(
            not self._is_of_one_row(
                one,
                plain,
                names,
                cue=(cue or self._counts(one, plain)) and (about or self._wants or one.number > _SMALL),
                about=about or is_bare,
            )
            for one in untold
        )

    def _is_of_one_row(self, figure: Figure, plain: str, names: set[str], *, cue: bool, about: bool) -> bool:
        """Whether one row may tell a figure, or it is said of no rows at all."""
        asked = self._names_asked
        called = self._only(names) or [row for row in self._only(asked) if names <= row.cells]
        if len(called) == 1 and not cue:  # it may be worked out from that row
            return True
        if any(_has(figure, row.figures, plain) for row in called):
            return True
        holders = self._with(figure, plain)
        if any(row.sums_up and names <= row.cells for row in holders):
            return True
        if cue:
            return False
        if self._wants:
            meant = [row for row in self._rows if (names or asked) <= row.cells]
            return len(meant) == 1 and meant[0] in holders
        if any(names <= row.cells for row in holders):
            return True
        return figure.number <= _SMALL or not about or _has(figure, _figures(self._asked), plain)

    def _with(self, figure: Figure, plain: str) -> list[_Row]:
        """The rows that have a figure."""
        numbers, rows = self._by_number
        beside = replace(figure, number=1.01 * figure.number, value=1.01 * figure.value)
        about = _NEAR * abs(figure.number) if is_near(figure, beside, plain) else 0.1
        spread = max(figure.exact, abs(figure.value - figure.number), about)
        found: dict[int, None] = {}
        for near in (figure.number, figure.number / 100):
            begin, end = bisect_left(numbers, near - spread), bisect_right(numbers, near + spread)
            found |= dict.fromkeys(rows[begin:end])
        return [self._rows[at] for at in found if _has(figure, self._rows[at].figures, plain)]

    def _only(self, names: set[str]) -> list[_Row]:
        """The rows that are called so, as no other row is."""
        return [row for row in self._rows if row.name in names and self._called[row.name] == 1] if names else []

    def _named(self, text: str) -> set[str]:
        """The names of the tables in a text, apart from those within others."""
        whole = text.casefold()
        found = {one for one in self._names if one in whole and _stands_in(one, whole)}
        words = (one.casefold() for one in _NAMING.findall(text))
        found |= {names[0] for word in words if len(names := self._words_of_names.get(word, [])) == 1}
        return {one for one in found if not any(one != other and one in other for other in found)}

    def _is_extreme(self, said: str, *, bare: bool) -> bool:
        return self._has_words_of(_IS_EXTREME, said) or (bare and self._has_words_of(_IS_EXTREME, self._asked))

    def _has_words_of(self, pattern: re.Pattern[str], said: str) -> bool:
        """Whether there are such words that the tables do not have: a column may be called "total"."""
        return any(match[0].casefold() not in self._text for match in pattern.finditer(said))

    def _counts(self, figure: Figure, plain: str) -> bool:
        """Whether things are counted, and they are no amount of a column: "14 orders"."""
        if figure.unit or not figure.number.is_integer():
            return False
        before, after = plain[max(0, figure.start - 40) : figure.start], plain[figure.start + len(figure.words) :][:60]
        of = _BEFORE.search(before)
        if _THERE_ARE.search(before) or _MEASURE.match(after) or (of and of[1].casefold() not in self._text):
            return True
        noun = (_NOUN if figure.number > 1 else _ONE).match(after)
        word = noun[1] if noun else ""
        return bool(word) and word.casefold() not in STOP_WORDS and not words_of(word) & self._heads

    @cached_property
    def _names_asked(self) -> set[str]:
        return self._named(self._asked)

    @cached_property
    def _rows(self) -> list[_Row]:
        found: list[_Row] = []
        left = _MOST_CELLS
        for line in dict.fromkeys(row for _, *rest in self._tables for row in rest):
            cells = [cell.strip().casefold() for cell in line.split(_CELL)]
            left -= len(cells)
            if left < 0:
                break
            name = next((one for one in cells if len(one) > 1 and not (len(one) < _SHORT and one.isdecimal())), "")
            sums_up = any(_SUMS.match(cell) for cell in cells[:2])
            found.append(_Row(name, frozenset(cells), _figures(line), sums_up))
        return found

    @cached_property
    def _by_number(self) -> tuple[list[float], list[int]]:
        """The figures of all rows in their order, and where the row of each is."""
        pairs = sorted((one.number, at) for at, row in enumerate(self._rows) for one in row.figures)
        return [number for number, _ in pairs], [at for _, at in pairs]

    @cached_property
    def _called(self) -> Counter[str]:
        return Counter(row.name for row in self._rows)

    @cached_property
    def _names(self) -> set[str]:
        """What rows are called, and their cells of words."""
        cells = {cell for cell in set[str]().union(*(row.cells for row in self._rows)) if _LETTERS.search(cell)}
        sums = {row.name for row in self._rows if row.sums_up}
        return (cells | {row.name for row in self._rows if row.name}) - _NO_NAMES - sums

    @cached_property
    def _words_of_names(self) -> dict[str, list[str]]:
        """What is called with a word: "Lea" is "Lea Fuchs" where nobody else is called so."""
        found: dict[str, list[str]] = {}
        for name in self._names & self._called.keys():
            for word in dict.fromkeys(_WORD.findall(name)):
                found.setdefault(word, []).append(name)
        return found

    @cached_property
    def _text(self) -> str:
        return "\n".join(line for table in self._tables for line in table).casefold()

    @cached_property
    def _words(self) -> set[str]:
        return {word for word in words_of(self._text) if not is_figure(word)}

    @cached_property
    def _heads(self) -> set[str]:
        """The words above columns of figures."""
        found = set[str]()
        for head, *rows in self._tables:
            columns = zip_longest(*(row.split(_CELL) for row in (head, *rows)), fillvalue="")
            for name, *cells in columns:
                if cells and not any(map(str.isalpha, "".join(cells))):
                    found |= words_of(name)
        return found

    @cached_property
    def _computed(self) -> tuple[Figure, ...]:
        return _figures("\n".join(self._counted))


def _amounts(text: str) -> list[Figure]:
    """The figures of a text, apart from days."""
    plain = _DATES.sub(lambda day: " " * len(day[0]), text)
    return [one for one in figures_of(plain) if one.unit not in OF_DATES and one.unit != ROMAN]


def _figures(text: str) -> tuple[Figure, ...]:
    """The figures of a text, read as in English and as in German."""
    text = text[:_MOST_TEXT]
    return tuple(one for read in dict.fromkeys((text, _POINTS.sub(_with_point, text))) for one in _amounts(read))


def _with_point(number: re.Match[str]) -> str:
    """A figure as it is written in English."""
    whole, part = number[1] or number[3], number[2] or number[4]
    return whole.replace(".", "") + (f".{part}" if part else "")


def _is_of_one(figure: Figure, plain: str) -> bool:
    """Whether a figure says which one, or which year, and not how many."""
    before = plain[max(0, figure.start - 12) : figure.start]
    is_year = figure.words.isdecimal() and len(figure.words) == _SHORT and int(figure.words) in _YEARS
    return bool(_ORDINAL.search(figure.words) or _WHICH.search(before) or (is_year and _OF_A_YEAR.search(before)))


def _has(figure: Figure, others: Iterable[Figure], said: str) -> bool:
    """Whether one of the others is meant; "24 %" may be the 0.24 of a table."""
    return any(
        figure.equals(one)
        or (abs(figure.number - one.number) <= _NEAR * abs(figure.number) and is_near(figure, one, said))
        or (figure.unit == "%" and not one.unit and abs(figure.number - 100 * one.number) <= figure.exact)
        for one in others
    )


def _without(text: str, names: Iterable[str]) -> str:
    """The text without the names that have digits in them."""
    for name in sorted(filter(is_figure, names), key=len, reverse=True):
        text = re.sub(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", " ", text, flags=re.IGNORECASE)
    return text


def _stands_in(cell: str, whole: str) -> bool:
    """Whether a text without capitals has the words of a cell; Chinese words have no ends that could be seen."""
    if any(map(is_ideograph, cell)):
        return True
    return bool(re.search(rf"(?<![^\W_]){re.escape(cell)}(?![^\W_])", whole))
