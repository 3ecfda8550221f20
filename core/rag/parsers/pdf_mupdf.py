"""PDF through PyMuPDF: opening, reading and rendering pages. Runs in the worker process only."""

from __future__ import annotations

import re
import sys
import zlib
from collections import Counter
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from math import atan2, pi, prod
from typing import TYPE_CHECKING, Any, cast

from core.errors import BrokenDocumentError, NotFoundError
from core.rag.parsers.base import clean
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
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_page import FieldKind, Runs, Source, Word

_PIXELS = 20_000_000  # a picture; a poster's zoom is lowered until it fits
# How many bytes one byte of a stream can become; those of text need not be unfolded to be bounded.
_GROWTH = {"ASCIIHexDecode": 1, "ASCII85Decode": 4, "RunLengthDecode": 128}
_GROWTH_UNKNOWN = 1_500


def pymupdf() -> Any:
    """The library, as the untyped thing that it is."""
    # Its version 2 loads a neural network for layouts when it is imported (a second, 300 MB); nothing here uses it.
    sys.modules.setdefault("pymupdf.layout", None)  # pyright: ignore[reportArgumentType]
    return import_module("pymupdf")


@contextmanager
def translated_errors(message: str) -> Generator[None]:
    """What the library raises about a file becomes our error; lack of memory does not: the file may be sound.

    Raises:
        BrokenDocumentError: With this message.
    """
    errors = pymupdf().mupdf
    try:
        yield
    except errors.FzErrorSystem:
        raise
    except (errors.FzErrorBase, RuntimeError, ValueError, IndexError) as error:
        raise BrokenDocumentError(message) from error


@contextmanager
def opened(path: Path, password: str = "") -> Generator[Any]:
    """The open document.

    Raises:
        LockedDocumentError: It asks for a password, or for another one (key `document_password_wrong`).
        BrokenDocumentError: It is damaged.
    """
    library = pymupdf()
    library.TOOLS.mupdf_display_errors(False)  # noqa: FBT003
    library.TOOLS.mupdf_display_warnings(False)  # noqa: FBT003
    library.TOOLS.reset_mupdf_warnings()
    with translated_errors("The PDF is damaged."):
        document = library.open(path, filetype="pdf")
    with document:
        if document.needs_pass and not (password and document.authenticate(password)):
            raise locked_error(password)
        with translated_errors("The PDF is damaged."):
            count = len(document)
        if count == 0:
            raise BrokenDocumentError("The PDF has no pages.")
        yield document


def warnings() -> str:
    """The library's warnings since the document was opened, on lines."""
    return str(pymupdf().TOOLS.mupdf_warnings())


def unlock(path: Path, target: Path, password: str) -> bool:
    """Write a copy that asks for no password; whether the document asks for one at all, else nothing is written.

    Raises:
        LockedDocumentError: It is not this one.
        BrokenDocumentError: It is damaged.
    """
    with opened(path, password) as document:
        if not document.needs_pass:
            return False
        # `needs_pass` tries the empty password, which locks the document again.
        document.authenticate(password)
        with translated_errors("The PDF is damaged."):
            document.save(target, encryption=pymupdf().PDF_ENCRYPT_NONE)
        return True


def page_of(document: Any, number: int) -> Any | None:
    """A page, counted from 1, or `None` if it is damaged."""
    try:
        with translated_errors(f"Page {number} is damaged."):
            return document[number - 1]
    except BrokenDocumentError:
        return None


class View:
    """A page as it is displayed: rotated, and cropped to what is visible.

    Plain numbers, for there are many lines on a page, and the library's own rectangles cost more than reading it.
    """

    def __init__(self, page: Any) -> None:
        rect = page.rect
        self.width, self.height = float(rect.width), float(rect.height)
        self.rotation = int(page.rotation)
        self._turn: tuple[float, ...] | None = tuple(page.rotation_matrix) if page.rotation else None

    def shown(self, box: Sequence[float], edge: float = 0.0) -> Rectangle | None:
        """A box of the page's own coordinates as displayed, widened by `edge`; `None` if it is not visible."""
        x0, y0, x1, y1 = box
        x0, y0, x1, y1 = x0 - edge, y0 - edge, x1 + edge, y1 + edge
        if self._turn:
            a, b, c, d, e, f = self._turn
            x0, y0, x1, y1 = a * x0 + c * y0 + e, b * x0 + d * y0 + f, a * x1 + c * y1 + e, b * x1 + d * y1 + f
            x0, x1, y0, y1 = min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1)
        x0, y0, x1, y1 = max(x0, 0.0), max(y0, 0.0), min(x1, self.width), min(y1, self.height)
        return (round(x0, 2), round(y0, 2), round(x1, 2), round(y1, 2)) if x0 < x1 and y0 < y1 else None


