"""The quick word index of a large library: made in the background, and asked only while it says what the library says.

SQLite is the truth. A trigger writes down what is removed, the numbers of chunks say what is new, and whoever holds the
lock brings the folder up to date from there. Until then, and wherever anything is wrong with it, the answer is `None`,
and SQLite's own full-text index answers.
"""

from __future__ import annotations

import logging
import secrets
import threading
from typing import TYPE_CHECKING

from core.rag.search.word_folder import BrokenFolderError, Mark, WordFolder, is_installed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Sequence

    from core.rag.index_file import IndexFile
    from core.rag.search.word_folder import Snapshot, WordWriter

_log = logging.getLogger(__name__)

LARGE = 10_000
"""Chunks from which on a library has such an index."""
_BATCH = 1_000  # chunks that are read at once: a library closes soon
_KEPT_AFTER = 20_000  # chunks after which a long piece of work is kept
_WASTE = 0.5  # the part of an index that may be of chunks that are gone
_MOST_FAILURES = 3  # after which this process does without
_GATHER = 0.2  # seconds in which more changes may come, or another process be done

_TABLES = """
CREATE TABLE IF NOT EXISTS word_index (library TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS chunk_removals (id INTEGER PRIMARY KEY AUTOINCREMENT, chunk_id INTEGER NOT NULL);
CREATE TRIGGER IF NOT EXISTS chunk_is_removed AFTER DELETE ON chunks
BEGIN INSERT INTO chunk_removals (chunk_id) VALUES (old.id); END"""
_STATE = """
SELECT library, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'chunks'), 0),
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'chunk_removals'), 0) FROM word_index"""
_REMOVED = "SELECT chunk_id FROM chunk_removals WHERE id > ? AND id <= ?"
# `CROSS` keeps the order: the chunks' numbers lead, not a walk through all terms.
_NEW = """
SELECT chunks.id, document_id, terms FROM chunks CROSS JOIN chunk_terms ON chunk_terms.rowid = chunks.id
WHERE chunks.id > ? AND chunks.id <= ? ORDER BY chunks.id LIMIT ?"""


