"""Opening a PDF, and drawing its pages. Runs in the worker process only."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError, NotFoundError
from core.rag.parsers.marker import marked
from core.rag.parsers.pdf_page import locked

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from core.rag.document import Rectangle

_PIXELS = 20_000_000  # a picture; a poster's zoom is lowered until it fits


def pymupdf() -> Any:
    """The library, as the untyped thing that it is."""
    # Its version 2 loads a neural network for layouts when it is imported (a second, 300 MB); nothing here uses it.
    sys.modules.setdefault("pymupdf.layout", None)  # pyright: ignore[reportArgumentType]
    return import_module("pymupdf")


@contextmanager
def damage_told(message: str) -> Generator[None]:
    """What the library raises about a file becomes our error; want of memory does not: the file may be whole.

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
    with damage_told("The PDF is damaged."):
        document = library.open(path, filetype="pdf")
    with document:
        if document.needs_pass and not (password and document.authenticate(password)):
            raise locked(password)
        with damage_told("The PDF is damaged."):
            count = len(document)
        if count == 0:
            raise BrokenDocumentError("The PDF has no pages.")
        yield document


def complaints() -> str:
    """What the library complained of since the document was opened, on lines."""
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
        # To ask whether it needs a password is to try the empty one, after which the texts are closed again.
        document.authenticate(password)
        with damage_told("The PDF is damaged."):
            document.save(target, encryption=pymupdf().PDF_ENCRYPT_NONE)
        return True


def page_of(document: Any, number: int) -> Any | None:
    """A page, counted from 1, or `None` if it is damaged."""
    try:
        with damage_told(f"Page {number} is damaged."):
            return document[number - 1]
    except BrokenDocumentError:
        return None


class View:
    """A page as it is displayed: turned, and cut to what is seen.

    Plain numbers, for there are many lines on a page, and the library's own rectangles cost more than reading it.
    """

    def __init__(self, page: Any) -> None:
        rect = page.rect
        self.width, self.height = float(rect.width), float(rect.height)
        self.rotation = int(page.rotation)
        self._turn: tuple[float, ...] | None = tuple(page.rotation_matrix) if page.rotation else None

    def shown(self, box: Sequence[float], edge: float = 0.0) -> Rectangle | None:
        """Where a box of the page's own measures is seen, made wider by `edge`; `None` outside."""
        x0, y0, x1, y1 = box
        x0, y0, x1, y1 = x0 - edge, y0 - edge, x1 + edge, y1 + edge
        if self._turn:
            a, b, c, d, e, f = self._turn
            x0, y0, x1, y1 = a * x0 + c * y0 + e, b * x0 + d * y0 + f, a * x1 + c * y1 + e, b * x1 + d * y1 + f
            x0, x1, y0, y1 = min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1)
        x0, y0, x1, y1 = max(x0, 0.0), max(y0, 0.0), min(x1, self.width), min(y1, self.height)
        return (round(x0, 2), round(y0, 2), round(x1, 2), round(y1, 2)) if x0 < x1 and y0 < y1 else None


def picture(path: Path, number: int, zoom: float, marks: Sequence[Rectangle] = (), password: str = "") -> bytes:
    """A page as PNG, with the places of `marks` (points, as displayed) under the marker pen.

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
        with damage_told(f"Page {number} of the PDF is damaged."):
            drawn = page.get_pixmap(matrix=pymupdf().Matrix(fitting, fitting), alpha=False, annots=True)
        if not marks:
            return drawn.tobytes("png")
        samples = marked(drawn.samples, drawn.width, drawn.height, marks, fitting)
        return pymupdf().Pixmap(pymupdf().csRGB, drawn.width, drawn.height, samples, False).tobytes("png")  # noqa: FBT003
