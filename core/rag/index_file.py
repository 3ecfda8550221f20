"""The one SQLite file of a library: documents, chunks, pages, vectors and the keyword index.

Write-ahead logging lets several processes read while one writes; a writer waits for its turn.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from core.errors import NoSpaceError, ParlourError, StorageError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_log = logging.getLogger(__name__)

VERSION = 4
_WAIT = 30.0  # seconds for another process to finish writing
_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    pages INTEGER,
    chunks INTEGER NOT NULL,
    status TEXT NOT NULL,
    note TEXT NOT NULL,
    title TEXT NOT NULL,
    size INTEGER NOT NULL,
    number INTEGER NOT NULL,
    scanned INTEGER NOT NULL DEFAULT 0,
    tables INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    invisible INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    text TEXT NOT NULL,
    page INTEGER,
    heading TEXT NOT NULL,
    rectangles TEXT NOT NULL,
    overlap INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS chunks_of_document ON chunks (document_id, position);
CREATE TABLE IF NOT EXISTS pages (
    document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    page INTEGER NOT NULL,
    width REAL NOT NULL,
    height REAL NOT NULL,
    text_box TEXT,
    PRIMARY KEY (document_id, page)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS figures (
    document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    page INTEGER,
    label TEXT NOT NULL,
    caption TEXT NOT NULL,
    place TEXT NOT NULL,
    source TEXT NOT NULL,
    PRIMARY KEY (document_id, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    model TEXT NOT NULL,
    chunk_id INTEGER NOT NULL REFERENCES chunks (id) ON DELETE CASCADE,
    vector BLOB NOT NULL,
    UNIQUE (chunk_id, model)
);
"""


# What later versions added to tables that are there already.
_ADDED = {
    "scanned": "ALTER TABLE documents ADD COLUMN scanned INTEGER NOT NULL DEFAULT 0",
    "tables": "ALTER TABLE documents ADD COLUMN tables INTEGER NOT NULL DEFAULT 0",
    "seconds": "ALTER TABLE documents ADD COLUMN seconds REAL NOT NULL DEFAULT 0",
    "invisible": "ALTER TABLE documents ADD COLUMN invisible INTEGER NOT NULL DEFAULT 0",
}


class DamagedIndexError(StorageError):
    """The file is no database any more, or a part of it cannot be read."""

    key = "library_damaged"


class IndexFile:
    """The index file, with a pool of connections.

    Args:
        path: The file; made where there is none.

    Raises:
        DamagedIndexError: It is there, but it is no such database.
        StorageError: It was made by a newer version of this program.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        self._closed = False
        if _given_up(path).exists():
            raise DamagedIndexError("The library's file was found damaged.")
        try:
            with self.reading() as db:
                is_ready = self._is_ready(db)
            if not is_ready:
                with self.writing() as db:
                    self._make_tables(db)
            self._identity = _identity(path)
        except BaseException:
            self.close()
            raise

    def is_intact(self) -> bool:
        """Whether it is open, and the path still leads to the opened file, not empty.

        A file that is deleted while it is open would work on, and be gone once it is closed.
        """
        return not self._closed and self._identity in {None, _identity(self.path)}

    def _is_ready(self, db: sqlite3.Connection) -> bool:
        """Whether the tables exist; checked without writing, as another process may be creating them."""
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StorageError(
                f"The library {self.path.parent.name!r} was made by a newer Parlour.",
                hint="Update Parlour.",
                key="library_newer",
            )
        if version < VERSION:
            return False
        # Damage shows at once, not in the middle of somebody's question.
        for table in ("documents", "chunks", "pages"):
            db.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - three literal names
        return True

    @staticmethod
    def _make_tables(db: sqlite3.Connection) -> None:
        for statement in _SCHEMA.split(";\n"):
            db.execute(statement)
        there = {row[1] for row in db.execute("PRAGMA table_info(documents)")}
        for column, statement in _ADDED.items():
            if column not in there:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A connection that sees one state of the library.

        Raises:
            StorageError: The file cannot be read.
        """
        with self._connection() as db, _translated():
            yield db

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """A connection in a transaction: all of it lands, or nothing.

        Raises:
            NoSpaceError: The disk is full.
            StorageError: The file cannot be written.
        """
        with self._connection() as db, _translated():
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def give_up(self) -> None:
        """Record that the file is damaged beyond repair, so that the next opening starts anew."""
        _given_up(self.path).touch()

    def close(self) -> None:
        """Close all connections; those in use close after use."""
        with self._guard:
            self._closed = True
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        with self._guard:
            if self._closed:
                raise StorageError("The library is closed.", key="library_closed")
            db = self._idle.pop() if self._idle else None
        db = db or self._connected()
        try:
            yield db
        except BaseException:  # whatever it was: nobody knows how the connection stands
            db.close()
            raise
        with self._guard:
            if not self._closed:
                self._idle.append(db)
                return
        db.close()

    def _connected(self) -> sqlite3.Connection:
        with _translated():
            with suppress(OSError):  # SQLite says why
                if not self.path.exists():
                    self.path.touch(mode=0o600)  # what documents say is their owner's; SQLite's other files follow it
            db = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
            try:
                _log_ahead(db)
                db.execute("PRAGMA synchronous = FULL")
                db.execute("PRAGMA foreign_keys = ON")
            except BaseException:
                db.close()
                raise
            return db


def _identity(path: Path) -> tuple[int, int] | None:
    """The identity of a file, apart from its name; `None` if it is missing or empty."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_size else None


def _log_ahead(db: sqlite3.Connection) -> None:
    """Turn write-ahead logging on; once on, the file stays so."""
    (mode,) = db.execute("PRAGMA journal_mode").fetchone()
    if mode == "wal":
        return
    try:
        db.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError:
        _log.debug("Another process is at it: this switch does not wait its turn as writing does.")


@contextmanager
def _translated() -> Generator[None]:
    """Raise SQLite's errors as ours."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise translated(error) from error


def translated(error: sqlite3.DatabaseError | OSError) -> ParlourError:
    """Our error for an error of the disk or the database."""
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_FULL or (isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}):
        return NoSpaceError("The disk is full: the document was not kept.", hint="Free some space and try again.")
    if code is not None and code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return DamagedIndexError(f"The library's file is damaged: {error}.")
    if "malformed" in str(error) or "not a database" in str(error):
        return DamagedIndexError(f"The library's file is damaged: {error}.")
    # An error of the system names the file with its whole path, which is nobody's business.
    why = error.strerror or type(error).__name__ if isinstance(error, OSError) else error
    return StorageError(f"The library cannot be used: {why}.")


def _given_up(path: Path) -> Path:
    """Exists from when a file was found damaged beyond repair until it is moved aside."""
    return path.with_name(f"{path.name}-given-up")


def move_aside(path: Path) -> Path:
    """Rename a damaged file and its companions; nothing of it is deleted. Raises OSError."""
    number = 1
    while (kept := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
        number += 1
    for ending in ("", "-wal", "-shm"):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.replace(kept.with_name(kept.name + ending))
    _given_up(path).unlink(missing_ok=True)
    _log.error("The library's file was damaged; it is kept as %s.", kept.name)
    return kept
