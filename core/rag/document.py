"""The values of this package: what a parser gives, what is stored, and what a search finds.

Pages count from 1. Rectangles are `(x0, y0, x1, y1)` in points (1/72 inch) from the top left corner of the page as it
is displayed, so rotation and crop box are already taken into account.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from core.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Rectangle: TypeAlias = tuple[float, float, float, float]
WordRow: TypeAlias = tuple[int, int, str, tuple[int, ...]]
"""Words of the same height: the upper and the lower edge, the words on lines, of each where it begins and ends."""
_SAME_EDGE = 3.0  # points
_CLOSE = 0.2  # of a line's height: the white between lines further apart is not marked
_SLIDES = frozenset({".pptx", ".pptm", ".ppsx", ".ppt", ".pps"})
# Of a table in a text no part is numbered: one whose parts are is a workbook under another name.
_SHEETS = frozenset({".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".csv", ".tsv"})
BlockKind: TypeAlias = Literal["heading", "paragraph", "table", "code", "figure"]


def union(rectangles: tuple[Rectangle, ...]) -> Rectangle | None:
    """The smallest rectangle around all of them, or `None` around none."""
    if not rectangles:
        return None
    lefts, tops, rights, bottoms = zip(*rectangles, strict=True)
    return (min(lefts), min(tops), max(rights), max(bottoms))


def strokes(lines: Iterable[Rectangle]) -> tuple[Rectangle, ...]:
    """Printed lines as highlights: without overlaps, close lines of the same width joined."""
    found: list[Rectangle] = []
    for left, top, right, bottom in lines:
        start = top
        if found:
            x0, y0, x1, y1 = found.pop()
            below = y0 < top and top - y1 < _CLOSE * (bottom - top)
            if below and abs(x0 - left) < _SAME_EDGE and abs(x1 - right) < _SAME_EDGE:
                found.append((min(x0, left), y0, max(x1, right), bottom))
                continue
            if below and y1 > top and x0 < right and left < x1:  # the boxes of lines reach into each other
                y1 = start = round((top + y1) / 2, 2)
            found.append((x0, y0, x1, y1))
        found.append((left, start, right, bottom))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Block:
    """One heading, paragraph, table, listing or figure, in reading order.

    Args:
        text: Its words; a table's rows on lines, cells parted by " | ".
        page: The page it stands on, `None` where a format has no pages.
        lines: Where each printed line starts in `text`, and where it stands on the page.
        level: 1 to 6 for a heading, else 0.
        cells: The rows of a table; the first is its header.
        columns: Where each column of a table begins and ends on the page, in points from the left; none where it is not
            known.
        source: Where the picture of a figure is: "place" for its first place on the page, "page" for all of the page,
            else the name of a part of the file. "" for what is no figure, or none that can be drawn.
    """

    kind: BlockKind
    text: str
    page: int | None = None
    lines: tuple[tuple[int, Rectangle], ...] = ()
    level: int = 0
    cells: tuple[tuple[str, ...], ...] = ()
    columns: tuple[tuple[float, float], ...] = ()
    source: str = ""

    @property
    def rectangle(self) -> Rectangle | None:
        """The smallest rectangle around the whole block."""
        return union(tuple(rectangle for _, rectangle in self.lines))

    def rectangles_of(self, start: int, end: int) -> tuple[Rectangle, ...]:
        """The places of the printed lines that hold `text[start:end]`; those set as one column are one place.

        Of a figure, whose words have no lines, all of its places.
        """
        if self.kind == "figure":
            return strokes(rectangle for _, rectangle in self.lines)
        ends = [*(line_start for line_start, _ in self.lines[1:]), len(self.text)]
        touched = (
            rectangle
            for (line_start, rectangle), line_end in zip(self.lines, ends, strict=True)
            if line_start < end and start < line_end
        )
        return strokes(touched) if self.lines else ()


def block_values(block: Block) -> list[Any]:
    """A block as values of JSON. A table's text is its cells, and is left out: a sheet may have a million rows."""
    text = "" if block.cells else block.text
    values = [block.kind, text, block.page, block.lines, block.level, block.cells, block.columns]
    return [*values, block.source] if block.source else values