def picture(path: Path, number: int, zoom: float, marks: Sequence[Rectangle] = (), password: str = "") -> bytes:
    """A page as PNG, with the places of `marks` (points, as displayed) highlighted.

    Raises:
        NotFoundError: There is no such page.
        LockedDocumentError: It asks for a password, or for another one.
        BrokenDocumentError: The page cannot be drawn.
    """
    with opened(path, password) as document:
        page = page_of(document, number) if 1 <= number <= len(document) else None
        if page is None:
            raise NotFoundError(f"There is no page {number} to draw.")
        area = max(1.0, page.rect.width * page.rect.height)
        fitting = min(zoom, (_PIXELS / area) ** 0.5)
        with translated_errors(f"Page {number} of the PDF is damaged."):
            drawn = page.get_pixmap(matrix=pymupdf().Matrix(fitting, fitting), alpha=False, annots=True)
        if not marks:
            return drawn.tobytes("png")
        samples = highlighted(drawn.samples, drawn.width, drawn.height, marks, fitting)
        return pymupdf().Pixmap(pymupdf().csRGB, drawn.width, drawn.height, samples, False).tobytes("png")  # noqa: FBT003


_BOLD = 1 << 4
_DRAWING = 3  # the library's name for a block that is no text
_HAIR = 0.1  # points: the thickness given to lines without one
# In font sizes, as in the library.
_SAME_LINE, _NEXT_LINE = 0.8, 1.4
_SAME_WORD, _SAME_SENTENCE = 0.15, 0.8
_ABOUT_XREF = re.compile(
    r"format error: cannot recognize xref format|trying to repair broken xref|repairing PDF document"
    r"|syntax error: expected (?:object|generation) number|garbage bytes before version marker"
)


@contextmanager
def source(path: Path, password: str) -> Generator[Source]:
    """An open PDF; errors as in `opened`."""
    with opened(path, password) as document:
        yield MuPdf(document)