class WordIndex:
    """The index of one library.

    Args:
        file: The library's file; the folder stands beside it.
        on_old: Called when a question found it behind the library.
    """

    def __init__(self, file: IndexFile, on_old: Callable[[], None]) -> None:
        self._file = file
        self._on_old = on_old
        self._path = file.path.with_name(f"{file.path.stem}.words")
        self._folder: WordFolder | None = None
        self._snapshot: Snapshot | None = None
        self._is_known = False  # whether the library's file says that there is one
        self._is_doubtful = False  # a question failed on it
        self._failures = 0
        self._guard = threading.Lock()

    def is_wanted(self) -> bool:
        """Whether the library has such an index, or is large enough to be given one."""
        if self._is_given_up():
            return False
        with self._file.reading() as db:
            return self._exists(db) or (_is_large(db) and is_installed())

    def find(self, asked: Sequence[str], k: int, documents: Collection[str] | None) -> list[tuple[int, float]] | None:
        """The best `k` chunks that hold any of the terms; `None` where the index cannot say."""
        if self._is_given_up():
            return None
        with self._file.reading() as db:
            state = _state(db) if self._exists(db) else None
        if state is None:
            return None
        snapshot = self._snapshot
        if snapshot is not None and snapshot.mark == state:
            try:
                return snapshot.find(asked, k, documents)
            except BrokenFolderError as error:
                self._doubt(snapshot, error)
        self._on_old()
        return None

    def fill(self, stop: threading.Event) -> bool:
        """Bring the index up to date, whoever else is at it; whether it is.

        Raises:
            ParlourError: The library cannot be read.
        """
        if not self.is_wanted():
            return True
        self._begin()
        while not stop.is_set() and not self._is_given_up():
            if self._is_current():
                return True
            stop.wait(_GATHER)
            try:
                self._alone(stop)
            except BrokenFolderError as error:
                self._doubt(self._snapshot, error)
        return False

    def close(self) -> None:
        """Let go of the folder."""
        self._folder = self._snapshot = None

    def _exists(self, db: sqlite3.Connection) -> bool:
        if not self._is_known:
            found = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'word_index'").fetchone()
            self._is_known = found is not None
        return self._is_known

    def _is_given_up(self) -> bool:
        return self._failures >= _MOST_FAILURES

    def _doubt(self, snapshot: Snapshot | None, error: BrokenFolderError) -> None:
        """It is made anew, once; what fails again would fail for ever. Many questions at once may find it broken."""
        with self._guard:
            if snapshot is self._snapshot:
                _log.warning("The quick word index is of no use and is made anew: %s", error)
                self._snapshot = None
                self._is_doubtful = True
                self._failures += 1

    def _begin(self) -> None:
        """From now on the library's file says what is removed."""
        if self._is_known:
            return
        with self._file.writing() as db:
            for statement in _TABLES.split(";\n", 2):
                db.execute(statement)
            db.execute(
                "INSERT INTO word_index SELECT ? WHERE NOT EXISTS (SELECT 1 FROM word_index)", (secrets.token_hex(8),)
            )

    def _is_current(self) -> bool:
        self._look()
        with self._file.reading() as db:
            state = _state(db)
        return not self._is_doubtful and self._snapshot is not None and self._snapshot.mark == state

    def _look(self) -> None:
        """See what the folder holds now; nothing where it cannot be used."""
        try:
            self._folder = self._folder or WordFolder(self._path)
            self._snapshot = self._folder.snapshot()
        except BrokenFolderError as error:
            _log.debug("The quick word index cannot be used: %s", error)
            self.close()

    def _alone(self, stop: threading.Event) -> None:
        """Bring the folder up to date, unless another process is doing so."""
        from filelock import FileLock, Timeout

        try:
            with FileLock(self._path.with_name(f"{self._path.name}.lock"), timeout=0):
                self._look()
                self._catch_up(stop)
        except Timeout:
            _log.debug("Another process writes the quick word index.")
        except OSError as error:
            raise BrokenFolderError(str(error)) from error

    def _catch_up(self, stop: threading.Event) -> None:
        with self._file.reading() as db:
            state = _state(db)
            gone = self._removed(db, state)
        if gone is None or self._folder is None or self._snapshot is None:
            self.close()
            self._folder = WordFolder(self._path, new=True)
            self._is_doubtful = False
            gone, known = [], Mark(state.library, 0, state.removals)
        else:
            known = self._snapshot.mark
        with self._folder.writing() as writer:
            if gone:
                writer.remove(gone)
            self._take_in(writer, known.chunks, state, stop)
        if gone:
            with self._file.writing() as db:
                db.execute("DELETE FROM chunk_removals WHERE id <= ?", (state.removals,))

    def _removed(self, db: sqlite3.Connection, state: Mark) -> list[int] | None:
        """The chunks that were removed since the index was written; `None` where it has to be made anew."""
        if self._snapshot is None or self._folder is None or self._is_doubtful or self._folder.waste() > _WASTE:
            return None
        mark = self._snapshot.mark
        if mark.library != state.library or mark.chunks > state.chunks or mark.removals > state.removals:
            return None
        gone = [row[0] for row in db.execute(_REMOVED, (mark.removals, state.removals))]
        # An old copy of the folder may have been put back, from before removals that are forgotten by now.
        return gone if len(gone) == state.removals - mark.removals else None

    def _take_in(self, writer: WordWriter, last: int, state: Mark, stop: threading.Event) -> None:
        kept = last
        while last < state.chunks and not stop.is_set():
            with self._file.reading() as db:
                rows = db.execute(_NEW, (last, state.chunks, _BATCH)).fetchall()
            writer.add(rows)
            last = rows[-1][0] if len(rows) == _BATCH else state.chunks
            if last - kept >= _KEPT_AFTER:
                writer.commit(Mark(state.library, last, state.removals))
                kept = last
        writer.commit(Mark(state.library, last, state.removals))
        if not stop.is_set():
            writer.settle()


def _state(db: sqlite3.Connection) -> Mark:
    return Mark(*db.execute(_STATE).fetchone())


def _is_large(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM chunks LIMIT 1 OFFSET ?", (LARGE,)).fetchone() is not None
