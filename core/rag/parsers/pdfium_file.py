"""PDF through pypdfium2, for those who cannot take the licence of PyMuPDF (AGPL): the same pages, the same places."""

from __future__ import annotations

import io
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError, LockedDocumentError, NotFoundError
from core.rag.parsers.base import clean
from core.rag.parsers.marker import marked
from core.rag.parsers.pdf_page import Pixels, RawPage, is_garbled, largest, locked
from core.rag.parsers.pdfium_paths import straight
from core.rag.parsers.pdfium_text import Text, View

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_page import Source

_PIXELS = 20_000_000
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

    def has_lost(self) -> bool:
        """As little is told of that."""
        return False

    def has_pictures(self) -> bool:
        """Whether any of the first pages shows a picture."""
        pages = (_page(self._document, number) for number in range(1, min(20, self.count) + 1))
        return any(_pictured(page, View(page)) for page in pages if page)

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
            pictured=partial(_pictured, page, text.view),
            pixels=partial(_pixels, page),
            is_garbled=len(readable) < len(lines),
            turn=text.turn,
        )


def _pictured(page: Any, view: View) -> float:
    kinds: Any = import_module("pypdfium2.raw")
    found = page.get_objects(filter=[kinds.FPDF_PAGEOBJ_IMAGE])
    boxes = [view.shown(one.get_bounds()) for one in islice(found, _MOST_PICTURES)]
    return largest([box for box in boxes if box], view.width, view.height)
