"""Documents that are typeset here, so that the place of every line is known without reading them.

The place of a line is the box from where its first letter begins to where its last one ends, as high as its font says
(from the highest ascender to the lowest descender): what a viewer paints when the line is selected. The place of a
table's row is what its ruling lines enclose. Places are in points from the top left corner of the page as displayed.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import pymupdf

from core.rag.citations import supporting_spans
from core.rag.places import proof_on_page
from core.rag.prose import sentence_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from core.rag.document import Block, Chunk, Passage, Rectangle
    from core.rag.page_letters import Letters

Script = Literal["helv", "tiro", "cjk"]
Text = tuple[str, str]  # a title, and what stands under it
_DPI = 150
_MARGIN, _GUTTER = 62.0, 24.0
_EMPTY = re.compile(r"[\s|]+")
_SHORT = 8  # letters: fewer in common say nothing
_LEAST = 12  # letters of a sentence that may be cited
_OTHERS = 2
_NO_LINE_BEGINS_WITH = "，。、；：？！）》”』」％"


@dataclass(frozen=True, slots=True)
class Printed:
    """A line of text or a row of a table, where it was put.

    Args:
        words: Its words (of Chinese, its letters), each with its place.
    """

    text: str
    page: int
    place: Rectangle
    words: tuple[tuple[str, Rectangle], ...] = ()


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page to print on.

    Args:
        width: Points, before it is turned.
        height: Points, before it is turned.
        turned: Degrees by which a viewer turns it, with the clock.
        lying: The text lies on its side when displayed; else it is set so that it stands upright then.
        crop: What a viewer shows of it.
    """

    width: float = 595.0
    height: float = 842.0
    turned: int = 0
    lying: bool = False
    crop: Rectangle | None = None

    def shown(self, box: Rectangle) -> Rectangle:
        """Where a viewer shows what stands in a box of the sheet before it is turned and cut."""
        x0, y0, x1, y1 = box
        match self.turned:
            case 90:
                x0, y0, x1, y1 = self.height - y1, x0, self.height - y0, x1
            case 180:
                x0, y0, x1, y1 = self.width - x1, self.height - y1, self.width - x0, self.height - y0
            case 270:
                x0, y0, x1, y1 = y0, self.width - x1, y1, self.width - x0
            case _:
                pass
        left, top = self.crop[:2] if self.crop else (0.0, 0.0)
        return (x0 - left, y0 - top, x1 - left, y1 - top)

    def raw(self, x: float, y: float) -> tuple[float, float]:
        """The point of the sheet that a viewer shows at a place of the turned page."""
        match self.turned:
            case 90:
                return (y, self.height - x)
            case 180:
                return (self.width - x, self.height - y)
            case 270:
                return (self.width - y, x)
            case _:
                return (x, y)


@cache
def font(script: Script) -> Any:
    """A font that comes with the library."""
    return pymupdf.Font(script)


@cache
def _advance(script: Script, letter: str) -> float:
    """How wide a letter is, in its own size."""
    return float(font(script).text_length(letter, 1.0))


def _length(script: Script, text: str, size: float) -> float:
    """How wide a text is, in points."""
    return sum(_advance(script, letter) for letter in text) * size


