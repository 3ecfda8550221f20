"""The quick word index of a large library (tantivy): built in the background, used only while it is up to date.

SQLite is the truth. A trigger records removals, the ids of chunks tell what is new, and whoever holds the lock brings
the folder up to date from there. Until then, and if anything is wrong with it, the answer is `None`, and SQLite's own
full-text index answers.
"""

from __future__ import annotations

import json
import logging
import secrets
import shutil
import threading
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Generator, Iterable, Sequence
    from pathlib import Path

    from core.rag.index_file import IndexFile

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
        if self._is_given_up():
            return False
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


_FORMAT = 1  # of what stands in the folder; another one is thrown away
_HEAP = 32_000_000  # bytes of memory while writing; 15 million is the least that the package takes
_PIECE = 1 << 20
_FOOTER_END = 8  # bytes: how long the footer is, and a number that says that it is one
_FOOTER_MAGIC = 1337
_LONGEST_FOOTER = 4096
_MARK = 0  # where chunks have their numbers, which begin at 1


class BrokenFolderError(Exception):
    """The folder cannot be used: damaged, of another version, being changed, or the disk is full."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Up to where an index goes.

    Args:
        library: A name that the library drew by lot.
        chunks: The last chunk that it has looked at.
        removals: The last removal that it knows of.
    """

    library: str
    chunks: int
    removals: int


def is_installed() -> bool:
    """Whether the package is there; whether it can be loaded shows when it is."""
    return find_spec("tantivy") is not None


class Snapshot:
    """One state of the index; it stays as it is while others write."""

    def __init__(self, package: Any, index: Any) -> None:
        self._query = package.Query
        self._occur = package.Occur
        self._schema = index.schema
        self._searcher = index.searcher()
        self.mark = self._read_mark(f"{_FORMAT} {package.__version__}")

    def find(self, asked: Sequence[str], k: int, documents: Collection[str] | None) -> list[tuple[int, float]]:
        """The best `k` chunks that hold any of the terms, with their BM25 scores.

        Raises:
            BrokenFolderError: A file is damaged.
        """
        with _told():
            terms = [(self._occur.Should, self._term("terms", term)) for term in asked]
            query = self._query.boolean_query(terms)
            if documents is not None:
                inside = self._query.term_set_query(self._schema, "document", list(documents))
                unscored = self._query.const_score_query(inside, 0.0)
                query = self._query.boolean_query([(self._occur.Must, query), (self._occur.Must, unscored)])
            # It makes room for as many as are asked for, and ends the process where there is none.
            most = min(k, self._searcher.num_docs)
            hits = self._searcher.search(query, most, count=False).hits
            ids = self._searcher.fast_field_values("chunk", [place for _, place in hits])
            return [(int(chunk_id), float(score)) for chunk_id, (score, _) in zip(ids, hits, strict=True)]

    def _term(self, field: str, value: Any) -> Any:
        return self._query.term_query(self._schema, field, value, index_option="freq" if field == "terms" else "basic")

    def _read_mark(self, version: str) -> Mark:
        hits = self._searcher.search(self._term("chunk", _MARK), 1, count=False).hits
        text = self._searcher.doc(hits[0][1]).get_first("mark") if hits else ""
        found, _, rest = str(text).partition("|")
        if found != version:
            raise BrokenFolderError("It is of another version, or was never finished.")
        library, chunks, removals = rest.split("|")
        return Mark(library, int(chunks), int(removals))


