"""A page's blocks of text and its drawings, in one reading.

The library gives drawings for nothing if asked, but parts the text wherever something is drawn: at an underlined word,
at a fraction's bar. Here those parts are put together by the rules that it joins letters by.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from functools import partial
from math import atan2, pi
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError
from core.rag.parsers.base import clean
from core.rag.parsers.pdf_file import View, complaints, damage_told, opened, page_of, pymupdf
from core.rag.parsers.pdf_headings import Line
from core.rag.parsers.pdf_page import Pixels, RawPage, is_garbled, largest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_margins import Runs
    from core.rag.parsers.pdf_page import Source
    from core.rag.parsers.pdf_tables import Word

_BOLD = 1 << 4
_DRAWING = 3  # the library's name for a block that is no text
_HAIR = 0.1  # points: lines without a thickness have this
# In letter sizes, as in the library.
_SAME_LINE, _NEXT_LINE = 0.8, 1.4
_SAME_WORD, _SAME_SENTENCE = 0.15, 0.8
_OF_THE_TABLE = re.compile(
    r"format error: cannot recognize xref format|trying to repair broken xref|repairing PDF document"
    r"|syntax error: expected (?:object|generation) number|garbage bytes before version marker"
)


@contextmanager
def source(path: Path, password: str) -> Generator[Source]:
    """An open PDF; errors as in `pdf_file.opened`."""
    with opened(path, password) as document:
        yield MuPdf(document)


class MuPdf:
    """An open PDF, read with PyMuPDF.

    Args:
        document: The library's document.
    """

    def __init__(self, document: Any) -> None:
        self._document = document
        self.count = len(document)
        properties: dict[str, Any] = document.metadata or {}
        self.title = str(properties.get("title") or "")

    def outline(self) -> list[tuple[int, str, int]]:
        """The bookmarks; a broken tree of them is no reason to refuse the document."""
        try:
            with damage_told("The bookmarks are damaged."):
                found: list[Any] = self._document.get_toc(simple=True)
                return [(int(level), clean(title), int(page)) for level, title, page in found]
        except (BrokenDocumentError, TypeError, KeyError):
            return []

    def is_mended(self) -> bool:
        """Whether the library had to mend it."""
        return bool(self._document.is_repaired)

    def has_lost(self) -> bool:
        """Whether the library complained of more than the table that says where things are: that one it makes anew."""
        said = complaints().splitlines() if self.is_mended() else []
        return not all(map(_OF_THE_TABLE.match, said))

    def has_pictures(self) -> bool:
        """Whether any of the first pages shows a picture."""
        try:
            with damage_told("The list of pictures is damaged."):
                return any(self._document.get_page_images(index) for index in range(min(20, self.count)))
        except BrokenDocumentError:
            return False

    def page(self, number: int) -> RawPage | None:
        """A page, counted from 1; `None` if it is damaged."""
        page = page_of(self._document, number)
        if page is None:
            return None
        view = View(page)
        reading, texts, drawn = _read(page, view)
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
            pictured=partial(_pictured, page, view),
            pixels=partial(_pixels, page),
            is_garbled=garbled,
            turn=-(_direction(texts) + view.rotation) % 360,
        )


def _read(page: Any, view: View) -> tuple[Any, list[dict[str, Any]], list[Rectangle]]:
    """What the library read, the blocks of text in it, and the places of lines and rectangles."""
    library = pymupdf()
    flags = library.TEXTFLAGS_DICT & ~library.TEXT_PRESERVE_IMAGES & ~library.TEXT_PRESERVE_LIGATURES
    try:
        with damage_told("The page is damaged."):
            reading = page.get_textpage(flags=flags | library.TEXT_COLLECT_VECTORS)
            found: list[dict[str, Any]] = reading.extractDICT()["blocks"]
            drawings = [block for block in found if block["type"] == _DRAWING]
            if drawings and _direction(found):  # the rules are for lines across
                found = page.get_textpage(flags=flags).extractDICT()["blocks"]
    except BrokenDocumentError:
        return None, [], []
    texts = _mended(found) if drawings else [block for block in found if block.get("lines")]
    boxes = (view.shown(block["bbox"], edge=_HAIR) for block in drawings if _is_ruling(block))
    return reading, texts, [box for box in boxes if box]


def _direction(blocks: list[dict[str, Any]]) -> int:
    """Which way most letters go, in the page's own measures: degrees from left to right, with the clock.

    What is written from top to bottom, as some Chinese is, stands upright.
    """
    letters: Counter[int] = Counter()
    for block in blocks:
        for line in block.get("lines", ()):
            along, down = line["dir"]
            turn = 0 if line["wmode"] else round(atan2(down, along) / (pi / 2)) % 4 * 90
            letters[turn] += sum([len(span["text"]) for span in line["spans"]])
    return letters.most_common(1)[0][0] if letters else 0


def _words(reading: Any, view: View) -> list[Word]:
    words: list[tuple[Any, ...]] = reading.extractWORDS() if reading else []
    return [(*box, word[4]) for word in words if (box := view.shown(word[:4]))]


def _pictured(page: Any, view: View) -> float:
    with damage_told("The page is damaged."):
        boxes = [view.shown(found["bbox"]) for found in page.get_image_info()]
    return largest([box for box in boxes if box], view.width, view.height)


def _pixels(page: Any, zoom: float) -> Pixels:
    with damage_told("The page is damaged."):
        drawn = page.get_pixmap(matrix=pymupdf().Matrix(zoom, zoom), alpha=False)
    return Pixels(drawn.width, drawn.height, drawn.samples)


def _line(raw: dict[str, Any], view: View) -> Line | None:
    """A printed line with its place on the page as displayed; what lies outside the page is invisible, so left out."""
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
    """Whether a drawing is a rectangle or a straight line; a slope or a curve is neither."""
    x0, y0, x1, y1 = block["bbox"]
    return bool(block["isrect"]) or min(x1 - x0, y1 - y0) <= 1


def _mended(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    texts: list[dict[str, Any]] = []
    drawn = False
    for block in found:
        if not block.get("lines"):
            drawn = drawn or block["type"] == _DRAWING
        elif not (drawn and texts and _goes_on(texts[-1]["lines"], block["lines"])):
            texts.append(block)
            drawn = False
        else:
            drawn = False
    return texts


def _goes_on(lines: list[dict[str, Any]], more: list[dict[str, Any]]) -> bool:
    """Add lines to a block if the first of them goes on where it ended."""
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
