"""PDF through pypdfium2, for those who cannot take the licence of PyMuPDF (AGPL): the same pages, the same places.

The library keeps no blocks: lines that stand close below each other in letters of one size are a paragraph.
"""

from __future__ import annotations

import io
from contextlib import contextmanager
from ctypes import c_double, c_float
from functools import partial
from importlib import import_module
from itertools import islice, pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError, LockedDocumentError, NotFoundError
from core.rag.document import union
from core.rag.parsers.base import clean
from core.rag.parsers.marker import marked
from core.rag.parsers.pdf_headings import Line
from core.rag.parsers.pdf_page import Pixels, RawPage, is_garbled, largest, locked
from core.rag.parsers.pdfium_paths import straight

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_margins import Runs
    from core.rag.parsers.pdf_page import Source
    from core.rag.parsers.pdf_tables import Word

_PIXELS = 20_000_000
_MOST_PICTURES = 1_000
_WRONG_PASSWORD = 4  # the library's number for it
_BOLD = 600
_GAP, _WIDE = 0.6, 1.5  # line heights that are and are not between lines of a paragraph
_MORE = 1.25  # times the usual gap
_FAR = 2.0  # line heights between words that belong to different columns
_HYPHENS = str.maketrans({"\x02": "-", "\ufffe": "-", "\t": " "})


@contextmanager
def source(path: Path, password: str) -> Generator[Source]:
    """The open PDF.

    Raises:
        LockedDocumentError: It asks for a password, or for another one (key `document_password_wrong`).
        BrokenDocumentError: It is damaged, or has no pages.
    """
    with _opened(path, password) as document:
        yield Pdfium(document)


@contextmanager
def _opened(path: Path, password: str) -> Generator[Any]:
    library: Any = import_module("pypdfium2")
    try:
        document = library.PdfDocument(str(path), password=password or None)
    except library.PdfiumError as error:
        if getattr(error, "err_code", None) == _WRONG_PASSWORD:
            raise locked(password) from error
        raise BrokenDocumentError("The PDF is damaged.") from error
    try:
        if len(document) == 0:
            raise BrokenDocumentError("The PDF has no pages.")
        yield document
    finally:
        document.close()


def picture(path: Path, number: int, zoom: float, marks: Sequence[Rectangle] = (), password: str = "") -> bytes:
    """A page as PNG, with the places of `marks` (points, as displayed) under the marker pen.

    Raises:
        NotFoundError: There is no such page.
        LockedDocumentError: It asks for a password, or for another one.
        BrokenDocumentError: The page cannot be drawn.
    """
    from PIL import Image

    with _opened(path, password) as document:
        page = _page(document, number) if 1 <= number <= len(document) else None
        if page is None:
            raise NotFoundError(f"There is no page {number} to draw.")
        wide, high = page.get_size()
        zoom = min(zoom, (_PIXELS / max(1.0, wide * high)) ** 0.5)
        drawn = _pixels(page, zoom)
        samples = marked(drawn.samples, drawn.width, drawn.height, marks, zoom) if marks else drawn.samples
        out = io.BytesIO()
        Image.frombytes("RGB", (drawn.width, drawn.height), samples).save(out, "PNG")
        return out.getvalue()


def unlock(path: Path, target: Path, password: str) -> bool:
    """Write a copy that asks for no password; whether the document asks for one at all, else nothing is written.

    Raises:
        LockedDocumentError: It is not this one.
        BrokenDocumentError: It is damaged.
    """
    try:
        with _opened(path, ""):
            return False
    except LockedDocumentError:
        with _opened(path, password) as document:
            document.save(str(target), flags=import_module("pypdfium2.raw").FPDF_REMOVE_SECURITY)
            return True


def _page(document: Any, number: int) -> Any | None:
    try:
        return document[number - 1]
    except import_module("pypdfium2").PdfiumError:
        return None


def _pixels(page: Any, zoom: float) -> Pixels:
    drawn = page.render(scale=zoom, may_draw_forms=True).to_pil().convert("RGB")
    return Pixels(drawn.width, drawn.height, drawn.tobytes())


