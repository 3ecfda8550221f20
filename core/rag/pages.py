"""A library's documents page by page: what stands on a page, and which chunks were cut from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import NotFoundError
from core.rag import records
from core.rag.page_content import Contents

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from core.rag.document import Passage
    from core.rag.index_file import IndexFile
    from core.rag.originals import Originals
    from core.rag.page_content import ContentWriter, PageContent
    from core.rag.parsers.base import Found
    from core.rag.parsers.process import Limits


class Pages:
    """Part of a library; use `Library.pages`.

    Args:
        file: The library's.
        originals: The files themselves.
        folder: That of the pictures of pages.
        pdf_reader: As in `RAGConfig`.
        limits: What reading one file again may cost.
    """

    def __init__(
        self, file: IndexFile, originals: Originals, folder: Path, pdf_reader: str, limits: Limits | None = None
    ) -> None:
        self._file, self._originals = file, originals
        self._contents = Contents(folder, pdf_reader, limits)

    def content(
        self, document_id: str, page: int | None = None, part: int | None = None, *, passage: Passage | None = None
    ) -> PageContent:
        """What stands on a page: its blocks with their places.

        Args:
            document_id: Whose page.
            page: From 1; `None` where it has none.
            part: Of a long page, which part; by default the one where `passage` stands, else the first.
            passage: Of this page.

        Raises:
            NotFoundError: There is no such document or page.
            DocumentError: It cannot be read.
            StorageError: It cannot be kept.
        """
        with self._file.reading() as db:
            document = records.present(db, document_id)
            near = _near(db, passage) if passage and part is None else 0.0
        quote = passage.text if passage else ""
        return self._contents.get(document, self._originals.path(document_id), page, part, quote=quote, near=near)

    def writer(self, document_id: str, media_type: str) -> ContentWriter:
        """Takes down the blocks of a document while it is read, so that it is not read again to be shown.

        Raises:
            OSError: Nothing can be written; then it is read again when it is looked at.
        """
        return self._contents.writer(document_id, media_type)

    def before(self, document_id: str, page: int) -> list[Found]:
        """What the parser gave of the pages of a PDF before `page`; empty where that was not kept of each."""
        return self._contents.before(document_id, page)

    def chunks(self, document_id: str, start: int = 0, most: int = 50) -> list[Passage]:
        """The chunks of a document in its own order, from the one at `start` on; empty past the end.

        Raises:
            NotFoundError: There is no such document.
        """
        with self._file.reading() as db:
            records.present(db, document_id)
            ids = db.execute(
                "SELECT id FROM chunks WHERE document_id = ? ORDER BY position LIMIT ? OFFSET ?",
                (document_id, most, max(0, start)),
            ).fetchall()
            return records.passages(db, [(row[0], 0.0) for row in ids])

    def chunk(self, document_id: str, chunk_id: int) -> Passage:
        """One chunk of a document.

        Raises:
            NotFoundError: It has no such chunk.
        """
        with self._file.reading() as db:
            found = records.passages(db, [(chunk_id, 0.0)])
        if not found or found[0].document_id != document_id:
            raise NotFoundError("There is no such passage.")
        return found[0]

    def position(self, document_id: str, *, chunk_id: int | None = None, page: int | None = None) -> int:
        """How many chunks come before a chunk, or before a page."""
        with self._file.reading() as db:
            if chunk_id is not None:
                asked = "SELECT position FROM chunks WHERE document_id = ? AND id = ?"
                row = db.execute(asked, (document_id, chunk_id)).fetchone()
                return row[0] if row else 0
            asked = "SELECT count(*) FROM chunks WHERE document_id = ? AND page < ?"
            return db.execute(asked, (document_id, page or 0)).fetchone()[0]


def _near(db: sqlite3.Connection, passage: Passage) -> float:
    """About where a passage stands on its page, from 0 to 1, by the chunks around it."""
    before, there = db.execute(
        "SELECT coalesce(sum(id < ?), 0), count(*) FROM chunks WHERE document_id = ? AND page IS ?",
        (passage.chunk_id, passage.document_id, passage.page),
    ).fetchone()
    return before / there if there else 0.0
