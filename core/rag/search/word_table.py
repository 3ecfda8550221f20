"""The words of the embedded shelf: SQLite's full-text index over our own terms.

In a large library the quick index of `word_index.py` gives the same, whenever it is up to date.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

from core.rag.records import chunk_texts
from core.rag.search.terms import terms

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.rag.index_file import IndexFile
    from core.rag.search.word_index import WordIndex

# Terms come ready made: SQLite only has to part them at spaces.
_TABLE = "CREATE VIRTUAL TABLE IF NOT EXISTS chunk_terms USING fts5 (terms, tokenize = 'unicode61 remove_diacritics 0')"
_FIND = "SELECT rowid, -rank FROM chunk_terms WHERE chunk_terms MATCH ?"
_WITHIN = """ AND rowid IN
    (SELECT id FROM chunks WHERE document_id IN (SELECT value FROM json_each(?)))"""
# Chunk id, and the text under which it is found: title, headings and its own words.
IndexEntry = tuple[int, str]


class WordTable:
    """The table of one library, and what ways of searching ask of its file; made where it is missing.

    `add` and `remove` run in the transaction that changes the chunks, while others wait to write; slow work is done
    before, in `prepare`.

    Args:
        quick: The quicker index, if there is one.
    """

    def __init__(self, file: IndexFile, quick: WordIndex | None = None) -> None:
        self._file = file
        self.quick = quick
        with file.reading() as db:
            is_there = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'chunk_terms'").fetchone()
        if not is_there:
            with file.writing() as db:
                self.rebuild(db, chunk_texts(db))

    def prepare(self, texts: Sequence[str]) -> list[str]:
        """The texts' terms, parted by spaces."""
        return [" ".join(terms(text)) for text in texts]

    def add(self, db: sqlite3.Connection, chunk_ids: Sequence[int], prepared: Sequence[str]) -> None:
        """Index the chunks' terms."""
        rows = zip(chunk_ids, prepared, strict=True)
        db.executemany("INSERT INTO chunk_terms (rowid, terms) VALUES (?, ?)", rows)

    def remove(self, db: sqlite3.Connection, chunk_ids: Sequence[int]) -> None:
        """Take the chunks' terms out."""
        db.executemany("DELETE FROM chunk_terms WHERE rowid = ?", ((chunk_id,) for chunk_id in chunk_ids))

    def rebuild(self, db: sqlite3.Connection, entries: Sequence[IndexEntry]) -> None:
        """Throw the table away and fill a new one."""
        _forget(db)
        db.execute(_TABLE)
        self.add(db, [chunk_id for chunk_id, _ in entries], self.prepare([text for _, text in entries]))

    def words(self, asked: Sequence[str], k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """As of `Found`."""
        if documents is not None and self._are_all(documents):
            documents = None
        found = self.quick.find(asked, k, documents) if self.quick else None
        return self._within_sqlite(asked, k, documents) if found is None else found

    def all_words(
        self,
        asked: Sequence[str],
        k: int,
        documents: Collection[str] | None = None,
        *,
        either: Sequence[str] = (),
        begun: str = "",
    ) -> list[tuple[int, float]]:
        """As of `Found`."""
        if documents is not None and self._are_all(documents):
            documents = None
        clauses = [f'"{term}"' for term in asked]
        ends = [*(f'"{term}"' for term in either), *([f'"{begun}"*'] if begun else [])]
        if ends:
            clauses.append(f"({' OR '.join(ends)})")
        return self._matching(" AND ".join(clauses), k, documents)

    def terms_of(self, chunk_ids: Sequence[int]) -> dict[int, str]:
        """As of `Found`."""
        with self._file.reading() as db:
            rows = db.execute(
                "SELECT rowid, terms FROM chunk_terms WHERE rowid IN (SELECT value FROM json_each(?))",
                (json.dumps(list(chunk_ids)),),
            )
            return dict(rows.fetchall())

    def texts_of(self, chunk_ids: Sequence[int]) -> list[str]:
        """As of `Found`."""
        with self._file.reading() as db:
            rows = db.execute(
                "SELECT text FROM chunks WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(chunk_ids)),)
            )
            return [text for (text,) in rows]

    def beginnings(self, k: int, documents: Collection[str] | None = None) -> list[tuple[int, int]]:
        """As of `Found`."""
        sql = "SELECT chunks.id, position FROM chunks JOIN documents ON documents.id = document_id"
        values: list[str | int] = []
        if documents is not None:
            sql += " WHERE document_id IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(documents)))
        with self._file.reading() as db:
            return db.execute(f"{sql} ORDER BY position, number LIMIT ?", [*values, k]).fetchall()

    def _are_all(self, documents: Collection[str]) -> bool:
        """Whether these are all documents: comparing every chunk's document would take longer than the search."""
        with self._file.reading() as db:
            left = db.execute(
                "SELECT 1 FROM documents WHERE id NOT IN (SELECT value FROM json_each(?)) LIMIT 1",
                (json.dumps(list(documents)),),
            ).fetchone()
        return left is None

    def _within_sqlite(
        self, asked: Sequence[str], k: int, documents: Collection[str] | None
    ) -> list[tuple[int, float]]:
        return self._matching(" OR ".join(f'"{term}"' for term in asked), k, documents)

    def _matching(self, match: str, k: int, documents: Collection[str] | None) -> list[tuple[int, float]]:
        values: list[str | int] = [match]
        sql = _FIND
        if documents is not None:
            sql += _WITHIN
            values.append(json.dumps(list(documents)))
        with self._file.reading() as db:
            rows: list[tuple[int, float]] = db.execute(f"{sql} ORDER BY rank LIMIT ?", [*values, k]).fetchall()
        return rows


def _forget(db: sqlite3.Connection) -> None:
    """Drop the table; one that is too damaged to be dropped is struck from the schema."""
    try:
        db.execute("DROP TABLE IF EXISTS chunk_terms")
    except sqlite3.DatabaseError:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("DELETE FROM sqlite_master WHERE name = 'chunk_terms'")
        db.execute("PRAGMA writable_schema = RESET")
        for part in ("data", "idx", "content", "docsize", "config"):
            db.execute(f"DROP TABLE IF EXISTS chunk_terms_{part}")
