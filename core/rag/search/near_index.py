"""The graph of a large library's vectors: made in the background, kept beside the library, and only ever a help.

SQLite is the truth. Its table says which file holds the graph of a model, and up to which vector; what came later is
compared one by one, and what is gone is passed over. A file that is missing or damaged is made anew.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.rag.search.near_graph import BrokenGraphError, NearGraph, is_installed

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from core.rag.index_file import IndexFile

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
        model: Whose vectors.
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
