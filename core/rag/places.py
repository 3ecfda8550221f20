"""Places of text on a page: finds quotations in blocks whatever the white space, and measures printed text."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from core.rag.document import row_text
from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from core.rag.document import Block, Rectangle

_GAPS = re.compile(r"[\s|]+")  # bars part the cells of a row; they are no words
_FEWEST = 2  # letters that are worth looking for
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


def rectangles(blocks: Sequence[Block], units: Sequence[Unit], spans: Iterable[Span]) -> list[Rectangle]:
    """The rectangles of spans, line by line; of a line that a span covers in part, roughly that part."""
    is_upside_down = sum(map(_rises, blocks)) > 0
    found: list[Rectangle] = []
    for span in spans:
        unit = units[span.unit]
        found += _of_block(
            blocks[unit.block], unit.start + span.start, unit.start + span.end, is_upside_down=is_upside_down
        )
    return list(dict.fromkeys(found))


def _rises(block: Block) -> int:
    """How many more lines of a block stand above the line before them than below it."""
    tops = [rectangle[1] for _, rectangle in block.lines]
    return sum((later < earlier) - (later > earlier) for earlier, later in pairwise(tops))


def _of_block(block: Block, start: int, end: int, *, is_upside_down: bool) -> Iterator[Rectangle]:
    ends = [*(begin for begin, _ in block.lines[1:]), len(block.text)]
    for (begin, rectangle), until in zip(block.lines, ends, strict=True):
        if begin < end and start < until:
            x0, y0, x1, y1 = _part(block.text[begin:until], rectangle, start - begin, end - begin)
            if is_upside_down:
                both = rectangle[0] + rectangle[2]
                x0, x1 = round(both - x1, 2), round(both - x0, 2)
            yield (x0, y0, x1, y1)


def _part(line: str, rectangle: Rectangle, start: int, end: int) -> Rectangle:
    """Roughly where the characters from `start` to `end` of a printed line are; all of the line if that is unknown."""
    x0, y0, x1, y1 = rectangle
    whole = text_width(line.rstrip())
    # A table, or a slide's box, is one place for many lines.
    if not whole or x1 - x0 < y1 - y0 or "\n" in line.rstrip() or _TO_THE_LEFT.search(line):
        return rectangle
    left = text_width(line[: max(0, start)]) / whole
    right = min(1.0, text_width(line[: max(0, end)]) / whole)
    return (round(x0 + left * (x1 - x0), 2), y0, round(x0 + right * (x1 - x0), 2), y1)


_NARROW, _BROAD = frozenset(" .,:;'!|ijltfrI()[]"), frozenset("mwMWABCDEFGHKNOPQRSTUVXYZ%@")


def text_width(text: str) -> float:
    """The width of text, in widths of a Chinese character; an estimate for highlighting."""
    narrow, broad = sum(map(_NARROW.__contains__, text)), sum(map(_BROAD.__contains__, text))
    wide = ideographs(text)
    return wide + 0.28 * narrow + 0.7 * broad + 0.5 * max(0, len(text) - wide - narrow - broad)


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