class Pdfium:
    """An open PDF.

    Args:
        document: The library's document.
    """

    def __init__(self, document: Any) -> None:
        self._document = document
        self.count = len(document)
        self.title = str(document.get_metadata_dict().get("Title") or "")

    def outline(self) -> list[tuple[int, str, int]]:
        """The bookmarks that lead to a page."""
        found: list[tuple[int, str, int]] = []
        for mark in self._document.get_toc():
            target = mark.get_dest()
            index = target.get_index() if target else None
            if index is not None:
                found.append((mark.level + 1, clean(mark.get_title()), index + 1))
        return found

    def is_mended(self) -> bool:
        """The library mends without a word."""
        return False

    def has_pictures(self) -> bool:
        """Whether any of the first pages shows a picture."""
        pages = (_page(self._document, number) for number in range(1, min(20, self.count) + 1))
        return any(_pictured(page, _View(page)) for page in pages if page)

    def page(self, number: int) -> RawPage | None:
        """A page, counted from 1; `None` if it is damaged."""
        page = _page(self._document, number)
        if page is None:
            return None
        wide, high = page.get_size()
        text = _Text(page)
        lines = [line for line in text.lines() if line]
        readable = [line for line in lines if not is_garbled(line.text)]
        return RawPage(
            round(wide, 2),
            round(high, 2),
            _paragraphs(readable),
            [box for raw in straight(page) if (box := text.view.shown(raw))],
            words=text.words,
            pictured=partial(_pictured, page, text.view),
            pixels=partial(_pixels, page),
            is_garbled=len(readable) < len(lines),
        )


def _pictured(page: Any, view: _View) -> float:
    kinds: Any = import_module("pypdfium2.raw")
    found = page.get_objects(filter=[kinds.FPDF_PAGEOBJ_IMAGE])
    boxes = [view.shown(one.get_bounds()) for one in islice(found, _MOST_PICTURES)]
    return largest([box for box in boxes if box], view.width, view.height)


class _View:
    """From the page's own measures, which count from its lower left corner, to those of the page as displayed."""

    def __init__(self, page: Any) -> None:
        self._box = page.get_cropbox() or page.get_mediabox()
        self._turn = page.get_rotation() % 360
        self.width, self.height = page.get_size()

    def shown(self, box: Sequence[float]) -> Rectangle | None:
        left, bottom, right, top = self._box
        x0, y0, x1, y1 = box[0] - left, top - box[3], box[2] - left, top - box[1]
        wide, high = right - left, top - bottom
        match self._turn:
            case 90:
                x0, y0, x1, y1 = high - y1, x0, high - y0, x1
            case 180:
                x0, y0, x1, y1 = wide - x1, high - y1, wide - x0, high - y0
            case 270:
                x0, y0, x1, y1 = y0, wide - x1, y1, wide - x0
            case _:
                pass
        x0, y0, x1, y1 = max(x0, 0.0), max(y0, 0.0), min(x1, self.width), min(y1, self.height)
        return (round(x0, 2), round(y0, 2), round(x1, 2), round(y1, 2)) if x0 < x1 and y0 < y1 else None


class _Text:
    """The letters of a page."""

    def __init__(self, page: Any) -> None:
        self._raw: Any = import_module("pypdfium2.raw")
        self._page = page.get_textpage()
        self.view = _View(page)
        self._count = max(0, self._page.count_chars())

    def _text(self, start: int, count: int) -> str:
        return str(self._page.get_text_range(start, count)) if count > 0 else ""

    def lines(self) -> Iterator[Line | None]:
        """Each printed line; words far from each other on one line are two."""
        for start, end in self._spans():
            for first, last in self._parted(start, end):
                yield self._line(first, last)

    def words(self) -> list[Word]:
        """Every word with its box."""
        found: list[Word] = []
        for start, end in self._spans():
            first = start
            for at in range(start, end + 1):
                if at == end or self._letter(at).isspace():
                    box = self._box(first, at) if at > first else None
                    if box:
                        found.append((*box, clean(self._text(first, at - first).translate(_HYPHENS))))
                    first = at + 1
        return found

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
            if before and box[0] - before[2] > _FAR * max(box[3] - box[1], before[3] - before[1]):
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

    def _letter_box(self, at: int) -> tuple[float, float, float, float] | None:
        left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
        if not self._raw.FPDFText_GetCharBox(self._page, at, left, right, bottom, top):
            return None
        return (left.value, bottom.value, right.value, top.value)

    def _box(self, start: int, end: int) -> Rectangle | None:
        """Around letters, as high as their font, so that a line of small letters is marked like any other."""
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
        return self.view.shown(around) if around else None


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
