"""The vectors of a library's chunks: made in the background, stored in the index, compared in memory."""

from __future__ import annotations

import json
import logging
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from core.errors import ModelMisbehavedError
from core.rag.embedding.across import without_common
from core.rag.embedding.local import LocalEmbedder
from core.rag.prose import sentence_spans
from core.rag.records import searched_text
from core.rag.search.near_index import Known, Wanted, ids_of, near
from core.rag.shelf import Similarity

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from core.rag.embedding.across import Script
    from core.rag.embedding.base import Embedder, Floats
    from core.rag.index_file import IndexFile
    from core.rag.search.near_index import NearIndex
    from core.rag.search.turns import Found, Row

    Ids = NDArray[np.int64]

_log = logging.getLogger(__name__)

_BATCH = 8  # chunks that are made into vectors at once, or as many as a service likes: who comes next waits for them
_NONE = "NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.model = ? AND vectors.chunk_id = chunks.id)"
_MISSING = f"""
SELECT chunks.id, position, documents.title, documents.name, heading, text
FROM chunks JOIN documents ON documents.id = document_id
WHERE document_id = ? AND position > ? AND {_NONE} ORDER BY position LIMIT ?"""  # noqa: S608 - our own words
# Not by the index of documents, in which a few new chunks stand among all others.
_LACKING = f"""
SELECT document_id, first, chunks FROM (
    SELECT document_id, min(id) AS first FROM chunks NOT INDEXED WHERE id > ? AND {_NONE} GROUP BY document_id
) JOIN documents ON documents.id = document_id"""  # noqa: S608 - the same

_MADE = """
SELECT document_id, sum(EXISTS (SELECT 1 FROM vectors WHERE model = ?1 AND chunk_id = chunks.id)), count(*)
FROM chunks WHERE document_id IN (SELECT value FROM json_each(?2)) GROUP BY document_id"""

# By the chunks, for there is no index of models; where any have vectors, one of the first has, mostly.
_SIZE = """
SELECT length(vector) FROM chunks CROSS JOIN vectors ON chunk_id = chunks.id AND model = ? ORDER BY chunks.id LIMIT 1"""

_COUNT = "SELECT coalesce(sum(chunks), 0) FROM documents WHERE id IN (SELECT value FROM json_each(?))"
# To count the chunks themselves takes milliseconds where there are many.
_WHICH = "SELECT (SELECT coalesce(max(id), 0) FROM chunks), (SELECT coalesce(sum(chunks), 0) FROM documents)"


_NOTHING = (np.zeros(0, np.int64), np.zeros((0, 0), np.float32))


@dataclass(frozen=True, slots=True)
class _Matrix:
    """What is in memory: row `n` of `rows` belongs to chunk `ids[n]`; the ids grow.

    Both are the beginnings of longer arrays, so that a few more rows do not copy all that are there.
    """

    ids: Ids
    rows: Floats
    change: int = -1
    since: int = -1  # the change that it begins after

    def plus(self, ids: Ids, rows: Floats, change: int) -> _Matrix:
        """This and more."""
        if not len(ids):
            return _Matrix(self.ids, self.rows, change, self.since)
        if not len(self.ids):
            return _Matrix(ids, rows, change, self.since)
        if ids[0] < self.ids[-1]:  # of a long document, after those of a short one that came later
            places: Ids = np.searchsorted(self.ids, ids[:1])
            at = int(places[0])
            order = np.argsort(np.concatenate([self.ids[at:], ids]), kind="stable")
            return _Matrix(_merged(self.ids, ids, at, order), _merged(self.rows, rows, at, order), change, self.since)
        return _Matrix(_joined(self.ids, ids), _joined(self.rows, rows), change, self.since)


@dataclass(frozen=True, slots=True)
class _Everything:
    """Which rows belong to chunks of the library, valid until it changes; `None` is all of them."""

    of: tuple[int, int, int]
    places: Ids | None