def block_from(values: Sequence[Any]) -> Block:
    """A block of such values; older ones have no columns, most have no source. Raises ValueError, TypeError."""
    kind, text, page, lines, level, cells, *more = values
    rows: tuple[tuple[str, ...], ...] = tuple(map(tuple, cells))
    columns: tuple[tuple[float, float], ...] = tuple((begin, end) for begin, end in more[0]) if more else ()
    places = tuple((start, tuple(place)) for start, place in lines)
    source = str(more[1]) if len(more) > 1 else ""
    return Block(kind, "\n".join(map(row_text, rows)) if rows else text, page, places, level, rows, columns, source)


def table(rows: list[tuple[str, ...]], page: int | None = None) -> Block:
    """A table block; line breaks inside cells become spaces, so that a row stays a line."""
    cells = tuple(tuple(" ".join(cell.split()) for cell in row) for row in rows)
    return Block("table", "\n".join(map(row_text, cells)), page, cells=cells)


def row_text(row: tuple[str, ...]) -> str:
    """A table row on one line."""
    return " | ".join(row)


def numbered_as(document: str) -> Literal["page", "slide", "sheet"]:
    """What the numbered parts of a document are called, by its name."""
    ending = PurePath(document).suffix.lower()
    return "slide" if ending in _SLIDES else "sheet" if ending in _SHEETS else "page"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a document: a picture, a chart or a drawing on a page, or a page that is a picture.

    Args:
        number: In its document, from 1.
        label: What its caption calls it, such as "figure 3" or "table 2-1"; "" where it has no name.
        caption: "" where it has none.
        place: Where it is on the page, in points; `None` for all of the page, and where a format has no pages.
        source: As of `Block`.
    """

    document_id: str
    document: str
    number: int
    page: int | None
    label: str
    caption: str
    place: Rectangle | None
    source: str


class Heading(NamedTuple):
    """A heading of a document.

    Args:
        level: 1 for the outermost.
        page: Where it stands first, from 1; `None` where there are no pages.
    """

    level: int
    text: str
    page: int | None


@dataclass(frozen=True, slots=True)
class PageShape:
    """A page's size as displayed and the box around its text, in points.

    Args:
        letters: Its words with their places, as of `page_letters.packed`; `None` where that is not known.
    """

    page: int
    width: float
    height: float
    text_box: Rectangle | None = None
    letters: tuple[WordRow, ...] | None = None


def shape_values(shape: PageShape) -> list[Any]:
    """A page's shape as values of JSON."""
    values = [shape.page, shape.width, shape.height, shape.text_box]
    return values if shape.letters is None else [*values, shape.letters]


def shape_from(values: Sequence[Any]) -> PageShape:
    """A page's shape of such values; older ones have no letters. Raises ValueError, TypeError."""
    page, width, height, box, *more = values
    return PageShape(page, width, height, tuple(box) if box else None, letters_from(more[0]) if more else None)


def letters_from(rows: Iterable[Sequence[Any]]) -> tuple[WordRow, ...]:
    """The letters of a page of values of JSON. Raises ValueError, TypeError."""
    return tuple((top, bottom, texts, tuple(edges)) for top, bottom, texts, edges in rows)


_TIME = re.compile(r"^(\d{1,4}):([0-5]\d):([0-5]\d) ", re.MULTILINE)


def seconds_in(text: str, until: int | None = None) -> tuple[int, int] | None:
    """The first and the last time that lines of a transcript begin with, in seconds; `None` where no line does.

    Args:
        until: Only lines that begin at this character or before it.
    """
    times = [
        int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3])
        for found in _TIME.finditer(text)
        if until is None or found.start() <= until
    ]
    return (times[0], times[-1]) if times else None


