"""The vectors of a library's chunks: made in the background, kept in the library's file, compared in memory."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from core.rag.records import searched_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection

    from numpy.typing import NDArray

    from core.rag.embedding.base import Embedder, Floats
    from core.rag.index_file import IndexFile

    Ids = NDArray[np.int64]

_log = logging.getLogger(__name__)

_BATCH = 8  # chunks that are made into vectors at once: few enough that a library closes soon
_MISSING = """
SELECT chunks.id, documents.title, documents.name, heading, text
FROM chunks JOIN documents ON documents.id = document_id
WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.model = ? AND vectors.chunk_id = chunks.id)
ORDER BY chunks.id LIMIT ?"""


@dataclass(slots=True)
class _Matrix:
    """What is in memory: row `n` of `rows` belongs to chunk `ids[n]`; the ids grow."""

    ids: Ids
    rows: Floats
    change: int = -1


@dataclass(frozen=True, slots=True)
class Likeness:
    """Cosines of chunks with a question, and whether every chunk that was searched had a vector."""

    ids: Ids
    cosines: Floats
    whole: bool


@dataclass(eq=False)
class Vectors:
    """The vectors of one model.

    Args:
        file: The library's file.
        embedder: The model.
        most: Chunks that a library may have for this model to be worth its time; `None` is any number.
    """

    file: IndexFile
    embedder: Embedder
    most: int | None = None
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _matrix: _Matrix | None = None

    def fill(self, stop: threading.Event) -> bool:
        """Make the vectors that are missing, batch by batch, until none is or `stop` is set.

        Returns:
            Whether none is missing now that should be there.

        Raises:
            ParlourError: The model failed, or the file cannot be written.
        """
        if not self.embedder.ready():
            return False
        while not stop.is_set():
            if self.most is not None and self._chunks() > self.most:
                return True
            with self.file.reading() as db:
                missing = db.execute(_MISSING, (self.embedder.model, _BATCH)).fetchall()
            if not missing:
                return True
            texts = [searched_text(title or name, heading, text) for _, title, name, heading, text in missing]
            rows = self.embedder.passages(texts).astype(np.float16)
            made = zip((row[0] for row in missing), rows, strict=True)
            with self.file.writing() as db:
                db.executemany(
                    # A chunk may be gone by now, with its document.
                    "INSERT OR IGNORE INTO vectors (model, chunk_id, vector) "
                    "SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM chunks WHERE id = ?2)",
                    ((self.embedder.model, chunk_id, row.tobytes()) for chunk_id, row in made),
                )
        return False

    def _chunks(self) -> int:
        with self.file.reading() as db:
            (count,) = db.execute("SELECT count(*) FROM chunks").fetchone()
        return int(count)

    def like(self, question: str, documents: Collection[str] | None = None) -> Likeness | None:
        """How like the question each chunk is; `None` while there is nothing to compare, or the model does not run.

        Raises:
            ParlourError: The service that makes vectors failed.
        """
        with self.file.reading() as db:
            matrix = self._current(db)
            wanted = _ids_of(db, documents)
        kept = np.isin(matrix.ids, wanted, assume_unique=True)
        ids = matrix.ids[kept]
        if not len(ids) or not self.embedder.ready():
            return None
        rows = matrix.rows if len(ids) == len(matrix.ids) else matrix.rows[kept]
        return Likeness(ids, rows @ self.embedder.questions([question])[0], whole=len(ids) == len(wanted))

    def _current(self, db: sqlite3.Connection) -> _Matrix:
        """What is in memory, brought up to date: another process may have changed the file."""
        with self._guard:
            (change,) = db.execute("SELECT coalesce(max(id), 0) FROM vectors").fetchone()
            matrix = self._matrix
            if matrix is None or matrix.change != change:
                matrix = self._matrix = self._read(db, matrix, change)
            return matrix

    def _read(self, db: sqlite3.Connection, known: _Matrix | None, change: int) -> _Matrix:
        """Read the vectors that came since; those of chunks that are gone are passed over when they are compared."""
        found = db.execute(
            "SELECT chunk_id, vector FROM vectors WHERE model = ? AND id > ? ORDER BY chunk_id",
            (self.embedder.model, known.change if known else -1),
        ).fetchall()
        ids = np.fromiter((row[0] for row in found), np.int64, len(found))
        rows = np.frombuffer(b"".join(row[1] for row in found), np.float16).astype(np.float32)
        rows = rows.reshape(len(found), -1) if found else np.zeros((0, 0), np.float32)
        if known is None or not len(known.ids):
            return _Matrix(ids, rows, change)
        if not len(ids):
            return _Matrix(known.ids, known.rows, change)
        return _Matrix(np.concatenate([known.ids, ids]), np.concatenate([known.rows, rows]), change)


def _ids_of(db: sqlite3.Connection, documents: Collection[str] | None) -> Ids:
    """The chunks of these documents, of all by default."""
    if documents is None:
        found = db.execute("SELECT id FROM chunks").fetchall()
    else:
        found = db.execute(
            "SELECT id FROM chunks WHERE document_id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(documents)),),
        ).fetchall()
    return np.fromiter((row[0] for row in found), np.int64, len(found))
