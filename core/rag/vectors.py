"""The vectors of a library's chunks: made in the background, kept in the library's file, compared in memory."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

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
WHERE chunks.id > ? AND NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.model = ? AND vectors.chunk_id = chunks.id)
ORDER BY chunks.id LIMIT ?"""

# To count the chunks themselves takes milliseconds where there are many.
_WHICH = "SELECT (SELECT coalesce(max(id), 0) FROM chunks), (SELECT coalesce(sum(chunks), 0) FROM documents)"


@dataclass(frozen=True, slots=True)
class _Matrix:
    """What is in memory: row `n` of `rows` belongs to chunk `ids[n]`; the ids grow.

    Both are the beginnings of longer arrays, so that a few more rows do not copy all that are there.
    """

    ids: Ids
    rows: Floats
    change: int = -1

    def plus(self, ids: Ids, rows: Floats, change: int) -> _Matrix:
        """This and more."""
        if not len(ids):
            return _Matrix(self.ids, self.rows, change)
        if not len(self.ids):
            return _Matrix(ids, rows, change)
        if ids[0] < self.ids[-1]:  # two processes made them at once, and the slower one's came late
            both = np.concatenate([self.ids, ids])
            order = np.argsort(both, kind="stable")
            return _Matrix(both[order], np.concatenate([self.rows, rows])[order], change)
        return _Matrix(_joined(self.ids, ids), _joined(self.rows, rows), change)


@dataclass(frozen=True, slots=True)
class _Everything:
    """Which rows belong to chunks of the library, as long as it does not change; `None` is all of them."""

    of: tuple[int, int, int]
    places: Ids | None


@dataclass(frozen=True, slots=True)
class Likeness:
    """Cosines of chunks with a question, by growing ids."""

    ids: Ids
    cosines: Floats


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
    _everything: _Everything | None = None

    def fill(self, stop: threading.Event) -> bool:
        """Make the vectors that are missing, batch by batch, until none is or `stop` is set.

        Returns:
            Whether none is missing now that should be there.

        Raises:
            ParlourError: The model failed, or the file cannot be written.
        """
        if not self.embedder.ready():
            return False
        last = 0  # every batch begins where the one before ended: to look at all chunks each time takes for ever
        while not stop.is_set():
            if self.most is not None and self._chunks() > self.most:
                return True
            with self.file.reading() as db:
                missing = db.execute(_MISSING, (last, self.embedder.model, _BATCH)).fetchall()
            if not missing:
                if not last:
                    return True
                last = 0  # once more from the beginning: others may have been at it too
                continue
            last = missing[-1][0]
            texts = [searched_text(title or name, heading, text) for _, title, name, heading, text in missing]
            rows = self._made(texts, stop)
            made = zip((row[0] for row in missing), rows, strict=False)  # fewer rows where it was stopped
            with self.file.writing() as db:
                db.executemany(
                    # A chunk may be gone by now, with its document.
                    "INSERT OR IGNORE INTO vectors (model, chunk_id, vector) "
                    "SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM chunks WHERE id = ?2)",
                    ((self.embedder.model, chunk_id, row.tobytes()) for chunk_id, row in made),
                )
        return False

    def _made(self, texts: list[str], stop: threading.Event) -> list[NDArray[np.float16]]:
        """Vectors of the texts, as far as it came before `stop`: one passage may take a fifth of a second."""
        rows: list[NDArray[np.float16]] = []
        step = self.embedder.at_once
        for at in range(0, len(texts), step):
            if stop.is_set():
                break
            rows.extend(self.embedder.passages(texts[at : at + step]).astype(np.float16))
        return rows

    def _chunks(self) -> int:
        with self.file.reading() as db:
            (count,) = db.execute("SELECT count(*) FROM chunks").fetchone()
        return int(count)

    def like(self, question: str, documents: Collection[str] | None = None) -> Likeness | None:
        """How like the question each chunk is.

        `None` where there is nothing to compare, while a chunk has no vector yet, or if the model does not run.

        Raises:
            ParlourError: The service that makes vectors failed.
        """
        with self.file.reading() as db:
            matrix = self._current(db)
            found = self._all(db, matrix) if documents is None else _rows_of(matrix, _ids_of(db, documents))
        if found is False or not self.embedder.ready():
            return None
        asked = self.embedder.questions([question])[0]
        if found is None:
            return Likeness(matrix.ids, matrix.rows @ asked)
        # To take a few rows out is quicker than to compare all; to take most of them out is slower.
        few = len(found) * 4 < len(matrix.ids)
        return Likeness(matrix.ids[found], matrix.rows[found] @ asked if few else (matrix.rows @ asked)[found])

    def _all(self, db: sqlite3.Connection, matrix: _Matrix) -> Ids | Literal[False] | None:
        """The rows of all chunks; asking for each of them takes longer than all the rest, so that is done once."""
        # Numbers are never given twice: with the same last one and as many as before, they are the same.
        last, count = db.execute(_WHICH).fetchone()
        known = self._everything
        if known is not None and known.of == (matrix.change, last, count):
            return known.places
        if count > len(matrix.ids):
            return False
        found = _rows_of(matrix, _ids_of(db, None))
        if found is not False:
            if len(found) == len(matrix.ids):
                found = None
            self._everything = _Everything((matrix.change, last, count), found)
        return found

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
        return (known or _Matrix(ids[:0], rows[:0])).plus(ids, rows, change)


def _joined(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Both, one behind the other; `first` stays where it is if there is room behind it."""
    size = len(first) + len(second)
    room: NDArray[Any] | None = first.base if isinstance(first.base, np.ndarray) else None
    if room is None or room.shape[1:] != first.shape[1:] or len(room) < size:
        room = np.empty((size + size // 2, *first.shape[1:]), first.dtype)
        room[: len(first)] = first
    room[len(first) : size] = second
    return room[:size]


def _rows_of(matrix: _Matrix, wanted: Ids) -> Ids | Literal[False]:
    """Where the vectors of these chunks are; `False` where one is missing, or none is wanted."""
    if not len(wanted) or len(wanted) > len(matrix.ids):
        return False
    places = np.minimum(np.searchsorted(matrix.ids, wanted), len(matrix.ids) - 1)
    return places if np.array_equal(matrix.ids[places], wanted) else False


def _ids_of(db: sqlite3.Connection, documents: Collection[str] | None) -> Ids:
    """The chunks of these documents, of all by default; the numbers grow."""
    if documents is None:
        found = db.execute("SELECT id FROM chunks ORDER BY id").fetchall()
    else:
        found = db.execute(
            "SELECT id FROM chunks WHERE document_id IN (SELECT value FROM json_each(?)) ORDER BY id",
            (json.dumps(list(documents)),),
        ).fetchall()
    return np.fromiter((row[0] for row in found), np.int64, len(found))