@dataclass(frozen=True, slots=True)
class About:
    """What a parser knows of the whole document; given before its blocks, and again at the end if something is missing.

    Args:
        left_out: Files in it that could not be read.
    """

    pages: int | None = None
    title: str = ""
    damaged: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document that is indexed and found as one.

    Args:
        page: The one page it stands on.
        heading: The headings above it, outermost first, parted by " > ".
        rectangles: Around the printed lines that it took words from.
        overlap: How many characters at the start of `text` the chunk before it has too.
    """

    text: str
    page: int | None = None
    heading: str = ""
    rectangles: tuple[Rectangle, ...] = ()
    overlap: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """A document in a library.

    Args:
        id: The SHA-256 of its bytes, in hexadecimal.
        name: For display only; never a path.
        status: `reading` while it is read: what is there is found already, and counted in `chunks`. `no_text` when it
            was read but holds no words, as a scan without text recognition does. `stopped` when somebody ended its
            reading: what was read until then is found, and the rest can be read later.
        note: Names a sentence of the page about it, such as "document_scanned"; empty when all is well.
        pages: How many it has; `None` where its format has no pages.
        size: Bytes.
        scanned: Pages or pictures in which words were recognised.
        tables: How many it holds.
        invisible: How many invisible characters were taken out of it.
    """

    id: str
    name: str
    media_type: str
    pages: int | None
    chunks: int
    status: Literal["reading", "ready", "stopped", "no_text"] = "ready"
    note: str = ""
    title: str = ""
    size: int = 0
    scanned: int = 0
    tables: int = 0
    seconds: float = 0.0
    invisible: int = 0


def required(document: Document | None) -> Document:
    """The document. Raises NotFoundError where there is none."""
    if document is None:
        raise NotFoundError("There is no such document.")
    return document


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that answers a question.

    Args:
        score: Higher is better; comparable within one search only.
        document: The document's name, for display.
        heading: The headings above it, outermost first, parted by " > ".
        url: Where it stands on the web, for one that is of no document in a library.
        rows: For a figure that was computed: the rows of the table that went in, such as "2–13, 15".
        computed: For a sentence that was counted or computed by program, and is printed nowhere: the figure that it
            tells, such as "10"; for which row has the highest value, what that row is called. It counts on the page
            only where it was found out here.
    """

    text: str
    score: float
    document: str
    document_id: str
    page: int | None = None
    rectangles: tuple[Rectangle, ...] = ()
    heading: str = ""
    chunk_id: int = 0
    url: str = ""
    rows: str = ""
    computed: str = ""

    @property
    def seconds(self) -> tuple[int, int] | None:
        """When what is said in it begins, and when its last line does; `None` for what is no transcript."""
        return seconds_in(self.text)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form of `extra["passages"]` of a message; `url`, `rows` and `computed` only where they are set."""
        more = {name: value for name in ("url", "rows", "computed") if (value := getattr(self, name))}
        return {
            "text": self.text,
            "score": self.score,
            "document": self.document,
            "document_id": self.document_id,
            "page": self.page,
            "rectangles": [list(rectangle) for rectangle in self.rectangles],
            "heading": self.heading,
            "chunk_id": self.chunk_id,
            **more,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Passage:
        """The passage that `as_dict` wrote.

        Raises:
            KeyError, TypeError, ValueError: The mapping is not such a form.
        """
        known = {name: values[name] for name in cls.__slots__ if name in values}
        return replace(cls(**known), rectangles=tuple(_rectangle(corners) for corners in values.get("rectangles", ())))


def _rectangle(corners: Any) -> Rectangle:
    x0, y0, x1, y1 = corners
    return (float(x0), float(y0), float(x1), float(y1))


@dataclass(frozen=True, slots=True)
class ReadingProgress:
    """The progress of reading a document.

    Args:
        document_id: The document's id in its library, the hash of its bytes.
        pages: Read so far; 0 where the format has none.
        total: How many it has, as soon as that is known; `None` where the format has none.
        scanned: Pages or pictures in which words were recognised.
        tables: Found so far.
        chunks: Those that a search finds already.
        seconds: Since reading began.
        fetching: Whether it is still being downloaded.
        invisible: Invisible characters removed.
        heard: Seconds of a recording that are text already.
        length: All of them, as soon as that is known.
        row: How far the reading of a long sheet is; 0 where none is being read.
        rows: All of its rows.
    """

    document_id: str
    pages: int = 0
    total: int | None = None
    scanned: int = 0
    tables: int = 0
    chunks: int = 0
    seconds: float = 0.0
    fetching: bool = False
    invisible: int = 0
    heard: float = 0.0
    length: float = 0.0
    row: int = 0
    rows: int = 0