class Typesetter:
    """Sets lines on pages, and remembers where they went.

    Args:
        script: The font.
        size: Of the letters, in points.
        leading: From line to line, in letter sizes.
    """

    def __init__(self, script: Script = "helv", size: float = 10.5, leading: float = 1.45) -> None:
        self.script: Script = script
        self.size, self.leading = size, leading
        self.printed: list[Printed] = []
        self._document: Any = pymupdf.open()
        self._sheets: list[Sheet] = []
        self._waiting: list[list[tuple[float, float, str, float]]] = []  # of each page, in what order they were set
        self._page: Any = None

    def page(self, sheet: Sheet | None = None) -> None:
        """Begin a page."""
        sheet = sheet or Sheet()
        self._sheets.append(sheet)
        self._waiting.append([])
        self._page = self._document.new_page(width=sheet.width, height=sheet.height)
        self._page.insert_font(fontname="F0", fontbuffer=font(self.script).buffer)

    def lines(self, text: str, width: float, size: float = 0.0) -> list[str]:
        """A text in lines that are no wider than `width`."""
        size = size or self.size
        done, line, along = [], "", 0.0
        words = list(text) if self.script == "cjk" else [f"{word} " for word in text.split()]
        for word in words:
            too_wide = along + _length(self.script, word.rstrip(), size) > width
            if line and too_wide and word not in _NO_LINE_BEGINS_WITH:
                done.append(line.rstrip())
                line, along = "", 0.0
            line += word
            along += _length(self.script, word, size)
        return [*done, line.rstrip()] if line.strip() else done

    def line(self, text: str, x: float, top: float, size: float = 0.0) -> None:
        """Set one line whose box begins at `x` and `top`, as it is read."""
        size = size or self.size
        face, sheet = font(self.script), self._sheets[-1]
        baseline = top + face.ascender * size
        width = _length(self.script, text, size)
        box = (x, top, x + width, baseline - face.descender * size)
        turned = sheet.turned and not sheet.lying
        place = box if turned else sheet.shown(box)
        words = [(word, at if turned else sheet.shown(at)) for word, at in self._words(text, x, box[1], box[3], size)]
        self.printed.append(Printed(text, len(self._sheets), place, tuple(words)))
        self._waiting[-1].append((x, baseline, text, size))

    def _words(self, text: str, x: float, top: float, bottom: float, size: float) -> Iterator[tuple[str, Rectangle]]:
        """The words of a line that begins at `x`, each with its box."""
        for word in re.finditer(r"\S" if self.script == "cjk" else r"\S+", text):
            left = x + _length(self.script, text[: word.start()], size)
            yield word[0], (left, top, left + _length(self.script, word[0], size), bottom)

    def paragraph(self, lines: Sequence[str], x: float, top: float, size: float = 0.0) -> float:
        """Set lines below each other; where the next may begin."""
        size = size or self.size
        for line in lines:
            self.line(line, x, top, size)
            top += size * self.leading
        return top

    def row(self, cells: Sequence[str], edges: Sequence[float], top: float, height: float) -> None:
        """Set a row of a table with ruling lines around every field."""
        words: list[tuple[str, Rectangle]] = []
        for text, (left, right) in zip(cells, pairwise(edges), strict=True):
            words += self._words(text, left + 4, top, top + height, self.size)
            self._page.draw_rect(pymupdf.Rect(left, top, right, top + height), width=0.7)
            baseline = top + (height - self.size) / 2 + self.size * 0.8
            self._waiting[-1].append((left + 4, baseline, text, self.size))
            if _length(self.script, text, self.size) > right - left - 6:
                raise ValueError(f"{text!r} is too long for its field.")
        place = (edges[0], top, edges[-1], top + height)
        self.printed.append(Printed("".join(cells), len(self._sheets), place, tuple(words)))

    def save(self, path: Path, *, across: bool = False) -> None:
        """Write the file; `across` draws lines from top to bottom, whatever column they stand in."""
        for page, sheet, lines in zip(self._document, self._sheets, self._waiting, strict=True):
            if across:
                lines.sort(key=lambda one: (round(one[1]), one[0]))
            _draw(page, sheet, lines)
            if sheet.crop:
                page.set_cropbox(pymupdf.Rect(sheet.crop))
            page.set_rotation(sheet.turned)
        self._document.subset_fonts()
        self._document.save(path, garbage=3, deflate=True)


def _draw(page: Any, sheet: Sheet, lines: Sequence[tuple[float, float, str, float]]) -> None:
    turn = 0 if sheet.lying else sheet.turned
    for x, y, text, size in lines:
        point = sheet.raw(x, y) if turn else (x, y)
        page.insert_text(point, text, fontsize=size, fontname="F0", rotate=turn)


def scanned(path: Path, to: Path) -> None:
    """The same pages as pictures."""
    with pymupdf.open(path) as typeset, pymupdf.open() as pictures:
        for page in typeset:
            drawn = page.get_pixmap(dpi=_DPI)
            pictures.new_page(width=page.rect.width, height=page.rect.height).insert_image(
                page.rect, stream=drawn.tobytes("jpeg", 80)
            )
        pictures.save(to)


def set_in_columns(
    setter: Typesetter, given: Sequence[Text], sheets: Sequence[Sheet], columns: int = 1
) -> list[list[Printed]]:
    """Passages with their titles as headings, column by column, on these sheets in turn; the lines of each."""
    done: list[list[Printed]] = []
    number, column, top = -1, columns - 1, 1e9
    width = bottom = 0.0

    def room(lines: int, size: float) -> float:
        nonlocal number, column, top, width, bottom
        if top + lines * size * setter.leading > bottom:
            column += 1
            if column >= columns:
                number, column = number + 1, 0
                sheet = sheets[number % len(sheets)]
                setter.page(sheet)
                turned = sheet.turned in {90, 270} and not sheet.lying
                wide, high = (sheet.height, sheet.width) if turned else (sheet.width, sheet.height)
                width, bottom = (wide - 2 * _MARGIN - _GUTTER * (columns - 1)) / columns, high - _MARGIN
            top = _MARGIN
        return _MARGIN + column * (width + _GUTTER)

    for title, text in given:
        x = room(5, setter.size)
        first = len(setter.printed)
        if title:
            top = setter.paragraph(setter.lines(title, width, 15.0), x, top, 15.0) + 4.0
        rest = text
        while rest:
            x = room(2, setter.size)
            lines = setter.lines(rest, width)
            fitting = max(1, int((bottom - top) / (setter.size * setter.leading)))
            top = setter.paragraph(lines[:fitting], x, top)
            rest = ("" if setter.script == "cjk" else " ").join(lines[fitting:])
        top += 14.0
        done.append(setter.printed[first:])
    return done


