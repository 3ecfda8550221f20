"""PDF through pypdfium2, for those who cannot take the licence of PyMuPDF (AGPL): the same pages, the same places.

The library keeps no blocks: lines that stand close below each other in one font size are a paragraph. It also sorts
what stands on one line by its place on the page as displayed, which splits and mixes the lines of rotated text. So a
page is read with most of its letters upright, lines are joined there, and then their places are rotated back.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from contextlib import contextmanager, suppress
from ctypes import byref, c_double, c_float, c_ulong, c_ushort, create_string_buffer
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import islice, pairwise
from math import atan2, pi
from statistics import median
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError, LockedDocumentError, NotFoundError
from core.rag.document import union
from core.rag.parsers.base import clean
from core.rag.parsers.pdf import PdfParser
from core.rag.parsers.pdf_page import (
    MOST_FIELDS,
    MOST_XFA_BYTES,
    XFA_PARTS,
    Field,
    Line,
    Pixels,
    RawPage,
    highlighted,
    is_garbled,
    largest_share,
    locked_error,
    rotated,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from pathlib import Path

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_page import FieldKind, Runs, Source, Word

_PIXELS = 20_000_000
_MOST_PACKETS = 50  # parts of a form that is kept as XML; twelve are usual
_MOST_PICTURES = 1_000
_WRONG_PASSWORD = 4  # the library's number for it


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
            raise locked_error(password) from error
        raise BrokenDocumentError("The PDF is damaged.") from error
    try:
        if len(document) == 0:
            raise BrokenDocumentError("The PDF has no pages.")
        with suppress(library.PdfiumError):  # before any page: else what is typed into its form is not drawn
            document.init_forms()
        yield document
    finally:
        document.close()


def picture(path: Path, number: int, zoom: float, marks: Sequence[Rectangle] = (), password: str = "") -> bytes:
    """A page as PNG, with the places of `marks` (points, as displayed) highlighted.

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
        samples = highlighted(drawn.samples, drawn.width, drawn.height, marks, zoom) if marks else drawn.samples
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
    """An open PDF."""

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

    def was_repaired(self) -> bool:
        """Not known: the library repairs silently."""
        return False

    def has_lost_content(self) -> bool:
        """Not known either."""
        return False

    def has_images(self) -> bool:
        """Whether any of the first pages shows an image."""
        pages = (_page(self._document, number) for number in range(1, min(20, self.count) + 1))
        return any(_image_share(page, View(page)) for page in pages if page)

    def form_packets(self) -> dict[str, bytes]:
        """The parts of a form that is kept as XML."""
        return _form_packets(self._document.raw)

    def page(self, number: int) -> RawPage | None:
        """A page, counted from 1; `None` if it is damaged."""
        page = _page(self._document, number)
        if page is None:
            return None
        wide, high = page.get_size()
        text = Text(page)
        lines = [line for line in text.lines() if line]
        readable = [line for line in lines if not is_garbled(line.text)]
        return RawPage(
            round(wide, 2),
            round(high, 2),
            text.runs(readable),
            [box for raw in straight(page) if (box := text.view.shown(raw))],
            words=text.words,
            letters=text.letters,
            image_share=partial(_image_share, page, text.view),
            pixels=partial(_pixels, page),
            is_garbled=len(readable) < len(lines),
            rotation=text.rotation,
            pictures=partial(_pictures, page, text.view),
            fields=partial(fields, self._document, page, text.view),
            strokes=[box for raw in slanted(page) if (box := text.view.shown(raw))],
        )


def _form_packets(document: Any) -> dict[str, bytes]:
    raw: Any = import_module("pypdfium2.raw")
    packets: dict[str, bytes] = {}
    for at in range(min(_MOST_PACKETS, raw.FPDF_GetXFAPacketCount(document))):
        name = create_string_buffer(max(1, raw.FPDF_GetXFAPacketName(document, at, None, 0)))
        raw.FPDF_GetXFAPacketName(document, at, name, len(name))
        told = name.value.decode("utf-8", "replace")
        size = c_ulong()
        if told not in XFA_PARTS or not raw.FPDF_GetXFAPacketContent(document, at, None, 0, byref(size)):
            continue
        if size.value <= MOST_XFA_BYTES:
            content = create_string_buffer(max(1, size.value))
            raw.FPDF_GetXFAPacketContent(document, at, content, size.value, byref(size))
            packets[told] = content.raw[: size.value]
    return packets


