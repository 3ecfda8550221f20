"""Search by words: SQLite's full-text index over our own terms, ranked by BM25.

In a large library a quicker index says the same, whenever it is up to date.
"""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

from core.rag.records import chunk_texts
from core.rag.search.nearness import LOOKED_AT, nearest_first
from core.rag.search.terms import terms

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.rag.index_file import IndexFile
    from core.rag.search.base import Entry
    from core.rag.search.word_index import WordIndex
    from core.rag.vectors import Vectors

# Terms come ready made: SQLite only has to part them at spaces.
_TABLE = "CREATE VIRTUAL TABLE IF NOT EXISTS chunk_terms USING fts5 (terms, tokenize = 'unicode61 remove_diacritics 0')"
_LONGEST = 20_000  # letters of a question that are looked at; somebody may paste a book
_MOST_TERMS = 200
_FIND = "SELECT rowid, -rank FROM chunk_terms WHERE chunk_terms MATCH ?"
_WITHIN = """ AND rowid IN
    (SELECT id FROM chunks WHERE document_id IN (SELECT value FROM json_each(?)))"""


class KeywordSearcher:
    """Words in any order; rare ones count more.

    Args:
        file: The library's file.
        vectors: Not needed.
        quick: The quicker index, if there is one.
    """

    def __init__(self, file: IndexFile, vectors: Sequence[Vectors] = (), quick: WordIndex | None = None) -> None:
        del vectors
        self._file = file
        self._quick = quick
        with file.reading() as db:
            is_there = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'chunk_terms'").fetchone()
        if not is_there:
            with file.writing() as db:
                self.rebuild(db, chunk_texts(db))

    def prepare(self, texts: Sequence[str]) -> list[Any]:
        """The texts' terms, parted by spaces."""
        return [" ".join(terms(text)) for text in texts]

    def add(self, db: sqlite3.Connection, chunk_ids: Sequence[int], prepared: Sequence[Any]) -> None:
        """Index the chunks' terms."""
        rows = zip(chunk_ids, prepared, strict=True)
        db.executemany("INSERT INTO chunk_terms (rowid, terms) VALUES (?, ?)", rows)

    def remove(self, db: sqlite3.Connection, chunk_ids: Sequence[int]) -> None:
        """Take the chunks' terms out."""
        db.executemany("DELETE FROM chunk_terms WHERE rowid = ?", ((chunk_id,) for chunk_id in chunk_ids))

    def rebuild(self, db: sqlite3.Connection, entries: Sequence[Entry]) -> None:
        """Throw the table away and fill a new one."""
        _forget(db)
        db.execute(_TABLE)
        self.add(db, [chunk_id for chunk_id, _ in entries], self.prepare([text for _, text in entries]))

    def find(self, question: str, k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """Chunks that hold any of the question's terms, by BM25, and by how close to each other these stand."""
        asked = list(dict.fromkeys(terms(question[:_LONGEST])))[:_MOST_TERMS]
        if not asked or k < 1:
            return []
        if documents is not None and self._are_all(documents):
            documents = None
        most = max(k, LOOKED_AT)
        found = self._quick.find(asked, most, documents) if self._quick else None
        if found is None:
            found = self._within_sqlite(asked, most, documents)
        with self._file.reading() as db:
            return nearest_first(db, asked, found)[:k]

    def _are_all(self, documents: Collection[str]) -> bool:
        """Whether no document is left out: to compare every chunk's document would take longer than the search."""
        with self._file.reading() as db:
            left = db.execute(
                "SELECT 1 FROM documents WHERE id NOT IN (SELECT value FROM json_each(?)) LIMIT 1",
                (json.dumps(list(documents)),),
            ).fetchone()
        return left is None

    def _within_sqlite(
        self, asked: Sequence[str], k: int, documents: Collection[str] | None
    ) -> list[tuple[int, float]]:
        values: list[str | int] = [" OR ".join(f'"{term}"' for term in asked)]
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
