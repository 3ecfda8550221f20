"""Figures that are said of the wrong thing: the whole for a part of it, or what a table gives for another row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from core.rag.attribution import words_of
from core.rag.claims.figures import ROMAN, Figure, figures_of
from core.rag.claims.lists import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MOST_LINES = 2_000
_LONGEST = 600  # characters of a line
_MOST_FIGURES = 40
_ENOUGH = 0.75  # of the words that say which part is counted
_COUNTS = 10  # smaller numbers are counted by who writes, and stand in every table
_OF = re.compile(r"\s(?:out )?of (?:(?:the|its|all|our|their|these|those)\s)?\Z")
_AMONG = re.compile(r"\s?(?P<noun>[\u4e00-\u9fff]{1,5}?)(?:之中|当中|中|里|[，,]\s?其中)[，,]?\s?有?\s?\Z")
_MAY_PART = re.compile(r"\sof\s|[中里]")
_NOUN = re.compile(r"\s(?P<noun>[A-Za-z][a-z-]*)(?:,? those)?\s(?P<rest>[^,.;:()]{2,80})")
_HAN_REST = re.compile(r"\s?[\u4e00-\u9fff]?(?P<rest>[^，。；,;（）]{2,40})")
_OF_WHOLE = re.compile(
    r"(?:\bof (?:(?:the|all|its|our|their|these|those)\s)?|\bof\s"
    r"|\b(?:than|over|above|below|under|exceed(?:s|ed|ing)?)\s|(?:超过|高于|低于|多于|少于|不到|不足|比)\s?)[$€£¥]?\Z",
    re.IGNORECASE,
)
_WHOLE_OF = re.compile(r"\s?[\u4e00-\u9fff]{1,5}?(?:之中|当中|中|里|[，,]\s?其中)")
_PAIR = re.compile(
    r"(?P<label>[^,;:.，；：。|]{1,40})[:：]\s?(?P<number>\d[\d,]*(?:\.\d+)?)(?=\s*(?:[,;，；。]|\.?\s*\Z|\.\s))"
)
_TURNS = listed("against without before after under over not no never above below until except")
_EMPTY: Final = words_of(
    "fulfil fulfils have has had match matches meet meets satisfy satisfies with that which 满足 符合"
)


class Row(NamedTuple):
    """What figures are given for.

    Args:
        label: The words that say it; none for a whole.
        cells: The figures, by their column.
        noun: What is counted, where that must be named besides.
    """

    label: frozenset[str]
    cells: dict[int, list[Figure]]
    noun: str = ""

    def is_meant(self, said: frozenset[str], plain: str) -> bool:
        """Whether a sentence with these words speaks of it."""
        if self.noun:
            named = self.noun in plain if not self.noun.isascii() else words_of(self.noun) <= said
            return named and len(self.label & said) >= _ENOUGH * len(self.label)
        return bool(self.label) and self.label <= said


@dataclass(slots=True)
class Tally:
    """Figures of one kind for several things.

    Args:
        number: Of the passage.
        rows: What they are given for.
        heads: The words above each column; none where there is but one.
    """

    number: int
    rows: list[Row] = field(default_factory=list[Row])
    heads: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])

    def instead(
        self, figure: Figure, said: frozenset[str], plain: str, mine: Sequence[Figure]
    ) -> tuple[Row, Figure] | None:
        """The one thing that a sentence speaks of and what is given for it, where the figure is another one's."""
        meant = [row for row in self.rows if row.is_meant(said, plain)]
        longest = max((row.label for row in meant), key=len, default=frozenset[str]())
        meant = [row for row in meant if not row.label < longest]  # "paint labour" is not "labour"
        if len(meant) != 1 or _has(figure, meant[0]):
            return None
        for column, cells in meant[0].cells.items():
            if column in self.heads and not self.heads[column] & said:
                continue
            others = [one for row in self.rows if row is not meant[0] for one in row.cells.get(column, ())]
            rival = cells[0]
            if any(one.equals(other) for other in cells for one in mine) or not any(map(figure.equals, others)):
                continue
            if not _is_sum(figure, meant[0]):
                return meant[0], rival
        return None


