"""Pages without a picture: the boxes of a slide, the rows of a sheet, the lines of a text, with passages marked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from math import ceil
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from core.rag.document import Block, row_text
from core.rag.figure_labels import caption_in
from core.rag.parsers.text import PROSE
from core.rag.places import Places, Span, units_of
from core.rag.row_numbers import has
from core.rag.text_width import text_width
from webui.panels.evidence_page import ShownPage, paper, tabs
from webui.render.markup import escaped, verbatim

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.rag.document import Rectangle
    from core.rag.page_content import PageContent
    from core.rag.places import Unit
    from core.rag.row_numbers import Runs
    from webui.words import Words

_FOUND, _OPEN, _CITED = 1, 2, 3  # strengths of highlights
_LETTERS = (7.0, 28.0)  # points, smallest and largest on a slide
_TITLE = 40.0
_LINE = 1.28
_WIDEST_CELL = 300
_SLIDE = (960.0, 540.0)
_FIELD = re.compile(r"([^:：]{1,200}[:：]) *(.+)")


@dataclass(frozen=True, slots=True)
class Found:
    """A passage to mark on the page.

    Args:
        number: In the reply; `None` for one that the reply did not find.
        is_open: Whether it is the open one.
        cited: Evidence spans of the open one, as start and end in `text`.
        rows: The rows of a sheet that it stands for, by their numbers, where that is known.
    """

    number: int | None
    text: str
    is_open: bool = False
    cited: tuple[tuple[int, int], ...] = ()
    rows: Runs = ()


@dataclass(frozen=True, slots=True)
class ShownText:
    """A page, or part, of a document without page pictures.

    Args:
        pages: Number of slides or sheets; `None` for a text without pages.
        found: The passages that may be on it.
        figures: The numbers of the document's figures that can be shown, by their sources.
    """

    document_id: str
    document: str
    pages: int | None
    content: PageContent
    found: tuple[Found, ...] = ()
    figures: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def page(self) -> int | None:
        """The slide or sheet, from 1; `None` for a text without pages."""
        return self.content.page


@dataclass(slots=True)
class _Marked:
    """Highlighted ranges of each unit of text, with their strength, and the passages that begin in it."""

    ranges: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict[int, list[tuple[int, int, int]]])
    numbers: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def put(self, spans: Iterable[Span], strength: int) -> None:
        for span in spans:
            self.ranges.setdefault(span.unit, []).append((span.start, span.end, strength))

    def strength(self, unit: int) -> int:
        return max((strength for _, _, strength in self.ranges.get(unit, ())), default=0)


@dataclass(frozen=True, slots=True)
class _Sheet:
    """What the renderers of a page need."""

    shown: ShownText
    units: list[Unit]
    marked: _Marked
    words: Words
    message_id: str
    open_number: int | None

    def text(self, number: int) -> str:
        """A unit's text with its highlights."""
        return _with_marks(self.units[number].text, self.marked.ranges.get(number, ()))

    def tabs(self, number: int) -> str:
        """Links to the passages that begin in a unit."""
        return "".join(
            f'<a class="cite p-at{" p-on" if one == self.open_number else ""}" '
            f'href="#cite-{escaped(self.message_id)}-{one}" '
            f'aria-label="{escaped(self.words("evidence.open", n=one))}">{one}</a>'
            for one in self.marked.numbers.get(number, ())
        )


def text_page(
    shown: ShownText, here: Sequence[Mapping[str, Any]], open_number: int | None, words: Words, message_id: str
) -> str:
    """Markup of a page without a picture; arguments as in `evidence_page.picture`."""
    content = shown.content
    units = units_of(content.blocks, numbered=content.is_numbered)
    sheet = _Sheet(shown, units, _marked(units, shown), words, message_id, open_number)
    if content.kind == "slide":
        return _slide(sheet, here)
    body = {"sheet": _grid, "lines": _lines}.get(content.kind, _paragraphs)(sheet)
    before, after = (_more(sheet, way) for way in ("before", "after"))
    if content.kind == "page":
        before = f'<p class="p-read-from">{escaped(words("evidence.form"))}</p>'
    return (
        f'<div class="p-desk p-read p-of-{content.kind}" tabindex="0" role="region" '
        f'aria-label="{escaped(shown.document)}">{before}{body}{after}</div>'
    )


def _marked(units: Sequence[Unit], shown: ShownText) -> _Marked:
    places, marked = Places(units), _Marked()
    for one in shown.found:
        exact = one.rows if shown.content.kind == "sheet" else ()
        spans = _rows_of(units, shown.content.blocks, exact) if exact else places.find(one.text)
        if not spans:
            continue
        marked.put(spans, (_CITED if exact else _OPEN) if one.is_open else _FOUND)
        for start, end in () if exact else one.cited:
            marked.put(places.find(one.text[start:end], spans), _CITED)
        if one.number is not None:
            marked.numbers.setdefault(spans[0].unit, []).append(one.number)
    return marked


