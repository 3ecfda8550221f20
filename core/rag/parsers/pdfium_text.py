"""The letters of a page of a PDF as pypdfium2 gives them: lines and words, and where they stand.

The library sorts what stands on one line by its place on the page as displayed. That parts and mixes lines where the
text lies on its side then, or stands on its head. So a page is read turned as most of its letters stand upright, lines
are put together there, and only then are their places turned to where they are displayed.

It keeps no blocks either: lines that stand close below each other in letters of one size are a paragraph.
"""

from __future__ import annotations

from collections import Counter
from ctypes import c_double, c_float
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from math import atan2, pi
from statistics import median
from typing import TYPE_CHECKING, Any

from core.rag.document import union
from core.rag.parsers.base import clean
from core.rag.parsers.pdf_headings import Line
from core.rag.parsers.pdf_turn import turned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_margins import Runs
    from core.rag.parsers.pdf_tables import Word

_BOLD = 600
_GAP, _WIDE = 0.6, 1.5  # line heights that are and are not between lines of a paragraph
_MORE = 1.25  # times the usual gap
_FAR = 2.0  # line heights between words that belong to different columns
_HYPHENS = str.maketrans({"\x02": "-", "\ufffe": "-", "\t": " "})
_ASKED = 200  # letters of a page, which way round they stand


class View:
    """From the page's own measures, which count from its lower left corner, to those of the page as it is turned now.

    Args:
        page: The library's page.
    """

    def __init__(self, page: Any) -> None:
        self._box = page.get_cropbox() or page.get_mediabox()
        self.turn = int(page.get_rotation())
        self.width, self.height = page.get_size()

    def placed(self, box: Sequence[float]) -> Rectangle:
        """A box, wherever it is."""
        left, bottom, right, top = self._box
        upright = (box[0] - left, top - box[3], box[2] - left, top - box[1])
        return turned(upright, self.turn, right - left, top - bottom)

    def shown(self, box: Sequence[float]) -> Rectangle | None:
        """What is to be seen of a box; `None` if nothing is."""
        x0, y0, x1, y1 = self.placed(box)
        x0, y0, x1, y1 = max(x0, 0.0), max(y0, 0.0), min(x1, self.width), min(y1, self.height)
        return (round(x0, 2), round(y0, 2), round(x1, 2), round(y1, 2)) if x0 < x1 and y0 < y1 else None


def _upright(page: Any) -> tuple[Any, View]:
    """The page's text, read as most of it stands upright, and the view of the page when it is turned so."""
    text, now = page.get_textpage(), page.get_rotation()
    turn = _reading_turn(text)
    if turn is None or turn == now:
        return text, View(page)
    text.close()
    page.set_rotation(turn)
    try:
        return page.get_textpage(), View(page)
    finally:
        page.set_rotation(now)