class MuPdf:
    """An open PDF, read with PyMuPDF."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self.count = len(document)
        properties: dict[str, Any] = document.metadata or {}
        self.title = str(properties.get("title") or "")
        self._is_form = bool(document.is_form_pdf)

    def outline(self) -> list[tuple[int, str, int]]:
        """The bookmarks; none if they are damaged, which is no reason to refuse the document."""
        try:
            with translated_errors("The bookmarks are damaged."):
                found: list[Any] = self._document.get_toc(simple=True)
                return [(int(level), clean(title), int(page)) for level, title, page in found]
        except (BrokenDocumentError, TypeError, KeyError):
            return []

    def was_repaired(self) -> bool:
        """Whether the library had to repair it."""
        return bool(self._document.is_repaired)

    def has_lost_content(self) -> bool:
        """Whether the library warned of more than the cross-reference table, which it rebuilds completely."""
        warned = warnings().splitlines() if self.was_repaired() else []
        return not all(map(_ABOUT_XREF.match, warned))

    def has_images(self) -> bool:
        """Whether any of the first pages shows an image."""
        try:
            with translated_errors("The list of pictures is damaged."):
                return any(self._document.get_page_images(index) for index in range(min(20, self.count)))
        except BrokenDocumentError:
            return False

    def form_packets(self) -> dict[str, bytes]:
        """The parts of a form that is kept as XML."""
        try:
            with translated_errors("The form is damaged."):
                return _form_packets(self._document)
        except BrokenDocumentError:
            return {}

    def page(self, number: int) -> RawPage | None:
        """A page, counted from 1; `None` if it is damaged."""
        page = page_of(self._document, number)
        if page is None:
            return None
        view = View(page)
        reading, texts, drawn, strokes = _read(page, view)
        runs: Runs = []
        garbled = False
        for block in texts:
            lines = [line for line in (_line(one, view) for one in block["lines"]) if line]
            if lines and is_garbled("".join([line.text for line in lines])):
                garbled = True
            elif lines:
                runs.append(lines)
        return RawPage(
            round(view.width, 2),
            round(view.height, 2),
            runs,
            drawn,
            words=partial(_words, reading, view),
            letters=partial(_letters, reading, view),
            image_share=partial(_image_share, page, view),
            pixels=partial(_pixels, page),
            is_garbled=garbled,
            rotation=-(_direction(texts) + view.rotation) % 360,
            pictures=partial(_pictures, page, view),
            strokes=strokes,
            fields=partial(_fields, page, view) if self._is_form else list,
        )


def _read(page: Any, view: View) -> tuple[Any, list[dict[str, Any]], list[Rectangle], list[Rectangle]]:
    """The library's text page, its blocks of text, and the places of straight and of other lines, in one reading.

    The library gives drawings for nothing if asked, but splits the text wherever something is drawn: at an underlined
    word, at a fraction's bar. `_rejoined` puts these parts together by the rules by which the library joins letters.
    """
    library = pymupdf()
    flags = library.TEXTFLAGS_DICT & ~library.TEXT_PRESERVE_IMAGES & ~library.TEXT_PRESERVE_LIGATURES
    try:
        with translated_errors("The page is damaged."):
            reading = page.get_textpage(flags=flags | library.TEXT_COLLECT_VECTORS)
            found: list[dict[str, Any]] = reading.extractDICT()["blocks"]
            drawings = [block for block in found if block["type"] == _DRAWING]
            if drawings and _direction(found):  # the rules are for lines across
                found = page.get_textpage(flags=flags).extractDICT()["blocks"]
    except BrokenDocumentError:
        return None, [], [], []
    texts = _rejoined(found) if drawings else [block for block in found if block.get("lines")]
    boxes: tuple[list[Rectangle], list[Rectangle]] = ([], [])
    for block in drawings:
        if box := view.shown(block["bbox"], edge=_HAIR):
            boxes[not _is_ruling(block)].append(box)
    return reading, texts, *boxes


def _direction(blocks: list[dict[str, Any]]) -> int:
    """The writing direction of most letters in the page's own coordinates: degrees clockwise from left to right.

    Vertical writing, as some Chinese is, counts as upright.
    """
    letters: Counter[int] = Counter()
    for block in blocks:
        for line in block.get("lines", ()):
            along, down = line["dir"]
            rotation = 0 if line["wmode"] else round(atan2(down, along) / (pi / 2)) % 4 * 90
            letters[rotation] += sum([len(span["text"]) for span in line["spans"]])
    return letters.most_common(1)[0][0] if letters else 0


def _words(reading: Any, view: View) -> list[Word]:
    words: list[tuple[Any, ...]] = reading.extractWORDS() if reading else []
    return [(*box, word[4]) for word in words if (box := view.shown(word[:4]))]


def _letters(reading: Any, view: View) -> list[Word]:
    """The same, quickly where the page is not turned: boxes may reach over its edges."""
    if view.rotation or not reading:
        return _words(reading, view)
    wide, high = view.width, view.height
    words: list[tuple[Any, ...]] = reading.extractWORDS()
    return [word[:5] for word in words if word[0] < wide and word[1] < high and word[2] > 0 and word[3] > 0]


def _option(given: Any) -> str:
    """What people see of a choice: it may come with the value that is exported for it."""
    seen: list[Any] = list(cast("list[Any]", given)) if isinstance(given, list | tuple) else [given]
    return str(seen[-1]) if seen else ""


_FIELDS: dict[int, FieldKind] = {2: "check", 3: "choice", 4: "choice", 5: "radio", 6: "signature", 7: "text"}


def _fields(page: Any, view: View) -> list[Field]:
    """The fields of a form; buttons that do something are none, nor is what cannot be read."""
    found: list[Field] = []
    try:
        with translated_errors("The form is damaged."):
            for one in page.widgets() or ():
                kind, place = _FIELDS.get(one.field_type), view.shown(one.rect)
                if kind is None or place is None or len(found) >= MOST_FIELDS:
                    continue
                value: Any = one.field_value
                texts: list[Any] = list(one.choice_values or ())
                options = tuple(map(_option, texts))
                ticked = value is True or (kind in {"check", "radio"} and value == one.on_state())
                on = bool(one.is_signed) if kind == "signature" else ticked
                said = ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value or "")
                found.append(
                    Field(str(one.field_name or ""), str(one.field_label or ""), kind, said, on, options, place)
                )
    except (BrokenDocumentError, TypeError, AttributeError, KeyError):
        return found
    return found


def _image_share(page: Any, view: View) -> float:
    return largest_share(_boxes_of_images(page, view), view.width, view.height)


def _pictures(page: Any, view: View) -> list[Rectangle]:
    """The boxes of the images on a page; one that names none is not read again for them."""
    try:
        with translated_errors("The page is damaged."):
            return _boxes_of_images(page, view) if page.get_images() else []
    except BrokenDocumentError:
        return []


def _boxes_of_images(page: Any, view: View) -> list[Rectangle]:
    with translated_errors("The page is damaged."):
        return [box for found in page.get_image_info() if (box := view.shown(found["bbox"]))]


def _pixels(page: Any, zoom: float) -> Pixels:
    with translated_errors("The page is damaged."):
        drawn = page.get_pixmap(matrix=pymupdf().Matrix(zoom, zoom), alpha=False)
    return Pixels(drawn.width, drawn.height, drawn.samples)


def _line(raw: dict[str, Any], view: View) -> Line | None:
    """A printed line with its place on the page as displayed; `None` if it is blank or outside the page."""
    spans: list[dict[str, Any]] = raw["spans"]
    text = clean("".join([span["text"] for span in spans])).replace("\t", " ")
    if not text or text.isspace():
        return None
    rectangle = view.shown(raw["bbox"])
    if rectangle is None:
        return None
    size, longest, bold = 0.0, -1, True
    for span in spans:
        letters = len(span["text"].strip())
        if letters > longest:
            size, longest = span["size"], letters
        bold = bold and (not letters or bool(span["flags"] & _BOLD) or "bold" in span["font"].lower())
    return Line(text, rectangle, round(size * 2) / 2, bold)


def _is_ruling(block: dict[str, Any]) -> bool:
    """Whether a drawing is a rectangle or a line along an axis."""
    x0, y0, x1, y1 = block["bbox"]
    return bool(block["isrect"]) or min(x1 - x0, y1 - y0) <= 1


def _rejoined(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    texts: list[dict[str, Any]] = []
    drawn = False
    for block in found:
        if not block.get("lines"):
            drawn = drawn or block["type"] == _DRAWING
        elif not (drawn and texts and _continue(texts[-1]["lines"], block["lines"])):
            texts.append(block)
            drawn = False
        else:
            drawn = False
    return texts


def _continue(lines: list[dict[str, Any]], more: list[dict[str, Any]]) -> bool:
    """Add lines to a block if the first of them continues where it ended; whether it did."""
    before, line = lines[-1], more[0]
    if before["dir"] != (1.0, 0.0) or line["dir"] != (1.0, 0.0):
        return False
    last, span = before["spans"][-1], line["spans"][0]
    size: float = span["size"]
    down = abs(span["origin"][1] - last["origin"][1])
    if down > _NEXT_LINE * size:
        return False
    if down < _SAME_LINE * size:
        gap = span["origin"][0] - last["bbox"][2]
        if not -_SAME_SENTENCE * size < gap < _SAME_SENTENCE * size:
            return False
        if gap >= _SAME_WORD * size:
            last["text"] += " "
        before["spans"] += line["spans"]
        (x0, y0, x1, y1), (u0, v0, u1, v1) = before["bbox"], line["bbox"]
        before["bbox"] = (min(x0, u0), min(y0, v0), max(x1, u1), max(y1, v1))
        more = more[1:]
    elif abs(last["size"] - size) > 0.1 * size:
        return False
    lines += more
    return True


def cjk_font() -> bytes:
    """The font with Chinese, Japanese and Korean characters that PyMuPDF ships: Droid Sans Fallback, Apache 2.0.

    Returns:
        The font file; empty where PyMuPDF is not installed.
    """
    try:
        return bytes(pymupdf().Font("cjk").buffer)
    except ImportError:
        return b""


def _form_packets(document: Any) -> dict[str, bytes]:
    """What `/AcroForm /XFA` holds: one stream with all parts, or names and streams in turns."""
    kind, found = document.xref_get_key(document.pdf_catalog(), "AcroForm/XFA")
    references = [int(one) for one in re.findall(r"(\d+) \d+ R", found)] if kind in {"array", "xref"} else []
    if kind == "xref" and not document.xref_is_stream(references[0]):
        found = str(document.xref_object(references[0], compressed=True))
        references = [int(one) for one in re.findall(r"(\d+) \d+ R", found)]
    names = re.findall(r"\(([^()]*)\)", found) or [""]
    streams: dict[str, bytes] = {}
    for name, reference in zip(names, references, strict=False):
        if name in XFA_PARTS:
            streams[name] = _unfolded(document, reference)
    return streams


def _unfolded(document: Any, reference: int) -> bytes:
    """The bytes of a stream; none where they are more than a part of a form may have, which is known before."""
    _, told = document.xref_get_key(reference, "Filter")
    filters = re.findall(r"/(\w+)", told)
    raw = bytes(document.xref_stream_raw(reference) or b"")
    if filters == ["FlateDecode"] and document.xref_get_key(reference, "DecodeParms")[0] == "null":
        try:
            found = zlib.decompressobj().decompress(raw, MOST_XFA_BYTES + 1)
        except zlib.error:
            return b""
        return found if len(found) <= MOST_XFA_BYTES else b""
    growth = prod(_GROWTH.get(one, _GROWTH_UNKNOWN) for one in filters)
    return bytes(document.xref_stream(reference) or b"") if growth * len(raw) <= MOST_XFA_BYTES else b""
