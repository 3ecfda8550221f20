"""The embedded shelf: a library's documents and passages in one SQLite file."""

from __future__ import annotations

import json
import logging
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from core.rag import records
from core.rag.half_read import KeptPages
from core.rag.index_file import DamagedIndexError, translated
from core.rag.readings import Readings
from core.rag.search.turns import InTurns
from core.rag.search.word_index import WordIndex
from core.rag.search.word_table import WordTable
from core.rag.shelf import writable

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from core.rag.document import Chunk, Document, Figure, Heading, PageShape, Passage
    from core.rag.draft import Piece
    from core.rag.embedding.base import Embedder
    from core.rag.index_file import IndexFile
    from core.rag.search.stored_vectors import Vectors
    from core.rag.shelf import Derived
    from core.rag.shelf import Vectors as AnyVectors

_log = logging.getLogger(__name__)


class EmbeddedShelf:
    """A `Shelf` in the library's file.

    Args:
        file: Closed with the shelf.

    Attributes:
        notes: What models noted of the documents.
        table: The table of words.
    """

    def __init__(self, file: IndexFile) -> None:
        self.file = file
        self.notes = Readings(file)
        self.table = WordTable(file)
        self.words, self.all_words, self.terms_of = self.table.words, self.table.all_words, self.table.terms_of
        self.texts_of, self.beginnings = self.table.texts_of, self.table.beginnings
        self._is_swept = False

    # ---- documents

    def documents(self) -> list[Document]:
        """As of `Shelf`."""
        with self.file.reading() as db:
            return records.all_documents(db)

    def document(self, document_id: str) -> Document | None:
        """As of `Shelf`."""
        with self.file.reading() as db:
            return records.get(db, document_id)

    def put(self, piece: Piece, *, is_first: bool, check: Callable[[], None] = lambda: None) -> Document | None:
        """As of `Shelf`."""
        document, chunks = piece.document, [_writable(one) for one in piece.chunks]
        title = document.title or document.name
        prepared = self.table.prepare([records.searched_text(title, one.heading, one.text) for one in chunks])
        with self.file.writing() as db:
            check()
            if is_first:
                self._delete(db, document.id)  # the remains of a killed reading
                ids = records.insert(db, document, chunks, piece.shapes, piece.figures)
            elif records.get(db, document.id) is None:
                return None
            else:
                ids = records.extend(db, document, chunks, piece.shapes, piece.figures)
            self.table.add(db, ids, prepared)
            _keep_pages(db, piece)
            return records.get(db, document.id)

    def half_read(self, document_id: str, page: int | None = None) -> list[KeptPages]:
        """As of `Shelf`."""
        with self.file.reading() as db:
            if db.execute(_KEEPS_PAGES).fetchone() is None:
                return []
            asked = (
                "SELECT last, made_by, data FROM half_read WHERE document_id = ? AND last >= ? ORDER BY last LIMIT ?"
            )
            some = (0, -1) if page is None else (page, 1)  # they follow each other
            return [KeptPages(*row) for row in db.execute(asked, (document_id, *some))]

    def rename(self, document_id: str, name: str) -> None:
        """As of `Shelf`."""
        with self.file.writing() as db:
            db.execute("UPDATE documents SET name = ? WHERE id = ?", (name, document_id))

    def mark_stopped(self, document_id: str) -> None:
        """As of `Shelf`."""
        with self.file.writing() as db:
            db.execute("UPDATE documents SET status = 'stopped' WHERE id = ?", (document_id,))

    def remove(self, document_id: str) -> None:
        """As of `Shelf`."""
        with self.file.writing() as db:
            self._delete(db, document_id)

    def _delete(self, db: sqlite3.Connection, document_id: str) -> None:
        if records.get(db, document_id) is not None:
            self.table.remove(db, records.chunk_ids(db, document_id))
            records.remove(db, document_id)

    # ---- passages

    def passages(self, scored: Sequence[tuple[int, float]]) -> list[Passage]:
        """As of `Shelf`."""
        with self.file.reading() as db:
            return records.passages(db, scored)

    def whole(self, documents: Collection[str]) -> list[Passage]:
        """As of `Shelf`."""
        query = "SELECT id FROM chunks WHERE document_id = ? ORDER BY position"
        with self.file.reading() as db:
            there = (one.id for one in records.all_documents(db) if one.id in documents)
            ids = [chunk_id for document_id in there for (chunk_id,) in db.execute(query, (document_id,))]
            return records.passages(db, [(chunk_id, 0.0) for chunk_id in ids])

    def some(self, document_id: str, start: int, most: int) -> list[Passage]:
        """As of `Shelf`."""
        with self.file.reading() as db:
            ids = db.execute(
                "SELECT id FROM chunks WHERE document_id = ? ORDER BY position LIMIT ? OFFSET ?",
                (document_id, most, max(0, start)),
            ).fetchall()
            return records.passages(db, [(row[0], 0.0) for row in ids])

    def first_ids(self, document_id: str, most: int) -> list[int]:
        """As of `Shelf`."""
        with self.file.reading() as db:
            return sorted(records.chunk_ids(db, document_id))[:most]

    def places(self, chunk_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """As of `Shelf`."""
        asked = "SELECT id, position, overlap FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
        with self.file.reading() as db:
            rows = db.execute(asked, (json.dumps(list(chunk_ids)),))
            return {chunk_id: (position, overlap) for chunk_id, position, overlap in rows}

    def letters(self, documents: Collection[str], most: float | None = None) -> int:
        """As of `Shelf`."""
        within = "FROM chunks WHERE document_id IN (SELECT value FROM json_each(?))"
        asked = (json.dumps(list(documents)),)
        with self.file.reading() as db:
            if most is None:
                return int(db.execute(f"SELECT coalesce(sum(length(text)), 0) {within}", asked).fetchone()[0])
            letters = 0
            with closing(db.execute(f"SELECT length(text) {within}", asked)) as rows:
                for (length,) in rows:
                    letters += length
                    if letters > most:
                        break
            return letters

    def headings(self, documents: Collection[str]) -> dict[str, list[Heading]]:
        """As of `Shelf`."""
        with self.file.reading() as db:
            return records.headings(db, documents)

    def figures(self, documents: Collection[str]) -> list[Figure]:
        """As of `Shelf`."""
        with self.file.reading() as db:
            return records.figures(db, documents)

    def holding(self, document_id: str, page: int | None, text: str) -> list[tuple[int, str]]:
        """As of `Shelf`."""
        asked = "SELECT id, text FROM chunks WHERE document_id = ? AND page IS ? AND instr(text, ?) > 0"
        with self.file.reading() as db:
            return db.execute(asked, (document_id, page, text)).fetchall()

    def shape(self, document_id: str, page: int) -> PageShape:
        """As of `Shelf`."""
        with self.file.reading() as db:
            return records.shape(db, document_id, page)

    def last_page(self, document_id: str) -> int:
        """As of `Shelf`."""
        with self.file.reading() as db:
            return records.last_page(db, document_id)

    def position(self, document_id: str, *, chunk_id: int | None = None, page: int | None = None) -> int:
        """As of `Shelf`."""
        with self.file.reading() as db:
            if chunk_id is not None:
                asked = "SELECT position FROM chunks WHERE document_id = ? AND id = ?"
                row = db.execute(asked, (document_id, chunk_id)).fetchone()
                return row[0] if row else 0
            asked = "SELECT count(*) FROM chunks WHERE document_id = ? AND page < ?"
            return db.execute(asked, (document_id, page or 0)).fetchone()[0]

    def height(self, passage: Passage) -> float:
        """As of `Shelf`."""
        with self.file.reading() as db:
            before, there = db.execute(
                "SELECT coalesce(sum(id < ?), 0), count(*) FROM chunks WHERE document_id = ? AND page IS ?",
                (passage.chunk_id, passage.document_id, passage.page),
            ).fetchone()
        return before / there if there else 0.0

    # ---- search

    def vectors(self, embedder: Embedder, *, most: int | None, in_parts: bool, moved: Callable[[], None]) -> Vectors:
        """As of `Shelf`."""
        from core.rag.search.near_index import NearIndex, sweep
        from core.rag.search.stored_vectors import Vectors

        if not self._is_swept:
            sweep(self.file)
            self._is_swept = True
        graph = None if in_parts else NearIndex(self.file, embedder.model)
        return Vectors(self.file, embedder, most, graph, in_parts=in_parts, moved=moved)

    def making(self, vectors: Sequence[AnyVectors]) -> Sequence[Derived]:
        """As of `Shelf`: each process that has the file open is at it."""
        return [InTurns(cast("Sequence[Vectors]", vectors))]

    def quick_words(self, on_old: Callable[[], None]) -> WordIndex:
        """As of `Shelf`."""
        self.table.quick = WordIndex(self.file, on_old)
        return self.table.quick

    def mend(self) -> None:
        """As of `Shelf`."""
        try:
            with self.file.writing() as db:
                self.table.rebuild(db, records.chunk_texts(db))
        except DamagedIndexError as error:
            self.file.give_up()
            error.hint = "Start Parlour again: the documents are then read again from their originals."
            raise

    # ---- as a whole

    def lock(self, document_id: str) -> FolderLock:
        """As of `Shelf`."""
        return FolderLock(self.file.path.with_name("reading"), document_id)

    def is_intact(self) -> bool:
        """As of `Shelf`: whether the library's file is still the one that was opened."""
        return self.file.is_intact()

    def close(self) -> None:
        """As of `Shelf`."""
        self.file.close()


class FolderLock:
    """A `Lock` as a file, which only its holder has.

    Args:
        folder: For lock files, one for each document at work; made when the first is needed.

    Raises:
        StorageError: It cannot be used.
    """

    def __init__(self, folder: Path, document_id: str) -> None:
        from filelock import FileLock

        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise translated(error) from error
        self._path = folder / f"{document_id}.lock"
        self._lock = FileLock(self._path, thread_local=False)

    def acquire(self) -> bool:
        """As of `Lock`."""
        from filelock import Timeout

        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        except OSError as error:
            raise translated(error) from error
        return True

    def release(self) -> None:
        """As of `Lock`; the file is deleted, and whoever waits for it notices and makes another."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            _log.debug("A lock file stays: this system deletes none that is open.")
        self._lock.release()


_KEEPS_PAGES = "SELECT 1 FROM sqlite_master WHERE name = 'half_read'"
_HALF_READ = """
CREATE TABLE IF NOT EXISTS half_read (
    document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    last INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (document_id, last)
)"""


def _keep_pages(db: sqlite3.Connection, piece: Piece) -> None:
    """Keep pages of a document until it is read. A file that was made by an older program gets the table for it."""
    document, kept = piece.document, piece.kept
    if document.status not in {"reading", "stopped"}:
        if db.execute(_KEEPS_PAGES).fetchone() is not None:
            db.execute("DELETE FROM half_read WHERE document_id = ?", (document.id,))
    elif kept is not None:
        db.execute(_HALF_READ)
        if kept.begins:
            db.execute("DELETE FROM half_read WHERE document_id = ?", (document.id,))
        row = (document.id, kept.last, kept.by, kept.data)
        db.execute("INSERT OR REPLACE INTO half_read VALUES (?, ?, ?, ?)", row)


def _writable(chunk: Chunk) -> Chunk:
    """The chunk as the file can keep it."""
    text, heading = writable(chunk.text), writable(chunk.heading)
    return chunk if text is chunk.text and heading is chunk.heading else replace(chunk, text=text, heading=heading)