class Tallies:
    """The tables, lists and parts of wholes in passages.

    Args:
        texts: Of the passages, in plain letters, numbered from 1.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._all: list[Tally] = []
        self._beside: list[str] = []
        for number, text in enumerate(texts, 1):
            parts = Tally(number)
            lines = text.split("\n")[:_MOST_LINES]
            self._all += _tables(lines, number)
            for line in lines:
                if line.count("|") > 1 or " | " in line or len(line) > _LONGEST:
                    continue
                pairs = _pairs(line, number)
                parts.rows += (found := list(_parts(line)))
                self._all += [pairs] if pairs else []
                if not found and not pairs:
                    self._beside.append(line)
            self._all += [parts] if parts.rows else []

    def instead(self, figures: Sequence[Figure], said: frozenset[str], plain: str) -> Iterator[tuple[str, str, int]]:
        """A figure of a sentence, what is given for what it speaks of, and the number of the passage."""
        said |= _TURNS & {word.casefold() for word in plain.split()} if self._all else frozenset[str]()
        for one in figures if self._all else ():
            if one.kind != "amount" or one.unit == ROMAN or one.number < _COUNTS or _is_whole(one, plain):
                continue
            if any(_has(one, row) for tally in self._all for row in tally.rows if row.is_meant(said, plain)):
                continue
            for tally in self._all:
                found = tally.instead(one, said, plain, figures)
                if found and not self._is_told(one, found[0].label):
                    yield one.words, found[1].words, tally.number
                    break

    def _is_told(self, figure: Figure, label: frozenset[str]) -> bool:
        """Whether a line besides has it, and speaks of the same."""
        near = (line for line in self._beside if not label.isdisjoint(words_of(line)))
        return any(figure.equals(other) for line in near for other in figures_of(line))


def _has(figure: Figure, row: Row) -> bool:
    return any(figure.equals(other) for cells in row.cells.values() for other in cells)


def _is_whole(one: Figure, plain: str) -> bool:
    """Whether the sentence itself calls it the whole, "10 of 40", or compares with it: "more than 40"."""
    before, after = plain[max(0, one.start - 16) : one.start], plain[one.start + len(one.words) :][:12]
    return bool(_OF_WHOLE.search(before) or _WHOLE_OF.match(after))


def _is_sum(figure: Figure, row: Row) -> bool:
    """Whether it may be worked out from the figures of a row."""
    values = [one.number for cells in row.cells.values() for one in cells]
    worked_out = {sum(values), *(result for a, b in combinations(values, 2) for result in (a + b, abs(a - b)))}
    return len(values) > 1 and any(abs(figure.number - one) < 1e-6 for one in worked_out)


def _parts(line: str) -> Iterator[Row]:
    """Each part of a whole that is counted: "10 of 40 rows fulfil status = open", and the whole."""
    figures = figures_of(line)[:_MOST_FIGURES] if _MAY_PART.search(line) else []
    for first, second in pairwise(figures):
        if first.unit or second.unit or "date" in {first.kind, second.kind} or first.number == second.number:
            continue
        between, rest = line[first.start + len(first.words) : second.start], line[second.start + len(second.words) :]
        if among := _AMONG.match(between):
            part, whole, noun, after = second, first, among["noun"][0], _HAN_REST.match(rest)
        elif _OF.match(between):
            part, whole, after = first, second, _NOUN.match(rest)
            noun = after["noun"] if after else ""
        else:
            continue
        if after is None or part.number > whole.number:
            continue
        label = (words_of(after["rest"]) - _EMPTY) | (_TURNS & {word.casefold() for word in after["rest"].split()})
        if label:
            yield Row(frozenset(label), {0: [part]}, noun)
            yield Row(frozenset(), {0: [whole]})


def _pairs(line: str, number: int) -> Tally | None:
    """Figures that each stand after what they are given for: "40 rows by status: open: 10, closed: 30"."""
    pairs = [(match["label"], match.start("number")) for match in _PAIR.finditer(line)]
    if len(pairs) < 2:
        return None
    figures = figures_of(line)[:_MOST_FIGURES]
    starts = {start for _, start in pairs}
    rows = [
        Row(frozenset(words_of(label)), {0: [one for one in figures if one.start == start]}) for label, start in pairs
    ]
    wholes = [one for one in figures if one.start not in starts]
    return Tally(number, [*(row for row in rows if row.cells[0]), *(Row(frozenset(), {0: [one]}) for one in wholes)])


def _tables(lines: Sequence[str], number: int) -> Iterator[Tally]:
    """The tables of a passage whose rows begin with what they are about."""
    rows: list[list[str]] = []
    for line in (*lines, ""):
        if " | " in line or line.count("|") > 1:
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif rows:
            if (tally := _table(rows, number)) is not None:
                yield tally
            rows = []


def _table(rows: Sequence[Sequence[str]], number: int) -> Tally | None:
    tally = Tally(number)
    columns = set[int]()
    is_headed = not all(any(one.kind == "amount" for one in figures_of(cell)) for cell in rows[0][1:])
    for row in rows[is_headed:]:
        cells = {at: found for at, cell in enumerate(row) if at and (found := figures_of(cell)[:_MOST_FIGURES])}
        label = frozenset(word for word in words_of(row[0]) if not word.isdecimal())
        if cells and label:
            tally.rows.append(Row(label, cells))
            columns |= set(cells)
    if len(tally.rows) < 2:
        return None
    if len(columns) > 1:
        tally.heads = {at: frozenset(words_of(rows[0][at])) if at < len(rows[0]) else frozenset() for at in columns}
    return tally