def _image_share(page: Any, view: View) -> float:
    return largest_share(_pictures(page, view), view.width, view.height)


def _pictures(page: Any, view: View) -> list[Rectangle]:
    """The boxes of the images on a page."""
    kinds: Any = import_module("pypdfium2.raw")
    found = page.get_objects(filter=[kinds.FPDF_PAGEOBJ_IMAGE])
    boxes = (view.shown(one.get_bounds()) for one in islice(found, _MOST_PICTURES))
    return [box for box in boxes if box]


_BOLD = 600
_GAP, _WIDE = 0.6, 1.5  # line heights that are and are not between lines of a paragraph
_MORE = 1.25  # times the usual gap
_FAR = 2.0  # line heights between words that belong to different columns
_HYPHENS = str.maketrans({"\x02": "-", "\ufffe": "-", "\t": " "})
_WORD = re.compile(r"[^\s\x02\ufffe]+")  # a word that goes on in the next line is two
_ASKED = 200  # letters of a page, which way round they stand


class View:
    """From the page's own coordinates, which start in its lower left corner, to those of the page as rotated now."""

    def __init__(self, page: Any) -> None:
        self._box = page.get_cropbox() or page.get_mediabox()
        self.rotation = int(page.get_rotation())
        self.width, self.height = page.get_size()

    def placed(self, box: Sequence[float]) -> Rectangle:
        """A box, even outside the page."""
        left, bottom, right, top = self._box
        upright = (box[0] - left, top - box[3], box[2] - left, top - box[1])
        return rotated(upright, self.rotation, right - left, top - bottom)

    def shown(self, box: Sequence[float]) -> Rectangle | None:
        """The visible part of a box; `None` if there is none."""
        x0, y0, x1, y1 = self.placed(box)
        x0, y0, x1, y1 = max(x0, 0.0), max(y0, 0.0), min(x1, self.width), min(y1, self.height)
        return (round(x0, 2), round(y0, 2), round(x1, 2), round(y1, 2)) if x0 < x1 and y0 < y1 else None


def _upright(page: Any) -> tuple[Any, View]:
    """The page's text, read with most of its letters upright, and the view of the page rotated so."""
    text, now = page.get_textpage(), page.get_rotation()
    rotation = _upright_rotation(text)
    if rotation is None or rotation == now:
        return text, View(page)
    text.close()
    page.set_rotation(rotation)
    try:
        return page.get_textpage(), View(page)
    finally:
        page.set_rotation(now)