def _reading_turn(text: Any) -> int | None:
    """By how many degrees, with the clock, a page is to be turned for most of its letters to stand upright."""
    raw: Any = import_module("pypdfium2.raw")
    matrix = raw.FS_MATRIX()
    count = max(0, text.count_chars())
    turns: Counter[int] = Counter()
    for at in range(0, count, count // _ASKED + 1):
        # The library puts in spaces and line breaks of its own; they have no direction.
        if raw.FPDFText_IsGenerated(text, at) != 1 and raw.FPDFText_GetMatrix(text, at, matrix):
            turns[round(atan2(matrix.b, matrix.a) / (pi / 2)) % 4 * 90] += 1
    return turns.most_common(1)[0][0] if turns else None


class Text:
    """The letters of a page.

    Args:
        page: The library's page.
    """

    def __init__(self, page: Any) -> None:
        self._raw: Any = import_module("pypdfium2.raw")
        self.view = View(page)
        self._page, self._reading = _upright(page)
        self.turn = (self._reading.turn - self.view.turn) % 360
        self._count = max(0, self._page.count_chars())

    def _text(self, start: int, count: int) -> str:
        return str(self._page.get_text_range(start, count)) if count > 0 else ""

    def lines(self) -> Iterator[Line | None]:
        """Each printed line, in places of the page as it is read; words far from each other on one line are two."""
        for start, end in self._spans():
            for first, last in self._parted(start, end):
                yield self._line(first, last)

    def runs(self, lines: Sequence[Line]) -> Runs:
        """The paragraphs that lines make, in places of the page as displayed."""
        return [[replace(line, rectangle=self._shown(line.rectangle)) for line in run] for run in _paragraphs(lines)]

    def words(self) -> list[Word]:
        """Every word with its box."""
        found: list[Word] = []
        for start, end in self._spans():
            first = start
            for at in range(start, end + 1):
                if at == end or self._letter(at).isspace():
                    box = self._box(first, at) if at > first else None
                    if box:
                        found.append((*self._shown(box), clean(self._text(first, at - first).translate(_HYPHENS))))
                    first = at + 1
        return found

    def _shown(self, box: Rectangle) -> Rectangle:
        """Where a box of the page as it is read is displayed."""
        return turned(box, -self.turn, self._reading.width, self._reading.height)

    def _letter(self, at: int) -> str:
        return chr(self._raw.FPDFText_GetUnicode(self._page, at) or 32)

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Where lines start and end; the library puts a line break between them."""
        start = 0
        for at in range(self._count + 1):
            code = self._raw.FPDFText_GetUnicode(self._page, at) if at < self._count else 10
            if code in {10, 13}:
                if at > start:
                    yield start, at
                start = at + 1

    def _parted(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        if self._raw.FPDFText_CountRects(self._page, start, end - start) < 2:
            yield start, end
            return
        first, before = start, None
        for at in range(start, end):
            box = self._letter_box(at)
            if box is None:
                continue
            if before:
                far = _FAR * max(box[3] - box[1], before[3] - before[1])
                if box[0] - before[2] > far or before[0] - box[2] > far:  # the right column may be drawn first
                    yield first, at
                    first = at
            before = box
        yield first, end

    def _line(self, start: int, end: int) -> Line | None:
        text = clean(self._text(start, end - start).translate(_HYPHENS))
        box = self._box(start, end)
        if not text.strip() or box is None:
            return None
        middle = next((at for at in range((start + end) // 2, end) if not self._letter(at).isspace()), start)
        size = float(self._raw.FPDFText_GetFontSize(self._page, middle)) * self._scale(middle)
        weights = (self._raw.FPDFText_GetFontWeight(self._page, at) for at in {start, middle, end - 1})
        bold = all(weight >= _BOLD or weight < 0 for weight in weights) and self._is_bold(middle)
        return Line(text, box, round(size * 2) / 2, bold)

    def _is_bold(self, at: int) -> bool:
        return int(self._raw.FPDFText_GetFontWeight(self._page, at)) >= _BOLD

    def _scale(self, at: int) -> float:
        """Some programs set letters in size 1 and enlarge them."""
        matrix = self._raw.FS_MATRIX()
        if not self._raw.FPDFText_GetMatrix(self._page, at, matrix):
            return 1.0
        return (matrix.b**2 + matrix.d**2) ** 0.5 or 1.0

    def _letter_box(self, at: int) -> Rectangle | None:
        left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
        if not self._raw.FPDFText_GetCharBox(self._page, at, left, right, bottom, top):
            return None
        return self._reading.placed((left.value, bottom.value, right.value, top.value))

    def _box(self, start: int, end: int) -> Rectangle | None:
        """Around letters on the page as it is read, as high as their font: small letters are marked like any other."""
        boxes: list[Rectangle] = []
        count = self._raw.FPDFText_CountRects(self._page, start, end - start)
        for index in range(count):
            left, top, right, bottom = c_double(), c_double(), c_double(), c_double()
            if self._raw.FPDFText_GetRect(self._page, index, left, top, right, bottom):
                boxes.append((left.value, bottom.value, right.value, top.value))
        for at in {start, end - 1}:
            rect = self._raw.FS_RECTF(c_float(), c_float(), c_float(), c_float())
            if self._raw.FPDFText_GetLooseCharBox(self._page, at, rect) and rect.right > rect.left:
                boxes.append((rect.left, rect.bottom, rect.right, rect.top))
        around = union(tuple(boxes))
        return self._reading.shown(around) if around else None


def _paragraphs(lines: Sequence[Line]) -> Runs:
    """Lines in runs; what is usual between the lines of a page parts no paragraph."""
    gaps = [gap for one, other in pairwise(lines) if (gap := _gap(one, other)) is not None and gap < _WIDE]
    usual = max(_GAP, _MORE * median(gaps)) if gaps else _GAP
    runs: Runs = []
    for line in lines:
        gap = _gap(runs[-1][-1], line) if runs else None
        if gap is not None and gap < usual:
            runs[-1].append(line)
        else:
            runs.append([line])
    return runs


def _gap(before: Line, line: Line) -> float | None:
    """The line heights between two lines of one paragraph; `None` if they cannot be of one."""
    x0, top, x1, bottom = before.rectangle
    left, y0, right, y1 = line.rectangle
    height = max(bottom - top, y1 - y0)
    if abs(before.size - line.size) > 0.1 * line.size or left >= x1 or right <= x0:
        return None
    gap = (y0 - bottom) / height
    return gap if y1 > bottom and gap > -_GAP else None
