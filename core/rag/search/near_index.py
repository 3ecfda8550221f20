"""Approximate nearest neighbours for large libraries: a graph of vectors (usearch), built in the background.

SQLite is the truth. Its table says which file holds the graph of a model, and up to which vector; later vectors are
compared one by one, and deleted chunks are skipped. A missing or damaged file is built anew.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from core.rag.shelf import Similarity

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from core.rag.embedding.base import Floats
    from core.rag.index_file import IndexFile

    Ids = NDArray[np.int64]
    Halves = NDArray[np.float16]


_log = logging.getLogger(__name__)

LARGE = 50_000
"""Vectors from which on they are put into a graph."""
_SMALL = 0.5  # of `LARGE`, below which a graph that is there is given up
_WASTE = 0.5  # the part of a graph that may be of chunks that are gone
_BATCH = 1_000  # vectors that are read at once: a library closes soon
_UNNAMED = 600.0  # seconds that a file may have no row: a process writes the file first
_GROWN = 0.1  # the part by which a graph grows before it is written anew

_TABLE = """
CREATE TABLE IF NOT EXISTS near_graphs
(model TEXT PRIMARY KEY, name TEXT NOT NULL, change INTEGER NOT NULL, size INTEGER NOT NULL, digest TEXT NOT NULL)"""
_KNOWN = "SELECT name, change, size, digest FROM near_graphs WHERE model = ?"
_KEPT = "INSERT OR REPLACE INTO near_graphs (model, name, change, size, digest) VALUES (?, ?, ?, ?, ?)"
_NEW = "SELECT id, chunk_id, vector FROM vectors WHERE model = ? AND id > ? ORDER BY id LIMIT ?"


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph, and the last change of the vectors that it knows."""

    graph: NearGraph
    change: int


class NearIndex:
    """The graph of one model's vectors in one library.

    Args:
        file: The library's file; the graph stands beside it.
    """

    def __init__(self, file: IndexFile, model: str) -> None:
        self._file = file
        self._model = model
        self._guard = threading.Lock()
        self._now: Graph | None = None
        self._looked = False
        self._kept = 0  # vectors in the file

    def now(self) -> Graph | None:
        """The graph as it is; `None` where there is none, or none yet."""
        if not self._looked:
            with self._guard:
                if not self._looked:
                    self._now = self._read() if is_installed() else None
                    self._looked = True
        return self._now

    def is_wanted(self) -> bool:
        """Whether there is a graph, or there are vectors enough for one."""
        return is_installed() and (self.now() is not None or self._count() >= LARGE)

    def fill(self, stop: threading.Event) -> bool:
        """Put every vector into the graph that is not in it yet; whether all are.

        Raises:
            ParlourError: The library cannot be read.
        """
        if not self.is_wanted():
            return True
        now, count = self.now(), self._count()
        if now is None:  # another process may have made one meanwhile
            now = self._now = self._read()
        if now is not None and (count < LARGE * _SMALL or len(now.graph) * (1 - _WASTE) > count):
            self._forget()
            now = None
            if count < LARGE:
                return True
        if not self._grow(now, stop):
            return False
        now = self._now
        if now is not None and len(now.graph) >= self._kept * (1 + _GROWN):
            self._keep(now)
        return True

    def _grow(self, now: Graph | None, stop: threading.Event) -> bool:
        """Take in what is missing. A graph that is begun is asked only when it has all that there was."""
        graph, change = (now.graph, now.change) if now is not None else (None, -1)
        while not stop.is_set():
            with self._file.reading() as db:
                rows = db.execute(_NEW, (self._model, change, _BATCH)).fetchall()
            if not rows:
                self._now = Graph(graph, change) if graph is not None else None
                return True
            vectors = np.frombuffer(b"".join(row[2] for row in rows), np.float16).reshape(len(rows), -1)
            ids = np.fromiter((row[1] for row in rows), np.int64, len(rows))
            if graph is None:
                graph = NearGraph(vectors.shape[1])
            fresh = ~np.isin(ids, graph.ids)
            graph.add(ids[fresh], vectors[fresh])
            change = rows[-1][0]
            if now is not None:  # it is asked already
                self._now = Graph(graph, change)
        return False

    def _read(self) -> Graph | None:
        known = self._known()
        if known is None:
            return None
        name, change, size, digest = known
        path = self._path(name)
        if path is None:
            return None
        try:
            graph = NearGraph.load(path, digest, size)
        except BrokenGraphError as error:
            _log.warning("The graph of the vectors is of no use and is made anew: %s", error)
            return None
        self._kept = len(graph)
        return Graph(graph, change)

    def _keep(self, now: Graph) -> None:
        """Write it to a file of its own; the one before goes. Without room on the disk it is kept in memory alone."""
        name = f"{self._file.path.stem}.near-{secrets.token_hex(8)}"
        path = self._file.path.with_name(name)
        try:
            digest = now.graph.save(path)
            with self._file.writing() as db:
                db.execute(_TABLE)
                before = db.execute(_KNOWN, (self._model,)).fetchone()
                db.execute(_KEPT, (self._model, name, now.change, now.graph.size, digest))
        except OSError as error:
            _log.warning("The graph of the vectors cannot be kept: %s", error)
            path.unlink(missing_ok=True)
            return
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self._kept = len(now.graph)
        self._drop(before[0] if before else "")

    def _forget(self) -> None:
        known = self._known()
        self._now, self._kept = None, 0
        if known is not None:
            with self._file.writing() as db:
                db.execute("DELETE FROM near_graphs WHERE model = ?", (self._model,))
            self._drop(known[0])

    def _known(self) -> tuple[str, int, int, str] | None:
        with self._file.reading() as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'near_graphs'").fetchone():
                return None
            return db.execute(_KNOWN, (self._model,)).fetchone()

    def _drop(self, name: str) -> None:
        path = self._path(name)
        if path is not None:
            with suppress(OSError):  # in use by another process, on some systems
                path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path | None:
        """Where a file of this name stands; `None` for a name that was not given here."""
        stem, _, token = name.rpartition("-")
        is_ours = stem == f"{self._file.path.stem}.near" and token.isalnum()
        return self._file.path.with_name(name) if is_ours else None

    def _count(self) -> int:
        with self._file.reading() as db:
            return count_of(db, self._model)