@dataclass(eq=False)
class MadeVectors(ABC):
    """The vectors of one model, made batch by batch; where they are kept is its subclasses' affair.

    Args:
        most: Chunks up to which a library uses this model, a slow one; `None` is any number.
        in_parts: Whether each part of a chunk has a vector, and the best counts; takes longer, and `PARTS` times the
            space. Such vectors cannot go into a graph.
        moved: Called after each batch, in the thread that makes the vectors.

    Attributes:
        patience: Seconds that a question waits for a model of this machine that is only being loaded, before it is
            searched without it; `None` is as long as that takes.
        failed: How often the model failed in batches of a document, since it made one; in this process.
    """

    embedder: Embedder
    most: int | None = None
    in_parts: bool = False
    moved: Callable[[], None] = lambda: None
    patience: float | None = field(default=None, init=False)
    failed: dict[str, int] = field(default_factory=dict[str, int], init=False)
    _size: int = field(default=0, init=False)
    _last: tuple[str, Floats] | None = field(default=None, init=False)

    @property
    def model(self) -> str:
        """Under which name its vectors are kept: those of parts cannot be compared with those of whole chunks."""
        return f"{self.embedder.model} in {PARTS}" if self.in_parts else self.embedder.model

    def can_make(self) -> bool | None:
        """Whether vectors can be made now; `None` where none are to be made: the library is too large."""
        if self.most is not None and self._chunks() > self.most:
            return None
        return self.embedder.ready()

    @property
    def size_of_batch(self) -> int:
        """How many chunks are made into vectors before it is looked whether others come first."""
        return max(_BATCH // PARTS if self.in_parts else _BATCH, self.embedder.at_once)

    def make(self, batch: Mapping[str, Sequence[Row]], stop: threading.Event) -> None:
        """Make vectors and keep them; where `stop` is set meanwhile, those that are made.

        Args:
            batch: The chunks, by their documents.

        Raises:
            ParlourError: The model failed, or the library cannot be written.
        """
        missing = [row for rows in batch.values() for row in rows]
        try:
            rows = self._made([self._told(title or name, *texts) for _, _, title, name, *texts in missing], stop)
            made = list(zip((row[0] for row in missing), rows, strict=False))  # fewer rows where it was stopped
            if made:
                self.check_size(len(made[0][1]))
        except Exception:
            self.failed |= {one: self.failed.get(one, 0) + 1 for one in batch}
            raise
        self.keep(made)
        for document in batch:
            self.failed.pop(document, None)
        self.moved()

    @abstractmethod
    def newest(self) -> int:
        """The id of the newest chunk; 0 where there is none. Raises StorageError."""

    @abstractmethod
    def lacking(self, after: int) -> Sequence[Found]:
        """The documents with chunks behind this one that have no vector. Raises StorageError."""

    @abstractmethod
    def missing(self, document: str, after: int, most: int) -> Sequence[Row]:
        """The first chunks of a document that have no vector, behind a place in it. Raises StorageError."""

    @abstractmethod
    def keep(self, made: Sequence[tuple[int, NDArray[np.float16]]]) -> None:
        """Keep vectors, but those of chunks that are gone by now."""

    @abstractmethod
    def _kept_size(self) -> int:
        """How many numbers the vectors have that are kept of this model; 0 where there are none."""

    def check_size(self, size: int) -> None:
        """Check that vectors of so many numbers can be compared with those that are kept.

        Raises:
            ModelMisbehavedError: They cannot: a service gives others under the same name.
        """
        if size != self._size:
            self._size = self._kept_size() or size
        if size != self._size:
            parts = PARTS if self.in_parts else 1
            raise ModelMisbehavedError(
                f"The embedding model {self.embedder.model!r} gives vectors of {size // parts} numbers, and those of "
                f"this library have {self._size // parts}.",
                hint="Set its `dimensions`, or name another model: then all of them are made anew.",
            )

    def _asked(self, question: str, script: Script | None) -> Floats | None:
        """The vector of a question, which can be compared; `None` where the model does not run, or not yet.

        `script` and what it raises are as of `like`.
        """
        known = self._last
        asked = known[1] if known is not None and known[0] == question else self._vector(question)
        if asked is None:
            return None
        self._last = question, asked  # a question of which it turns out that it is in another script is asked again
        return asked if script is None else without_common(self.embedder.model, asked, script)

    def _vector(self, question: str) -> Floats | None:
        if self.patience is not None and isinstance(self.embedder, LocalEmbedder):
            rows = self.embedder.soon([question], self.patience)
        else:
            rows = self.embedder.questions([question]) if self.embedder.ready() else None
        if rows is None:
            return None
        asked: Floats = rows[0]
        self.check_size(len(asked) * (PARTS if self.in_parts else 1))
        return asked

    @abstractmethod
    def _chunks(self) -> int:
        """How many chunks there are."""

    def _told(self, title: str, heading: str, text: str) -> list[str]:
        return parts_of(title, heading, text) if self.in_parts else [searched_text(title, heading, text)]

    def _made(self, told: list[list[str]], stop: threading.Event) -> list[NDArray[np.float16]]:
        """A row for each chunk, as far as it came before `stop`: one passage may take a fifth of a second."""
        texts = [text for one in told for text in one]
        rows: list[NDArray[np.float16]] = []
        step = self.embedder.at_once
        for at in range(0, len(texts), step):
            if stop.is_set():
                break
            rows.extend(self.embedder.passages(texts[at : at + step]).astype(np.float16))
        ends = list(accumulate(map(len, told)))
        whole = [rows[end - len(one) : end] for one, end in zip(told, ends, strict=True) if end <= len(rows)]
        # The last part stands for those that a short chunk has not.
        size = PARTS if self.in_parts else 1
        return [np.concatenate([*some, *some[-1:] * (size - len(some))]) for some in whole]


class Vectors(MadeVectors):
    """Vectors in the library's file, compared in memory.

    Args:
        file: The library's file.
        embedder: The model; `most`, `in_parts` and `moved` are as of `MadeVectors`.
        graph: Finds the nearest in a large library; without it all vectors are compared.
    """

    def __init__(
        self,
        file: IndexFile,
        embedder: Embedder,
        most: int | None = None,
        graph: NearIndex | None = None,
        *,
        in_parts: bool = False,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(embedder, most, in_parts, moved)
        self.file, self.graph = file, graph
        self._guard = threading.Lock()
        self._matrix: _Matrix | None = None
        self._everything: _Everything | None = None
        self._whole: tuple[tuple[int, int, int, int], bool] | None = None

    def made(self, documents: Collection[str]) -> dict[str, tuple[int, int]] | None:
        """Of each of these documents, how many chunks have a vector and how many there are.

        `None` where the library is too large for this model, and so no more are made.
        """
        if self.most is not None and self._chunks() > self.most:
            return None
        with self.file.reading() as db:
            found = db.execute(_MADE, (self.model, json.dumps(list(documents)))).fetchall()
        return {document: (done, total) for document, done, total in found}

    def _chunks(self) -> int:
        with self.file.reading() as db:
            (count,) = db.execute("SELECT count(*) FROM chunks").fetchone()
        return int(count)

    def newest(self) -> int:
        """As of `MadeVectors`."""
        with self.file.reading() as db:
            return int(db.execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()[0])

    def lacking(self, after: int) -> list[Found]:
        """As of `MadeVectors`."""
        with self.file.reading() as db:
            return db.execute(_LACKING, (after, self.model)).fetchall()

    def missing(self, document: str, after: int, most: int) -> list[Row]:
        """As of `MadeVectors`."""
        with self.file.reading() as db:
            return db.execute(_MISSING, (document, after, self.model, most)).fetchall()

    def _kept_size(self) -> int:
        with self.file.reading() as db:
            row = db.execute(_SIZE, (self.model,)).fetchone()
        return row[0] // np.dtype(np.float16).itemsize if row else 0

    def keep(self, made: Sequence[tuple[int, NDArray[np.float16]]]) -> None:
        """As of `MadeVectors`."""
        with self.file.writing() as db:
            db.executemany(
                # A chunk may be gone by now, with its document.
                "INSERT OR IGNORE INTO vectors (model, chunk_id, vector) "
                "SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM chunks WHERE id = ?2)",
                ((self.model, chunk_id, row.tobytes()) for chunk_id, row in made),
            )

    def like(
        self,
        question: str,
        documents: Collection[str] | None = None,
        *,
        nearest: int = 0,
        also: Sequence[int] = (),
        script: Script | None = None,
    ) -> Similarity | None:
        """The similarity of each chunk to the question.

        `None` if there is nothing to compare, while a chunk has no vector yet, or if the model does not run.

        Args:
            documents: Only chunks of these; of all by default.
            nearest: How many of the nearest are enough, so that a large library need not be compared completely; 0 is
                all.
            also: Chunks whose similarity is needed as well.
            script: Of the question, where the chunks are in another: see `core.rag.embedding.across`.

        Raises:
            ParlourError: The service that makes vectors failed.
        """
        if nearest and self.graph is not None and self.graph.now() is not None:
            return self._nearest(lambda: self._asked(question, script), documents, nearest, also)
        with self.file.reading() as db:
            matrix = self._current(db)
            found = self._all(db, matrix) if documents is None else _rows_of(matrix, ids_of(db, documents))
        if found is False or (asked := self._asked(question, script)) is None:
            return None
        if found is None:
            return Similarity(matrix.ids, _cosines(matrix.rows, asked), self.in_parts)
        # To take a few rows out is quicker than to compare all; to take most of them out is slower.
        if len(found) * 4 < len(matrix.ids):
            return Similarity(matrix.ids[found], _cosines(matrix.rows[found], asked), self.in_parts)
        return Similarity(matrix.ids[found], _cosines(matrix.rows, asked)[found], self.in_parts)

    def _nearest(
        self, ask: Callable[[], Floats | None], documents: Collection[str] | None, nearest: int, also: Sequence[int]
    ) -> Similarity | None:
        now = self.graph.now() if self.graph is not None else None
        if now is None:
            return None
        with self.file.reading() as db:
            since = self._current(db, now.change)
            known = Known(now.graph, since.ids, since.rows)
            count = self._count(db, known, (now.change, since.change), documents)
        if not count or (asked := ask()) is None:
            return None
        return near(self.file, known, asked, Wanted(documents, count, nearest, also))

    def _count(
        self, db: sqlite3.Connection, known: Known, changes: tuple[int, int], documents: Collection[str] | None
    ) -> int:
        """How many chunks are wanted; 0 if one of them has no vector. To look at all of them is done once."""
        last, count = db.execute(_WHICH).fetchone()
        of = (*changes, last, count)
        if self._whole is None or self._whole[0] != of:
            self._whole = (of, bool(known.holds(ids_of(db, None)).all()))
        if self._whole[1]:
            return count if documents is None else db.execute(_COUNT, (json.dumps(list(documents)),)).fetchone()[0]
        if documents is None:
            return 0
        wanted = ids_of(db, documents)
        return len(wanted) if known.holds(wanted).all() else 0

    def _all(self, db: sqlite3.Connection, matrix: _Matrix) -> Ids | Literal[False] | None:
        """The rows of all chunks; asking for each of them takes longer than all the rest, so that is done once."""
        # Numbers are never given twice: with the same last one and as many as before, they are the same.
        last, count = db.execute(_WHICH).fetchone()
        known = self._everything
        if known is not None and known.of == (matrix.change, last, count):
            return known.places
        if count > len(matrix.ids):
            return False
        found = _rows_of(matrix, ids_of(db, None))
        if found is not False:
            if len(found) == len(matrix.ids):
                found = None
            self._everything = _Everything((matrix.change, last, count), found)
        return found

    def _current(self, db: sqlite3.Connection, since: int = -1) -> _Matrix:
        """What is in memory, brought up to date: another process may have changed the file.

        Args:
            since: Only vectors that came after this one are wanted.
        """
        with self._guard:
            (change,) = db.execute("SELECT coalesce(max(id), 0) FROM vectors").fetchone()
            matrix = self._matrix if self._matrix is not None and self._matrix.since == since else None
            if matrix is None or matrix.change != change:
                matrix = self._matrix = self._read(db, matrix or _Matrix(*_NOTHING, since, since), change)
            return matrix

    def _read(self, db: sqlite3.Connection, known: _Matrix, change: int) -> _Matrix:
        """Read the vectors that came since; those of chunks that are gone are passed over when they are compared."""
        found = db.execute(
            "SELECT chunk_id, vector FROM vectors WHERE model = ? AND id > ? ORDER BY chunk_id",
            (self.model, known.change),
        ).fetchall()
        ids = np.fromiter((row[0] for row in found), np.int64, len(found))
        rows = np.frombuffer(b"".join(row[1] for row in found), np.float16).astype(np.float32)
        rows = rows.reshape(len(found), -1) if found else np.zeros((0, 0), np.float32)
        if len(rows) and len(known.rows) and rows.shape[1] != known.rows.shape[1]:
            known = _Matrix(*_NOTHING, known.since, known.since)  # none of these has a chunk any more: see `check_size`
        return known.plus(ids, rows, change)


def _cosines(rows: Floats, asked: Floats) -> Floats:
    """Of each row with a question; of a row of parts, that of the likest."""
    if rows.shape[1] == len(asked):
        return rows @ asked
    cosines: Floats = (rows.reshape(-1, len(asked)) @ asked).reshape(len(rows), -1).max(axis=1)
    return cosines


def _joined(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Both, one behind the other; `first` stays where it is if there is room behind it."""
    size = len(first) + len(second)
    room: NDArray[Any] | None = first.base if isinstance(first.base, np.ndarray) else None
    if room is None or room.shape[1:] != first.shape[1:] or len(room) < size:
        room = np.empty((size + size // 2, *first.shape[1:]), first.dtype)
        room[: len(first)] = first
    room[len(first) : size] = second
    return room[:size]


def _merged(first: NDArray[Any], second: NDArray[Any], at: int, order: Ids) -> NDArray[Any]:
    """Both, with what stands behind `at` in this order; all before that is copied once, which is most of the work."""
    return np.concatenate([first[:at], np.concatenate([first[at:], second])[order]])


def _rows_of(matrix: _Matrix, wanted: Ids) -> Ids | Literal[False]:
    """Where the vectors of these chunks are; `False` where one is missing, or none is wanted."""
    if not len(wanted) or len(wanted) > len(matrix.ids):
        return False
    places = np.minimum(np.searchsorted(matrix.ids, wanted), len(matrix.ids) - 1)
    return places if np.array_equal(matrix.ids[places], wanted) else False


PARTS = 4
"""The most parts of a chunk."""


def parts_of(title: str, heading: str, text: str) -> list[str]:
    """The parts, each under the heading; neighbours share a sentence.

    Args:
        title: Of the document; stands before the parts where there is no heading.
        heading: Above the chunk.
    """
    about = heading.strip() or title.strip()
    spans = sentence_spans(text)
    steps = len(spans) - 1  # from a sentence to the next
    count = max(1, min(PARTS, steps))
    found = list[str]()
    for number in range(count):
        first, last = number * steps // count, (number + 1) * steps // count
        part = text[spans[first][0] : spans[last][1]].strip() if spans else ""
        found.append(f"{about}\n{part}")
    return found