def _upright_rotation(text: Any) -> int | None:
    """By how many degrees, clockwise, a page must be rotated for most of its letters to stand upright."""
    raw: Any = import_module("pypdfium2.raw")
    matrix = raw.FS_MATRIX()
    count = max(0, text.count_chars())
    rotations: Counter[int] = Counter()
    for at in range(0, count, count // _ASKED + 1):
        # Spaces and line breaks that the library inserts have no direction.
        if raw.FPDFText_IsGenerated(text, at) != 1 and raw.FPDFText_GetMatrix(text, at, matrix):
            rotations[round(atan2(matrix.b, matrix.a) / (pi / 2)) % 4 * 90] += 1
    return rotations.most_common(1)[0][0] if rotations else None


class Text:
    """The letters of a page."""

    def __init__(self, page: Any) -> None:
        self._raw: Any = import_module("pypdfium2.raw")
        self.view = View(page)
        self._page, self._reading = _upright(page)
        self.rotation = (self._reading.rotation - self.view.rotation) % 360
        self._count = max(0, self._page.count_chars())
        self._found: list[tuple[int, int]] = []

    def _text(self, start: int, count: int) -> str:
        return str(self._page.get_text_range(start, count)) if count > 0 else ""

    def lines(self) -> Iterator[Line | None]:
        """Each printed line with its upright place; words far from each other on one line are two lines."""
        for start, end in self._spans():
            for first, last in self._parted(start, end):
                yield self._line(first, last)

    def runs(self, lines: Sequence[Line]) -> Runs:
        """The paragraphs that lines make, with their places on the page as displayed."""
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

    def letters(self) -> list[Word]:
        """Every word with a box around its first and its last letter."""
        found: list[Word] = []
        for start, end in self._spans():
            text = self._text(start, end - start)
            if len(text) != end - start:  # letters of two code units
                text = "".join(self._letter(at) for at in range(start, end))
            for word in _WORD.finditer(text):
                ends = [self._loose_box(start + at) for at in {word.start(), word.end() - 1}]
                around = union(tuple(box for box in ends if box))
                if around and (box := self._reading.shown(around)):
                    found.append((*self._shown(box), clean(word[0].translate(_HYPHENS))))
        return found

    def _loose_box(self, at: int) -> Rectangle | None:
        """A letter's box, as wide as its step and as high as its font, in the page's own coordinates."""
        rect = self._raw.FS_RECTF()
        if self._raw.FPDFText_GetLooseCharBox(self._page, at, rect) and rect.right > rect.left:
            return (rect.left, rect.bottom, rect.right, rect.top)
        return None

    def _shown(self, box: Rectangle) -> Rectangle:
        """An upright box as displayed."""
        return rotated(box, -self.rotation, self._reading.width, self._reading.height)

    def _letter(self, at: int) -> str:
        return chr(self._raw.FPDFText_GetUnicode(self._page, at) or 32)

    def _spans(self) -> list[tuple[int, int]]:
        """Start and end of each line; the library puts a line break between them."""
        if not self._found:
            self._found = list(self._parted_lines())
        return self._found

    def _parted_lines(self) -> Iterator[tuple[int, int]]:
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
        """The enlargement of a letter: some programs use font size 1 and scale it."""
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
        """The upright box around letters, as high as their font: small letters are highlighted like any other."""
        boxes: list[Rectangle] = []
        count = self._raw.FPDFText_CountRects(self._page, start, end - start)
        for index in range(count):
            left, top, right, bottom = c_double(), c_double(), c_double(), c_double()
            if self._raw.FPDFText_GetRect(self._page, index, left, top, right, bottom):
                boxes.append((left.value, bottom.value, right.value, top.value))
        boxes += [box for at in {start, end - 1} if (box := self._loose_box(at))]
        around = union(tuple(boxes))
        return self._reading.shown(around) if around else None


def _paragraphs(lines: Sequence[Line]) -> Runs:
    """Lines in runs, parted where the gap is larger than is usual on the page."""
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
    """The gap between two lines in line heights; `None` if they cannot belong to one paragraph."""
    x0, top, x1, bottom = before.rectangle
    left, y0, right, y1 = line.rectangle
    height = max(bottom - top, y1 - y0)
    if abs(before.size - line.size) > 0.1 * line.size or left >= x1 or right <= x0:
        return None
    gap = (y0 - bottom) / height
    return gap if y1 > bottom and gap > -_GAP else None


_FIELDS: dict[str, FieldKind] = {
    "FPDF_FORMFIELD_CHECKBOX": "check",
    "FPDF_FORMFIELD_RADIOBUTTON": "radio",
    "FPDF_FORMFIELD_COMBOBOX": "choice",
    "FPDF_FORMFIELD_LISTBOX": "choice",
    "FPDF_FORMFIELD_TEXTFIELD": "text",
    "FPDF_FORMFIELD_SIGNATURE": "signature",
}


def fields(document: Any, page: Any, view: View) -> list[Field]:
    """The fields of a form on a page; buttons that do something are none."""
    raw: Any = import_module("pypdfium2.raw")
    form = getattr(document.formenv, "raw", None)
    if form is None:
        return []
    kinds: dict[int, FieldKind] = {int(getattr(raw, name)): kind for name, kind in _FIELDS.items()}
    found: list[Field] = []
    for index in range(min(MOST_FIELDS, max(0, raw.FPDFPage_GetAnnotCount(page.raw)))):
        one = raw.FPDFPage_GetAnnot(page.raw, index)
        if not one:
            continue
        try:
            kind = kinds.get(raw.FPDFAnnot_GetFormFieldType(form, one))
            box = raw.FS_RECTF()
            if kind is None or not raw.FPDFAnnot_GetRect(one, box):
                continue
            if place := view.shown((box.left, min(box.bottom, box.top), box.right, max(box.bottom, box.top))):
                found.append(_field(raw, form, one, kind, place))
        finally:
            raw.FPDFPage_CloseAnnot(one)
    return found


def _field(raw: Any, form: Any, one: Any, kind: FieldKind, place: Rectangle) -> Field:
    def text(ask: Any, *which: int) -> str:
        size = int(ask(form, one, *which, None, 0))
        buffer = (c_ushort * (size // 2 + 1))()
        ask(form, one, *which, buffer, size)
        return bytes(buffer)[: max(0, size - 2)].decode("utf-16-le", errors="replace")

    count = max(0, raw.FPDFAnnot_GetOptionCount(form, one)) if kind == "choice" else 0
    options = tuple(text(raw.FPDFAnnot_GetOptionLabel, at) for at in range(min(count, _MOST_OPTIONS)))
    value = text(raw.FPDFAnnot_GetFormFieldValue)
    on = bool(value) if kind == "signature" else bool(raw.FPDFAnnot_IsChecked(form, one))
    name, told = text(raw.FPDFAnnot_GetFormFieldName), text(raw.FPDFAnnot_GetFormFieldAlternateName)
    return Field(name, told, kind, value, on, options, place)


_MOST_OPTIONS = 200
_MOST_OBJECTS, _MOST_SEGMENTS = 20_000, 4_000
_HAIR = 0.1  # points: a line has a place, so it has a thickness
_STRAIGHT = 0.5  # points off a straight line

_Point = tuple[float, float]


def straight(page: Any) -> Iterator[Rectangle]:
    """Horizontal and vertical lines as thin boxes: left, bottom, right and top in the page's own coordinates."""
    raw: Any = import_module("pypdfium2.raw")
    for number, found in enumerate(page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=1)):
        if number >= _MOST_OBJECTS:
            return
        for (ax, ay), (bx, by) in _segments(raw, found.raw):
            if abs(ax - bx) <= _STRAIGHT or abs(ay - by) <= _STRAIGHT:
                yield (min(ax, bx) - _HAIR, min(ay, by) - _HAIR, max(ax, bx) + _HAIR, max(ay, by) + _HAIR)


def slanted(page: Any) -> Iterator[Rectangle]:
    """The boxes of what is drawn with curves or slanted lines, as of `straight`."""
    raw: Any = import_module("pypdfium2.raw")
    for number, found in enumerate(page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=2)):
        if number >= _MOST_OBJECTS:
            return
        segments = range(min(_MOST_SEGMENTS, raw.FPDFPath_CountSegments(found.raw)))
        kinds = {raw.FPDFPathSegment_GetType(raw.FPDFPath_GetPathSegment(found.raw, at)) for at in segments}
        lines = _segments(raw, found.raw)
        curved = raw.FPDF_SEGMENT_BEZIERTO in kinds
        if curved or any(abs(ax - bx) > _STRAIGHT and abs(ay - by) > _STRAIGHT for (ax, ay), (bx, by) in lines):
            left, bottom, right, top = found.get_bounds()
            yield (left - _HAIR, bottom - _HAIR, right + _HAIR, top + _HAIR)


def _segments(raw: Any, path: Any) -> Iterator[tuple[_Point, _Point]]:
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(path, matrix)
    x, y = c_float(), c_float()
    first = last = (0.0, 0.0)
    for index in range(min(_MOST_SEGMENTS, raw.FPDFPath_CountSegments(path))):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        if not raw.FPDFPathSegment_GetPoint(segment, x, y):
            continue
        here = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            first = here
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield last, here
        if raw.FPDFPathSegment_GetClose(segment):
            yield here, first
        last = here


class PdfiumParser(PdfParser):
    """Reads the same as `PdfParser` with pypdfium2 (BSD and Apache licences)."""

    _source = staticmethod(source)
