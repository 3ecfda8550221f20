"""Pictures of pages, drawn once and kept in a folder."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import shutil
from typing import TYPE_CHECKING

from core.errors import DocumentError
from core.rag.parsers import process
from core.rag.parsers.catalog import PICTURES, drawer_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from core.rag.document import Document, Rectangle

_log = logging.getLogger(__name__)
_MOST = 200  # pictures kept of one document; the oldest go first
_ZOOM = (0.1, 6.0)


class Pictures:
    """The folder of pictures. It can be deleted at any time: pictures are drawn again.

    Args:
        folder: Made when the first picture is drawn.
        pdf_reader: Which library draws the pages of a PDF, as in `RAGConfig`.
    """

    def __init__(self, folder: Path, pdf_reader: str = "pymupdf") -> None:
        self._folder, self._pdf_reader = folder, pdf_reader

    def get(self, document: Document, original: Path, page: int, zoom: float, marks: Sequence[Rectangle] = ()) -> bytes:
        """A page as PNG.

        Args:
            document: Whose page.
            original: Its file.
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
            png = process.picture(original, drawer_of(document.media_type, self._pdf_reader), page, zoom, marks)
        self._keep(kept, png)
        if not original.exists():  # taken out while this was drawn, and what was kept of it deleted before this was
            self.drop(document.id)
        return png

    @staticmethod
    def check(document: Document) -> None:
        """Raises DocumentError (key `document_no_pages`) for a format whose pages nothing here can draw."""
        if document.media_type not in PICTURES:
            raise DocumentError(f"{document.name!r} has no pages to show.", key="document_no_pages", name=document.name)

    def drop(self, document_id: str) -> None:
        """Delete a document's pictures."""
        shutil.rmtree(self._folder / document_id, ignore_errors=True)

    @staticmethod
    def _keep(path: Path, png: bytes) -> None:
        """Write in one step; a full disk only means that the picture is drawn again next time."""
        waiting = path.with_name(f".{secrets.token_hex(8)}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            waiting.write_bytes(png)
            waiting.replace(path)
            old = sorted(path.parent.glob("*.png"), key=lambda one: one.stat().st_mtime_ns)[:-_MOST]
            for one in old:
                one.unlink(missing_ok=True)
        except OSError as error:
            waiting.unlink(missing_ok=True)
            _log.warning("A page picture was not kept: %s", error)


def _fingerprint(marks: Sequence[Rectangle]) -> str:
    if not marks:
        return ""
    return "-" + hashlib.sha256(json.dumps([list(mark) for mark in marks]).encode()).hexdigest()[:16]
