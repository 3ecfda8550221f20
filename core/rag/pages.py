"""Documents page by page: the content and the pictures of pages, and the chunks on them."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from core.errors import DocumentError, NotFoundError
from core.rag.document import required
from core.rag.half_read import found_on
from core.rag.page_content import Contents, content_among, kind_of
from core.rag.parsers import process
from core.rag.parsers.catalog import PICTURES, renderer_of
from core.rag.row_numbers import read
from core.storage.data_folder import oldest_first

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from core.rag.document import Block, Document, Figure, PageShape, Passage, Rectangle
    from core.rag.originals import Originals
    from core.rag.page_content import ContentWriter, PageContent
    from core.rag.parsers.base import Found
    from core.rag.parsers.process import Limits
    from core.rag.shelf import Shelf


class Pages:
    """Part of a library; use `Library.pages`.

    Args:
        folder: That of the pictures of pages.
        pdf_reader: As in `RAGConfig`.
        limits: What reading one file again may cost.
    """

    def __init__(
        self, shelf: Shelf, originals: Originals, folder: Path, pdf_reader: str, limits: Limits | None = None
    ) -> None:
        self._shelf, self._originals = shelf, originals
        self._contents = Contents(folder, pdf_reader, limits)

    def content(
        self, document_id: str, page: int | None = None, part: int | None = None, *, passage: Passage | None = None
    ) -> PageContent:
        """The content of a page: its blocks with their places; of a PDF or TIFF as soon as the page was read.

        Args:
            page: From 1; `None` where it has none.
            part: Of a long page, which part; by default the one where `passage` stands, else the first.

        Raises:
            NotFoundError: There is no such document or page.
            DocumentError: It cannot be read.
            StorageError: It cannot be kept.
        """
        document = self._require(document_id)
        if page is not None and (found := self._read_so_far(document, page)) is not None:
            return found
        near = self._shelf.height(passage) if passage and part is None else 0.0
        quote, runs = (passage.text, read(passage.rows)) if passage else ("", ())
        row = runs[0][0] if runs else None
        original = self._originals.path(document_id)
        return self._contents.get(document, original, page, part, quote=quote, near=near, row=row)

    def _read_so_far(self, document: Document, page: int) -> PageContent | None:
        """A page of a document that is being read, or was stopped: all of it is written down only at the end."""
        if document.status == "ready" or kind_of(document.media_type) != "page":
            return None
        with suppress(DocumentError):  # damaged: the page comes at the end
            return content_among(found_on(self._shelf.half_read(document.id, page)), page)
        return None

    def writer(self, document_id: str, media_type: str) -> ContentWriter:
        """A writer for the content of a document that is being read, so that showing it needs no second reading.

        Raises:
            OSError: Nothing can be written; then it is read again when it is looked at.
        """
        return self._contents.writer(document_id, media_type)

    def before(self, document_id: str, page: int) -> list[Found]:
        """The stored content of all pages of a PDF before `page`; empty if any is missing."""
        return self._contents.before(document_id, page)

    def blocks(self, document_id: str) -> Generator[Block]:
        """All blocks of a document, page by page.

        Raises:
            NotFoundError: There is no such document.
            DocumentError: It cannot be read.
            StorageError: It cannot be kept.
        """
        document = self._require(document_id)
        return self._contents.blocks(document, self._originals.path(document_id))

    def chunks(self, document_id: str, start: int = 0, most: int = 50) -> list[Passage]:
        """The chunks of a document in its own order, from the one at `start` on; empty past the end.

        Raises:
            NotFoundError: There is no such document.
        """
        self._require(document_id)
        return self._shelf.some(document_id, start, most)

    def chunk(self, document_id: str, chunk_id: int) -> Passage:
        """One chunk of a document.

        Raises:
            NotFoundError: It has no such chunk.
        """
        found = self._shelf.passages([(chunk_id, 0.0)])
        if not found or found[0].document_id != document_id:
            raise NotFoundError("There is no such passage.")
        return found[0]

    def position(self, document_id: str, *, chunk_id: int | None = None, page: int | None = None) -> int:
        """How many chunks come before a chunk, or before a page."""
        return self._shelf.position(document_id, chunk_id=chunk_id, page=page)

    def _require(self, document_id: str) -> Document:
        return required(self._shelf.document(document_id))


_log = logging.getLogger(__name__)
_MOST = 200  # pictures kept of one document; the oldest go first
_ZOOM = (0.1, 6.0)


class Pictures:
    """Pictures of pages, cached in a folder that may be deleted at any time.

    Args:
        folder: Made when the first picture is drawn.
        pdf_reader: Which library draws the pages of a PDF, as in `RAGConfig`.
    """

    def __init__(self, folder: Path, pdf_reader: str = "pymupdf") -> None:
        self._folder, self._pdf_reader = folder, pdf_reader

    def get(self, document: Document, original: Path, page: int, zoom: float, marks: Sequence[Rectangle] = ()) -> bytes:
        """A page as PNG.

        Args:
            page: From 1.
            zoom: Pixels for each point (1/72 inch).
            marks: What to mark, in points.

        Raises:
            DocumentError: Its format has no pages (key `document_no_pages`), or the page cannot be drawn.
            NotFoundError: There is no such page.
        """
        self.check(document)
        zoom = round(min(max(zoom, _ZOOM[0]), _ZOOM[1]), 2)
        kept = self._folder / document.id / f"{page}-{round(zoom * 100)}{_fingerprint(marks)}.png"
        try:
            return kept.read_bytes()
        except OSError:
            png = process.picture(original, renderer_of(document.media_type, self._pdf_reader), page, zoom, marks)
        self._keep(kept, png)
        if not original.exists():  # taken out while this was drawn, and what was kept of it deleted before this was
            self.drop(document.id)
        return png

    def figure(self, document: Document, original: Path, figure: Figure, shape: PageShape | None, pixels: int) -> Path:
        """The file with the picture of a figure (JPEG), drawn where it is not kept yet.

        Args:
            shape: Of its page, where it has one.
            pixels: It has no more.

        Raises:
            DocumentError: It cannot be drawn.
            NotFoundError: There is no such page or picture.
            OSError: It cannot be kept.
        """
        kept = self._folder / document.id / f"figure-{figure.number}-{pixels}.jpg"
        if not kept.is_file():
            renderer = renderer_of(document.media_type, self._pdf_reader) if document.media_type in PICTURES else ""
            cut = process.figure(original, renderer, figure, shape, pixels)
            self._write(kept, cut)
        return kept

    @staticmethod
    def check(document: Document) -> None:
        """Raises DocumentError (key `document_no_pages`) for a format whose pages nothing here can draw."""
        if document.media_type not in PICTURES:
            raise DocumentError(f"{document.name!r} has no pages to show.", key="document_no_pages", name=document.name)

    def drop(self, document_id: str) -> None:
        """Delete a document's pictures."""
        shutil.rmtree(self._folder / document_id, ignore_errors=True)

    def _keep(self, path: Path, png: bytes) -> None:
        """Keep a picture; a full disk only means that it is drawn again next time."""
        try:
            self._write(path, png)
        except OSError as error:
            _log.warning("A page picture was not kept: %s", error)

    @staticmethod
    def _write(path: Path, picture: bytes) -> None:
        """Write in one step, and delete the oldest of too many."""
        waiting = path.with_name(f".{secrets.token_hex(8)}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            waiting.write_bytes(picture)
            waiting.replace(path)
            for one in oldest_first(path.parent.glob(f"*{path.suffix}"))[:-_MOST]:
                one.unlink(missing_ok=True)
        except OSError:
            waiting.unlink(missing_ok=True)
            raise


def _fingerprint(marks: Sequence[Rectangle]) -> str:
    if not marks:
        return ""
    return "-" + hashlib.sha256(json.dumps([list(mark) for mark in marks]).encode()).hexdigest()[:16]
