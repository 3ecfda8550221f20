"""Places of text on a page: finds quotations in blocks whatever the white space, and measures printed text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias
from unicodedata import east_asian_width

from core.observing import count
from core.rag.attribution import words_of
from core.rag.citations import supporting_spans
from core.rag.document import row_text
from core.rag.text_width import text_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from core.rag.document import Block, Rectangle
    from core.rag.page_letters import Letters

Direction: TypeAlias = Literal["right", "left", "down", "up"]
"""Where the next letter of a line stands."""
_BETWEEN_CELLS = row_text(("", ""))
_GAPS = re.compile(r"[\s|]+")  # bars part the cells of a row; they are no words
_FEWEST = 2  # letters that are worth looking for
_FIGURE = re.compile(r"\d++(?:[.,]\d++)*+")
_FOUND = 0.9  # of a quotation's letters are on the page
# An entry of a table of contents ends in the number of a page. It is wider than its words, in heights of its line,
# where dot leaders were left out.
_ENTRY = re.compile(r"\s[\divxlc]{1,6}\s*$", re.IGNORECASE)
_STRETCHED = 1.15
_TO_THE_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]")  # written from right to left


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest unit that is shown: a paragraph, a heading, a row or a line.

    Args:
        block: Which of the blocks it belongs to, from 0.
        row: Which row of that block, from 0; `None` for a block without rows.
        start: Where they begin in the block's text.
    """

    block: int
    row: int | None
    text: str
    start: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a unit's text."""

    unit: int
    start: int
    end: int


def units_of(blocks: Sequence[Block], *, numbered: bool = False) -> list[Unit]:
    """The units of blocks.

    Args:
        numbered: Whether the first cell of each row is its number, which is no part of the text.
    """
    units: list[Unit] = []
    for at, block in enumerate(blocks):
        if not block.cells:
            units.append(Unit(at, None, block.text))
            continue
        start = 0
        for row, cells in enumerate(block.cells):
            units.append(Unit(at, row, row_text(cells[1:] if numbered else cells), start))
            start += len(row_text(cells)) + 1
    return units