def set_table(setter: Typesetter, words: Sequence[str], rows: int) -> None:
    """A table of so many rows over several pages, its header on each; some fields are empty."""
    edges, height = (62.0, 112.0, 250.0, 388.0, 533.0), setter.size * 2
    lot = random.Random(5)
    top = 1e9
    for number in range(1, rows + 1):
        if top + height > 842 - _MARGIN:
            setter.page()
            setter.row(("No.", "Name", "Place", "Amount"), edges, _MARGIN, height)
            top = _MARGIN + height
        name, place = lot.choice(words), lot.choice(words)
        setter.row((str(number), f"{name} {number}", place, f"{lot.randrange(10**6):,}"), edges, top, height)
        top += height


def true_lines(passage: Chunk | Passage, printed: Sequence[Printed]) -> list[Printed]:
    """The printed lines of a passage's page that hold its words."""
    here = [one for one in printed if one.page == passage.page]
    page, starts = "", []
    for one in here:
        starts.append(len(page))
        page += _EMPTY.sub("", one.text)
    said = _EMPTY.sub("", passage.text)
    start = page.find(said)
    end = start + len(said)
    if start < 0:
        best = SequenceMatcher(None, page, said, autojunk=False).find_longest_match()
        if best.size < _SHORT:
            return []
        start = best.a - best.b  # recognised text has few letters more or less than the printed one
        end = start + len(said)
    ends = [*starts[1:], len(page)]
    return [one for one, at, to in zip(here, starts, ends, strict=True) if at < end and start < to]


def word_places(quote: str, passage: Chunk | Passage, printed: Sequence[Printed]) -> list[Rectangle]:
    """Where each word of a quotation from a passage was put; nothing where that cannot be told."""
    words = [word for line in true_lines(passage, printed) for word in line.words]
    bare, said = "".join(word for word, _ in words), _EMPTY.sub("", quote)
    start = bare.find(said)
    if not said or start < 0 or bare.find(said, start + 1) >= 0:  # said twice, either may be meant
        return []
    found: list[Rectangle] = []
    at = 0
    for word, place in words:
        if at < start + len(said) and start < at + len(word):
            found.append(place)
        at += len(word)
    return found


def holds(marked: Sequence[Rectangle], place: Rectangle, grow: float) -> bool:
    """Whether the middle of a place lies inside what is marked, all of whose edges are moved out by `grow` points."""
    x, y = (place[0] + place[2]) / 2, (place[1] + place[3]) / 2
    return any(x0 - grow <= x <= x1 + grow and y0 - grow <= y <= y1 + grow for x0, y0, x1, y1 in marked)


def misplaced(
    passage: Chunk | Passage, blocks: Sequence[Block], letters: Letters | None, printed: Sequence[Printed]
) -> Iterator[bool]:
    """For each sentence of a passage whether its mark leaves out a word, or holds more than two words of others.

    What marks the first words of a line is estimated, so that a mark may reach into its neighbours.

    Args:
        blocks: What was read of its page.
        letters: The letters that were read of it.
        printed: What was put there.
    """
    words = [place for line in printed if line.page == passage.page for _, place in line.words]
    for start, end in sentence_spans(passage.text):
        said = passage.text[start:end].strip()
        quotes = [passage.text[a:b] for a, b in supporting_spans(said, passage.text)] if len(said) >= _LEAST else []
        true = [place for quote in quotes for place in word_places(quote, passage, printed)]
        marked = proof_on_page([said], passage.text, blocks, letters)
        if true:
            others = [place for place in words if place not in true and holds(marked, place, -1.5)]
            yield len(others) > _OTHERS or not all(holds(marked, place, 1.5) for place in true)


def area(boxes: Sequence[Rectangle]) -> float:
    """The area that the boxes cover together."""
    return sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1, _ in _tiles(boxes))


def overlap(marked: Sequence[Rectangle], true: Sequence[Rectangle]) -> float:
    """The common area over the area of both together, from 0 to 1."""
    whole = area([*marked, *true])
    common = area(marked) + area(true) - whole
    return common / whole if whole else 0.0


def _tiles(boxes: Sequence[Rectangle]) -> Iterator[tuple[float, float, float, float, bool]]:
    xs = sorted({x for box in boxes for x in (box[0], box[2])})
    ys = sorted({y for box in boxes for y in (box[1], box[3])})
    for y0, y1 in pairwise(ys):
        here = [box for box in boxes if box[1] <= y0 and y1 <= box[3]]
        for x0, x1 in pairwise(xs):
            if any(box[0] <= x0 and x1 <= box[2] for box in here):
                yield x0, y0, x1, y1, True