def _rows_of(units: Sequence[Unit], blocks: Sequence[Block], rows: Runs) -> list[Span]:
    """The rows of a sheet with these numbers, whole."""
    numbered = ((at, unit, blocks[unit.block].cells[unit.row][0]) for at, unit in enumerate(units) if unit.row)
    return [
        Span(at, 0, len(unit.text)) for at, unit, number in numbered if number.isdecimal() and has(rows, int(number))
    ]


def _with_marks(text: str, ranges: Sequence[tuple[int, int, int]]) -> str:
    """Text with highlights; where ranges overlap the strongest counts."""
    if not ranges:
        return verbatim(text)
    cuts = sorted({0, len(text), *(at for start, end, _ in ranges for at in (start, end) if at <= len(text))})
    pieces: list[str] = []
    for start, end in pairwise(cuts):
        strength = max((one for low, high, one in ranges if low <= start and end <= high), default=0)
        piece = verbatim(text[start:end])
        pieces.append(f'<mark class="p-m{strength}">{piece}</mark>' if strength else piece)
    return "".join(pieces)


# ---- lines and paragraphs


def form_rows(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The texts and fields of a form that is drawn nowhere; fields that follow each other as rows: label, value."""
    found: list[Block] = []
    rows: list[tuple[str, str]] = []
    for block in blocks:
        texts: dict[str, Block] = {}  # one for all lines that are the same, as empty ones are
        for line in block.text.split("\n"):
            field = _FIELD.match(line)
            if field:
                rows.append((field[1], field[2]))
                continue
            found += _as_table(rows, block.page)
            rows = []
            if line not in texts:
                texts[line] = replace(block, text=line)
            found.append(texts[line])
    return (*found, *_as_table(rows, None))


def _as_table(rows: list[tuple[str, str]], page: int | None) -> list[Block]:
    return [Block("table", "\n".join(map(row_text, rows)), page, cells=tuple(rows))] if rows else []


def _lines(sheet: _Sheet) -> str:
    is_prose = PurePath(sheet.shown.document).suffix.lower() in PROSE
    rows = "".join(
        _line(sheet, at, sheet.shown.content.blocks[unit.block].cells[unit.row or 0][0], "")
        for at, unit in enumerate(sheet.units)
    )
    return f'<div class="p-lines{"" if is_prose else " p-code"}">{rows}</div>'


def _line(sheet: _Sheet, at: int, number: str, kind: str, picture: str = "") -> str:
    return (
        f'<div class="p-line{kind}"><span class="p-no">{escaped(number)}</span>'
        f'<span class="p-words" dir="auto">{picture}{sheet.text(at)}</span>{sheet.tabs(at)}</div>'
    )


def _paragraphs(sheet: _Sheet) -> str:
    """Paragraphs with their numbers; tables as tables."""
    content, pieces = sheet.shown.content, list[str]()
    for block, some in groupby(enumerate(sheet.units), key=lambda one: one[1].block):
        units = [at for at, _ in some]
        number = str(content.first + block)
        if content.blocks[block].cells:
            rows = _table(sheet, content.blocks[block], units)
            tabs_html = "".join(map(sheet.tabs, units))
            pieces.append(
                f'<div class="p-line"><span class="p-no">{number}</span><div class="p-words">{rows}</div>'
                f"{tabs_html}</div>"
            )
        else:
            some_block = content.blocks[block]
            pieces.append(_line(sheet, units[0], number, f" p-{some_block.kind}", _picture(sheet, some_block)))
    return f'<div class="p-lines">{"".join(pieces)}</div>'


def _picture(sheet: _Sheet, block: Block) -> str:
    """The picture of a figure; "" for a block that is none."""
    number = sheet.shown.figures.get(block.source) if block.source else None
    if number is None:
        return ""
    caption = caption_in(block.text)
    alt = escaped(caption or sheet.words("evidence.figure", n=number))
    address = f"./pages/{escaped(sheet.shown.document_id)}/figure/{number}.jpg"
    return f'<img class="p-drawn" loading="lazy" src="{address}" alt="{alt}">'


def _table(sheet: _Sheet, block: Block, units: Sequence[int]) -> str:
    rows = "".join(
        f"<tr{_row_class(sheet.marked.strength(at))}>{_cells(cells)}</tr>"
        for at, cells in zip(units, block.cells, strict=True)
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _row_class(strength: int) -> str:
    return f' class="p-m{strength}"' if strength else ""


def _cells(cells: Iterable[str]) -> str:
    return "".join(f'<td dir="auto">{verbatim(_short(cell))}</td>' for cell in cells)


def _short(cell: str) -> str:
    return cell if len(cell) <= _WIDEST_CELL else cell[: _WIDEST_CELL - 1] + "…"


# ---- sheets


def _grid(sheet: _Sheet) -> str:
    """Rows under the letters of their columns, which stay in view."""
    blocks = sheet.shown.content.blocks
    _, *letters = max((block.cells[0] for block in blocks), key=len, default=("",))
    # The corner heads nothing.
    head = "<td></td>" + "".join(f'<th scope="col">{escaped(letter)}</th>' for letter in letters)
    rows: list[str] = []
    for at, unit in enumerate(sheet.units):
        number, *cells = blocks[unit.block].cells[unit.row or 0]
        if not unit.row:  # the letters again
            continue
        rows.append(
            f'<tr{_row_class(sheet.marked.strength(at))}><th scope="row">{escaped(number)}{sheet.tabs(at)}</th>'
            f"{_cells(cells)}</tr>"
        )
    title = escaped(sheet.shown.content.title)
    caption = f'<p class="p-name">{title}</p>' if title else ""
    return f'{caption}<table class="p-grid"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _more(sheet: _Sheet, way: str) -> str:
    """The button to further rows of a long sheet."""
    content = sheet.shown.content
    part = content.part - 1 if way == "before" else content.last + 1
    if content.kind != "sheet" or not 1 <= part <= content.parts:
        return ""
    return (
        f'<button type="button" class="p-rows" data-do="page" data-document="{escaped(sheet.shown.document_id)}" '
        f'data-n="{content.page or 0}" data-part="{part}">{escaped(sheet.words(f"evidence.rows_{way}"))}</button>'
    )


# ---- slides


def _slide(sheet: _Sheet, here: Sequence[Mapping[str, Any]]) -> str:
    """Boxes at their place on the slide; blocks without a place are listed below."""
    shape = sheet.shown.content.shape
    size = (shape.width, shape.height) if shape and shape.width and shape.height else _SLIDE
    shown = sheet.shown
    text_box = shape.text_box if shape else None
    page = ShownPage(shown.document_id, shown.document, shown.page or 1, shown.pages, size, text_box)
    boxes: dict[Rectangle | None, list[int]] = {}
    for at, block in enumerate(sheet.shown.content.blocks):
        boxes.setdefault(block.rectangle, []).append(at)
    loose = [at for at in boxes.pop(None, []) if not _is_number(sheet, at)]
    inside = "".join(_box(sheet, rectangle, blocks, size) for rectangle, blocks in boxes.items() if rectangle)
    below = ""
    if loose:
        texts = "".join(_piece(sheet, at) for at in loose)
        below = f'<div class="p-slide-notes"><h3>{escaped(sheet.words("evidence.notes"))}</h3>{texts}</div>'
    drawn = f'<div class="p-slide" style="aspect-ratio:{size[0]:.1f}/{size[1]:.1f}">{inside}</div>'
    return paper(page, drawn, tabs(page, here, sheet.open_number, sheet.words, sheet.message_id), below=below)


def _is_number(sheet: _Sheet, at: int) -> bool:
    """Whether a block is the number that heads a slide without a title; it is not on the slide."""
    block = sheet.shown.content.blocks[at]
    return block.kind == "heading" and block.text == str(sheet.shown.page)


def _box(sheet: _Sheet, rectangle: Rectangle, blocks: Sequence[int], size: tuple[float, float]) -> str:
    x0, y0, x1, y1 = rectangle
    width, height = size
    some = [sheet.shown.content.blocks[at] for at in blocks]
    points = _fitting(some, x1 - x0, y1 - y0)
    place = (
        f"left:{x0 / width:.2%};top:{y0 / height:.2%};width:{(x1 - x0) / width:.2%};"
        f"min-height:{(y1 - y0) / height:.2%};font-size:{100 * points / width:.3f}cqw"
    )
    return f'<div class="p-box" style="{place}">{"".join(_piece(sheet, at) for at in blocks)}</div>'


def _piece(sheet: _Sheet, at: int) -> str:
    block = sheet.shown.content.blocks[at]
    units = [number for number, unit in enumerate(sheet.units) if unit.block == at]
    if block.cells:
        return _table(sheet, block, units)
    if picture := _picture(sheet, block):  # on a slide it takes all of its place
        return picture
    return f'<p class="p-{block.kind}" dir="auto">{sheet.text(units[0])}</p>'


def _fitting(blocks: Sequence[Block], width: float, height: float) -> float:
    """The largest font size, in points, at which the text fits its box; files do not always tell it."""
    smallest, points = _LETTERS
    points = _TITLE if blocks[0].kind == "heading" else points
    while points > smallest and sum(_height(block, points, width) for block in blocks) > height:
        points -= 1.0
    return points


def _height(block: Block, points: float, width: float) -> float:
    if block.cells:
        columns = max(map(len, block.cells))
        cell = max(width / columns - points, points)
        rows = (max(_rows(text, points, cell) for text in row) for row in block.cells if row)
        return sum((lines * _LINE + 0.5) * points for lines in rows)
    return sum(_rows(line, points, width - points) for line in block.text.split("\n")) * _LINE * points


def _rows(text: str, points: float, width: float) -> int:
    return max(1, ceil(text_width(text) * points / max(width, 1.0)))