class Places:
    """Looks for quotations in units."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self._units = units
        bare = [_GAPS.sub("", unit.text) for unit in units]
        self._all = "".join(bare)
        self._starts: list[int] = []
        self._printed: dict[int, list[int]] = {}
        reached = 0
        for text in bare:
            self._starts.append(reached)
            reached += len(text)

    def find(self, quote: str, after: Sequence[Span] = ()) -> list[Span]:
        """The spans of a quotation: in one piece, or line by line if there is something between its lines.

        Args:
            after: Search from the start of these spans first, then everywhere.
        """
        begin = self._bare_at(after[0]) if after else 0
        whole = self._found(_GAPS.sub("", quote), begin)
        if whole is not None:
            return list(self._spans(*whole))
        spans: list[Span] = []
        for line in quote.splitlines():
            found = self._found(_GAPS.sub("", line), begin)
            if found is not None:
                spans += self._spans(*found)
                begin = found[1]
        return spans

    def share(self, quote: str, spans: Iterable[Span]) -> float:
        """How much of a quotation `find` found, from 0 to 1."""
        found = sum(len(_GAPS.sub("", self._units[one.unit].text[one.start : one.end])) for one in spans)
        return min(1.0, found / max(1, len(_GAPS.sub("", quote))))

    def _found(self, bare: str, begin: int) -> tuple[int, int] | None:
        if len(bare) < _FEWEST:
            return None
        at = self._all.find(bare, begin)
        if at < 0:
            at = self._all.find(bare)
        return (at, at + len(bare)) if at >= 0 else None

    def _spans(self, start: int, end: int) -> Iterator[Span]:
        first = max(0, bisect_right(self._starts, start) - 1)
        for number in range(first, len(self._units)):
            begin = self._starts[number]
            if begin >= end:
                return
            letters = self._letters(number)
            low, high = max(0, start - begin), min(len(letters), end - begin)
            if low < high:
                yield Span(number, letters[low], letters[high - 1] + 1)

    def _letters(self, number: int) -> list[int]:
        """Where in a unit its letters stand that are no gaps; many quotations may be looked for in one unit."""
        if number not in self._printed:
            text = self._units[number].text
            gaps = {at for gap in _GAPS.finditer(text) for at in range(*gap.span())}
            self._printed[number] = [at for at in range(len(text)) if at not in gaps]
        return self._printed[number]

    def _bare_at(self, span: Span) -> int:
        return self._starts[span.unit] + len(_GAPS.sub("", self._units[span.unit].text[: span.start]))


def proof_on_page(
    sentences: Iterable[str], passage: str, blocks: Sequence[Block], letters: Letters | None = None
) -> tuple[Rectangle, ...]:
    """Where on a page the words of a passage stand that support sentences best; nothing where that is not known.

    Of a table's row, the first cell and those that share words with the sentence. A mark in which the letters of the
    page do not have all of its words is none: its whole lines are, or all of its block, or nothing, which is counted.

    Args:
        passage: Its text.
        blocks: What is on the passage's page.
        letters: The letters of that page; where they are not known, no line is marked in part.
    """
    units = units_of(blocks)
    places = Places(units)
    whole = places.find(passage)
    found: list[Span] = []
    for said in sentences:
        for start, end in supporting_spans(said, passage):
            quote = passage[start:end]
            spans = places.find(quote, whole)
            if places.share(quote, spans) >= _FOUND:  # else it points to what happens to have the same words
                found += [cell for span in spans for cell in _cells_of(said, units[span.unit], blocks, span)]
    return tuple(_proved(blocks, units, found, letters))


def _proved(
    blocks: Sequence[Block], units: Sequence[Unit], spans: Iterable[Span], letters: Letters | None
) -> list[Rectangle]:
    """The rectangles of spans as far as the letters of the page bear them out."""
    way = _direction(blocks)
    found: list[Rectangle] = []
    for span in spans:
        unit = units[span.unit]
        block = blocks[unit.block]
        parts = list(_parts(block, unit, span, way))
        if letters is None:
            found += [cell if block.cells else line for cell, line, _ in parts]
            continue
        held = [_first_that_holds(text, places, letters) for *places, text in parts]
        if None in held:
            around = block.rectangle
            held = [around if around and letters.hold(unit.text[span.start : span.end], [around]) else None]
        if None in held:
            count("parlour.marks.dropped", {"of": "sentence"})
        found += filter(None, held)
    return list(dict.fromkeys(found))


def _first_that_holds(text: str, places: Iterable[Rectangle], letters: Letters) -> Rectangle | None:
    return next((place for place in dict.fromkeys(places) if letters.hold(text, [place])), None)


def _cells_of(said: str, unit: Unit, blocks: Sequence[Block], span: Span) -> list[Span]:
    """The parts of a row that share words with a sentence, after its first cell; all of it where none does."""
    cells = blocks[unit.block].cells[unit.row] if unit.row is not None else ()
    words, plain = _words_and_figures(said), said.casefold()
    found: list[Span] = []
    start = 0
    for cell in cells:
        is_word = len(cell) > 1 and not any(map(str.isdigit, cell))
        if cell and (not found or words & _words_and_figures(cell) or (is_word and cell.casefold() in plain)):
            found.append(Span(span.unit, start, start + len(cell)))
        start += len(cell) + len(_BETWEEN_CELLS)
    return found if len(found) > 1 else [span]


def _words_and_figures(text: str) -> set[str]:
    """The words of a text, its figures whole: 0.959 and 0.938 have nothing in common."""
    figures = {figure.replace(",", "") for figure in _FIGURE.findall(text)}
    return figures.union(word for word in words_of(text) if not any(map(str.isdigit, word)))


def rectangles(blocks: Sequence[Block], units: Sequence[Unit], spans: Iterable[Span]) -> list[Rectangle]:
    """The rectangles of spans, line by line, of tables cell by cell; of a line covered in part, roughly that part."""
    way = _direction(blocks)
    pieces = (_parts(blocks[units[one.unit].block], units[one.unit], one, way) for one in spans)
    return list(dict.fromkeys(part for parts in pieces for part, _, _ in parts))


def _parts(block: Block, unit: Unit, span: Span, way: Direction) -> Iterator[tuple[Rectangle, Rectangle, str]]:
    """What a span covers of each line or cell: roughly where that is, the place of all of the line, and its text."""
    cells = _of_cells(block, unit, span)
    return iter(cells) if cells is not None else _of_block(block, unit.start + span.start, unit.start + span.end, way)


def _direction(blocks: Iterable[Block]) -> Direction:
    """Which way the letters of a page follow each other, by where the next line of a paragraph stands.

    Text whose lines follow each other upwards stands on its head; where they follow sideways, it lies on its side.
    """
    steps: Counter[Direction] = Counter()
    for block in blocks:
        for (_, (left, top, right, bottom)), (_, (x0, y0, x1, y1)) in pairwise(block.lines):
            if min(right - left, x1 - x0) >= max(bottom - top, y1 - y0):
                steps["left" if y0 < top else "right"] += y0 != top
            elif max(right - left, x1 - x0) < min(bottom - top, y1 - y0):
                steps["down" if x0 < left else "up"] += x0 != left
    return max(steps, key=steps.__getitem__) if steps.total() else "right"


def _of_cells(block: Block, unit: Unit, span: Span) -> list[tuple[Rectangle, Rectangle, str]] | None:
    """The places of the cells of a row that a span covers; `None` where they are not known, or the row is covered."""
    row = next((place for start, place in block.lines if start == unit.start), None)
    if unit.row is None or row is None or len(block.columns) != len(block.cells[unit.row]):
        return None
    cells, start = block.cells[unit.row], 0
    found: list[tuple[Rectangle, Rectangle, str]] = []
    for at, cell in enumerate(cells):
        if cell and start < span.end and span.start < start + len(cell):
            # Words may reach over the empty cells that follow: cells that are joined have theirs in the first.
            last = next((other for other in range(at + 1, len(cells)) if cells[other]), len(cells)) - 1
            place = (block.columns[at][0], row[1], block.columns[last][1], row[3])
            found.append((place, row, cell[max(0, span.start - start) : span.end - start]))
        start += len(cell) + len(_BETWEEN_CELLS)
    return None if len(found) == sum(map(bool, cells)) else found


def _of_block(block: Block, start: int, end: int, way: Direction) -> Iterator[tuple[Rectangle, Rectangle, str]]:
    if block.kind == "figure":
        yield from _of_figure(block, start, end)
        return
    # Where the cells of a row stand, its length does not tell; nor where words do whose dot leaders were left out.
    is_known = not block.cells and not any(block.text[begin - 1 : begin] == "\n" for begin, _ in block.lines[1:])
    ends = [*(begin for begin, _ in block.lines[1:]), len(block.text)]
    for (begin, rectangle), until in zip(block.lines, ends, strict=True):
        if begin < end and start < until:
            part, said = rectangle, block.text[max(start, begin) : min(end, until)]
            if is_known:
                part = _part(block.text[begin:until], rectangle, start - begin, end - begin, way)
            yield part, rectangle, said


def _of_figure(block: Block, start: int, end: int) -> Iterator[tuple[Rectangle, Rectangle, str]]:
    """The caption's place for words of the caption, the figure's for those that stand in it."""
    places = [place for _, place in block.lines]
    inside = block.text.find("\n") if "\n" in block.text else len(block.text)
    if len(places) > 1 and start < inside:
        yield places[1], places[1], block.text[start : min(end, inside)]
        start = inside
    if places and start < end:
        yield places[0], places[0], block.text[start:end]


def _part(line: str, rectangle: Rectangle, start: int, end: int, way: Direction) -> Rectangle:
    """Roughly where the characters from `start` to `end` of a printed line are; all of the line if that is unknown."""
    x0, y0, x1, y1 = rectangle
    whole = text_width(line.rstrip())
    lies = x1 - x0 < y1 - y0
    # A table, or a slide's box, is one place for many lines.
    if not whole or lies != (way in {"up", "down"}) or "\n" in line.rstrip() or _TO_THE_LEFT.search(line):
        return rectangle
    along, high = (y1 - y0, x1 - x0) if lies else (x1 - x0, y1 - y0)
    if along > _STRETCHED * whole * high and _ENTRY.search(line):
        return rectangle
    first = text_width(line[: max(0, start)]) / whole
    last = min(1.0, text_width(line[: max(0, end)]) / whole)
    if way in {"left", "up"}:
        first, last = 1.0 - last, 1.0 - first
    if lies:
        return (x0, round(y0 + first * (y1 - y0), 2), x1, round(y0 + last * (y1 - y0), 2))
    return (round(x0 + first * (x1 - x0), 2), y0, round(x0 + last * (x1 - x0), 2), y1)


_TALL = 1.12  # a printed line's height in sizes of its letters: no font's is smaller
_WIDE = 0.5  # a letter's usual width in its size; a Chinese one is as wide as it is large


def letters_of(blocks: Iterable[Block]) -> float:
    """The size, in points, of the letters that most of the text is printed in; 0 where no line has a place."""
    sizes = sorted(size for block in blocks for size in _sizes(block))
    half = sum(letters for _, letters in sizes) / 2
    for size, letters in sizes:
        half -= letters
        if half <= 0:
            return size
    return 0.0


def _sizes(block: Block) -> Iterator[tuple[float, int]]:
    """The size of each printed line's letters, and how many they are."""
    ends = [*(begin for begin, _ in block.lines[1:]), len(block.text)][: len(block.lines)]
    for (begin, (x0, y0, x1, y1)), end in zip(block.lines, ends, strict=True):
        text = block.text[begin:end].strip()
        wide = sum(1.0 if east_asian_width(letter) in "WF" else _WIDE for letter in text)
        size = min(abs(y1 - y0) / _TALL, abs(x1 - x0) / max(wide, _WIDE))
        if size > 0:
            yield size, len(text)