def sweep(file: IndexFile) -> None:
    """Remove what a process left that was killed when it had written a graph and not yet said so in the library.

    Raises:
        StorageError: The library cannot be read.
    """
    with file.reading() as db:
        there = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'near_graphs'").fetchone()
        named = {name for (name,) in db.execute("SELECT name FROM near_graphs")} if there else set[str]()
    for path in file.path.parent.glob(f"{file.path.stem}.near-*"):
        with suppress(OSError):  # gone meanwhile, or in use
            if path.name not in named and time.time() - path.stat().st_mtime > _UNNAMED:
                path.unlink()


def count_of(db: sqlite3.Connection, model: str) -> int:
    """How many vectors of a model there are."""
    return int(db.execute("SELECT count(*) FROM vectors WHERE model = ?", (model,)).fetchone()[0])


_FEW = 2_000  # chunks that are compared one by one sooner than looked for
_FARTHEST = 5_000  # chunks that the graph is asked for, before all that are wanted are compared
_MORE = 1.2  # as many as it takes, were they spread evenly, and some
_PRESENT = "SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
_WITHIN = " AND document_id IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class Known:
    """All vectors: those in the graph, and the few added since, by ascending ids."""

    graph: NearGraph
    ids: Ids
    rows: Floats

    def holds(self, wanted: Ids) -> NDArray[np.bool_]:
        """Which of these chunks have a vector."""
        return _within(self.graph.ids, wanted) | _within(self.ids, wanted)

    def likeness(self, wanted: Ids, asked: Floats) -> Similarity:
        """The cosines of chunks, exactly; those without a vector are left out."""
        wanted = wanted[self.holds(wanted)]
        old = _within(self.graph.ids, wanted)
        cosines = np.empty(len(wanted), np.float32)
        cosines[old] = self.graph.rows(wanted[old]) @ asked
        if not old.all():
            cosines[~old] = self.rows[np.searchsorted(self.ids, wanted[~old])] @ asked
        return Similarity(wanted, cosines)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The query of a search by meaning.

    Args:
        documents: Only chunks of these; of all by default.
        count: How many chunks they have.
        most: How many of the nearest are wanted.
        also: Chunks whose likeness is wanted, whatever it is.
    """

    documents: Collection[str] | None
    count: int
    most: int
    also: Sequence[int] = ()


def near(file: IndexFile, known: Known, asked: Floats, wanted: Wanted) -> Similarity:
    """The chunks nearest to a question, and some more; `known` are the vectors of the library in `file`."""
    size = len(known.graph)
    reach = min(size, int(wanted.most * max(1.0, size / wanted.count) * _MORE) + 1)
    while wanted.count > _FEW and reach <= _FARTHEST:
        found = known.graph.nearest(asked, reach)
        every = np.concatenate([found, known.ids, np.array(wanted.also, np.int64)])
        with file.reading() as db:
            here = _present(db, every, wanted.documents)
        if reach == size or np.count_nonzero(np.isin(found, here)) >= wanted.most:
            return known.likeness(here, asked)
        reach = min(size, 4 * reach)
    with file.reading() as db:
        return known.likeness(ids_of(db, wanted.documents), asked)


def _present(db: sqlite3.Connection, ids: Ids, documents: Collection[str] | None) -> Ids:
    """Those of these chunks that are in the library and in these documents, by ascending ids."""
    asked = (json.dumps(ids.tolist()), *((json.dumps(list(documents)),) if documents is not None else ()))
    query = f"{_PRESENT}{_WITHIN if documents is not None else ''} ORDER BY id"
    found = db.execute(query, asked).fetchall()
    return np.fromiter((row[0] for row in found), np.int64, len(found))


def ids_of(db: sqlite3.Connection, documents: Collection[str] | None) -> Ids:
    """The chunks of these documents, of all by default; the numbers grow."""
    if documents is None:
        found = db.execute("SELECT id FROM chunks ORDER BY id").fetchall()
    else:
        found = db.execute(
            "SELECT id FROM chunks WHERE document_id IN (SELECT value FROM json_each(?)) ORDER BY id",
            (json.dumps(list(documents)),),
        ).fetchall()
    return np.fromiter((row[0] for row in found), np.int64, len(found))


def _within(some: Ids, wanted: Ids) -> NDArray[np.bool_]:
    """Which of these numbers are among some ascending ones."""
    if not len(some):
        return np.zeros(len(wanted), bool)
    places = np.minimum(np.searchsorted(some, wanted), len(some) - 1)
    return some[places] == wanted


_LINKS, _LOOKS_ADDING, _LOOKS_SEARCHING = 16, 128, 128
_AT_ONCE = 8  # vectors that are added before a question may have its turn: some ten milliseconds
_BLOCK = 1024 * 1024


class BrokenGraphError(Exception):
    """A file is no graph, or not the one that it should be."""


def is_installed() -> bool:
    """Whether the package is there."""
    return find_spec("usearch") is not None


class NearGraph:
    """Vectors of chunks; many threads may ask while one adds.

    Args:
        size: Numbers in a vector.
    """

    def __init__(self, size: int) -> None:
        index = import_module("usearch.index")
        self._index: Any = index.Index(
            ndim=size,
            metric="ip",  # all vectors have the length 1
            dtype="f16",
            connectivity=_LINKS,
            expansion_add=_LOOKS_ADDING,
            expansion_search=_LOOKS_SEARCHING,
        )
        self._guard = threading.Lock()
        self.size = size
        self.ids: Ids = np.zeros(0, np.int64)
        """The chunks that are in it, by growing numbers."""

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, ids: Ids, rows: Halves) -> None:
        """Take in vectors of chunks that are not in it yet."""
        for at in range(0, len(ids), _AT_ONCE):
            with self._guard:
                self._index.add(ids[at : at + _AT_ONCE], rows[at : at + _AT_ONCE], threads=1)
        self.ids = np.union1d(self.ids, ids)

    def nearest(self, asked: Floats, count: int) -> Ids:
        """The chunks that are nearest to a question, all but surely; `count` at most."""
        with self._guard:
            found: Ids = self._index.search(asked, min(count, len(self.ids)), threads=1).keys
        return found.astype(np.int64)

    def rows(self, ids: Ids) -> Floats:
        """The vectors of chunks that are in it."""
        if not len(ids):
            return np.zeros((0, self.size), np.float32)
        with self._guard:
            found: tuple[Halves, ...] = self._index.get(ids)
        return np.stack(found).astype(np.float32)

    def save(self, path: Path) -> str:
        """Write it to a file; the digest of that.

        Raises:
            OSError: It cannot be written.
        """
        try:
            with self._guard:
                self._index.save(str(path))
        except RuntimeError as error:
            raise OSError(str(error)) from error
        return _digest(path)

    @classmethod
    def load(cls, path: Path, digest: str, size: int) -> NearGraph:
        """Read it from a file.

        Raises:
            BrokenGraphError: It is not the file that was written.
        """
        try:
            if _digest(path) != digest:  # the package may crash on what is damaged
                raise BrokenGraphError(f"{path.name} is damaged.")
            made = cls(size)
            made._index.load(str(path))
        except (OSError, RuntimeError, ValueError) as error:
            raise BrokenGraphError(f"{path.name} cannot be read: {type(error).__name__}.") from error
        if made._index.ndim != size:
            raise BrokenGraphError(f"{path.name} holds other vectors.")
        made.ids = np.sort(made._index.keys[:].astype(np.int64))
        return made


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