class WordFolder:
    """The folder, open.

    Args:
        new: Make it anew, over what is there.

    Raises:
        BrokenFolderError: It cannot be used, or the package cannot be loaded.
    """

    def __init__(self, path: Path, *, new: bool = False) -> None:
        self._path = path
        with _told():
            self._package: Any = import_module("tantivy")
            if new:
                if path.exists():
                    shutil.rmtree(path)
                path.mkdir(mode=0o700)
                self._index: Any = self._package.Index(self._schema(), str(path), reuse=False)
            else:
                _check(path)
                self._index = self._package.Index.open(str(path))
            spaces = self._package.TextAnalyzerBuilder(self._package.Tokenizer.whitespace()).build()
            self._index.register_tokenizer("spaces", spaces)
            self._index.config_reader("manual")

    def snapshot(self) -> Snapshot:
        """What was written last, by whichever process.

        Raises:
            BrokenFolderError: It cannot be used.
        """
        with _told():
            self._index.reload()
            return Snapshot(self._package, self._index)

    def waste(self) -> float:
        """The part of it, from 0 to 1, that is only in the way: chunks that are gone.

        Raises:
            BrokenFolderError: It cannot be read.
        """
        with _told():
            segments = _segments(self._path)
            gone = sum(one["deletes"]["num_deleted_docs"] for one in segments if one["deletes"])
            return gone / max(1, sum(one["max_doc"] for one in segments))

    @contextmanager
    def writing(self) -> Generator[WordWriter]:
        """Changes; one writer at a time.

        Raises:
            BrokenFolderError: It cannot be written.
        """
        with _told():
            writer = WordWriter(self._package, self._index)
            try:
                yield writer
            finally:
                writer.close()

    def _schema(self) -> Any:
        fields = self._package.SchemaBuilder()
        fields.add_text_field("terms", tokenizer_name="spaces", index_option="freq")
        fields.add_text_field("document", tokenizer_name="raw", index_option="basic")
        fields.add_unsigned_field("chunk", indexed=True, fast=True)
        fields.add_text_field("mark", stored=True, tokenizer_name="raw", index_option="basic")
        return fields.build()


class WordWriter:
    """Takes chunks in and out; nothing is seen before `commit`."""

    def __init__(self, package: Any, index: Any) -> None:
        self._package = package
        self._schema = index.schema
        self._writer = index.writer(_HEAP, 1)

    def add(self, rows: Iterable[tuple[int, str, str]]) -> None:
        """Chunks: their numbers, their documents, their terms parted by spaces."""
        for chunk_id, document_id, terms in rows:
            row = self._package.Document()
            row.add_unsigned("chunk", chunk_id)
            row.add_text("document", document_id)
            row.add_text("terms", terms)
            self._writer.add_document(row)

    def remove(self, chunk_ids: Sequence[int]) -> None:
        """Forget chunks; those that are not there do not matter."""
        # Its `delete_documents_by_term` looks for a signed number, and finds none.
        self._writer.delete_documents_by_query(self._package.Query.term_set_query(self._schema, "chunk", chunk_ids))

    def commit(self, mark: Mark) -> None:
        """All of it lands with its mark, or nothing."""
        self.remove([_MARK])
        row = self._package.Document()
        row.add_unsigned("chunk", _MARK)
        said = f"{_FORMAT} {self._package.__version__}|{mark.library}|{mark.chunks}|{mark.removals}"
        row.add_text("mark", said)
        self._writer.add_document(row)
        self._writer.commit()

    def settle(self) -> None:
        """Wait until small parts are joined to larger ones; nothing can be written after."""
        self._writer.wait_merging_threads()

    def close(self) -> None:
        """Let go; what was not committed is dropped."""
        del self._writer


@contextmanager
def _told() -> Generator[None]:
    """Whatever the package says, as one error."""
    try:
        yield
    except (ValueError, TypeError, KeyError, OSError, RuntimeError, ImportError) as error:
        raise BrokenFolderError(str(error)) from error
    except BaseException as error:
        # Where its own code gives up, the package raises something that is no `Exception`, and that has no public name.
        if type(error).__name__ != "PanicException":
            raise
        raise BrokenFolderError(str(error)) from error


def _segments(path: Path) -> list[dict[str, Any]]:
    meta: dict[str, Any] = json.loads((path / "meta.json").read_bytes())
    segments: list[dict[str, Any]] = meta["segments"]
    return segments


def _check(path: Path) -> None:
    """Compare every file with the sum at its end: the package itself reads a changed byte without a word."""
    wanted = {one["segment_id"].replace("-", "") for one in _segments(path)}
    for file in sorted(path.iterdir()):
        if file.name.partition(".")[0] in wanted and not _is_whole(file):
            raise BrokenFolderError(f"{file.suffix} is damaged.")


def _is_whole(file: Path) -> bool:
    """Whether the file's sum is right; true as well where it has none that we can read."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        stream.seek(max(0, size - _LONGEST_FOOTER))
        end = stream.read()
        length = int.from_bytes(end[-8:-4], "little")
        is_footer = int.from_bytes(end[-4:], "little") == _FOOTER_MAGIC and length <= len(end) - _FOOTER_END
        if not is_footer:
            return True
        footer = json.loads(end[-8 - length : -8])
        left = size - length - _FOOTER_END
        stream.seek(0)
        found = 0
        while left > 0 and (piece := stream.read(min(left, _PIECE))):
            found = zlib.crc32(piece, found)
            left -= len(piece)
    return footer.get("crc") == found
