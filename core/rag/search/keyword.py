"""Search by words: SQLite's full-text index over our own terms, ranked by BM25 and by proximity of the terms.

In a large library the quick index of `word_index.py` gives the same, whenever it is up to date.
"""

from __future__ import annotations

import json
import sqlite3
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from core.rag.prose import ideographs
from core.rag.records import chunk_texts
from core.rag.search.terms import terms

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.rag.index_file import IndexFile
    from core.rag.search.base import IndexEntry
    from core.rag.search.stored_vectors import Vectors
    from core.rag.search.word_index import WordIndex

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

    def rebuild(self, db: sqlite3.Connection, entries: Sequence[IndexEntry]) -> None:
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


LOOKED_AT = 20
_STRETCH = 12  # terms: of a sentence or so, without its stop words
_WEIGHT = 0.5  # what all of them within one stretch add to the score, as a share of it
_FOLLOWING = 0.75  # what all neighbours of the question that are neighbours there add


def nearest_first(
    db: sqlite3.Connection, asked: Sequence[str], found: Sequence[tuple[int, float]]
) -> list[tuple[int, float]]:
    """What was found, the first `LOOKED_AT` in the order of their raised scores.

    Args:
        asked: The question's terms, each once.
        found: Chunk ids with scores, the best first.
    """
    first = found[:LOOKED_AT]
    if len(asked) < 2 or len(first) < 2:  # there is nothing to compare
        return list(found)
    # Of Chinese the pairs alone: a run's characters all stand before its pairs, so the two kinds are never close.
    wanted = frozenset(term for term in asked if len(term) > 1 or term.isascii()) or frozenset(asked)
    rows = db.execute(
        "SELECT rowid, terms FROM chunk_terms WHERE rowid IN (SELECT value FROM json_each(?))",
        (json.dumps([chunk_id for chunk_id, _ in first]),),
    )
    # Chinese pairs overlap: where one stands the next mostly does, which says nothing more.
    pairs = frozenset(pairwise(term for term in asked if term in wanted and not ideographs(term)))
    more = {chunk_id: _more(terms.split(), wanted, pairs) for chunk_id, terms in rows}
    raised = [(chunk_id, score * (1 + more.get(chunk_id, 0.0))) for chunk_id, score in first]
    raised.sort(key=lambda one: -one[1])
    return [*raised, *found[LOOKED_AT:]]


def _more(terms: Sequence[str], wanted: Collection[str], pairs: Collection[tuple[str, str]]) -> float:
    """What the places of the wanted terms add to a passage's score, as a share of it."""
    places = [at for at, term in enumerate(terms) if term in wanted]
    more = _WEIGHT * _together(terms, places) / len(wanted)
    if pairs:
        following = {pair for at in places if (pair := tuple(terms[at : at + 2])) in pairs}
        more += _FOLLOWING * len(following) / len(pairs)
    return more


def _together(terms: Sequence[str], places: Sequence[int]) -> int:
    """The most different terms at these places within one stretch."""
    best = 0
    for number, start in enumerate(places):
        if len(places) - number <= best:
            break
        inside: set[str] = set()
        for at in places[number:]:
            if at - start >= _STRETCH:
                break
            inside.add(terms[at])
        best = max(best, len(inside))
    return best


class FrontPageSearcher(KeywordSearcher):
    """The beginnings of the documents, in the order in which these came; earlier chunks score higher."""

    def find(self, question: str, k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """The first `k` chunks, taken from all documents in turns."""
        del question
        sql = "SELECT chunks.id, position FROM chunks JOIN documents ON documents.id = document_id"
        values: list[str | int] = []
        if documents is not None:
            sql += " WHERE document_id IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(documents)))
        with self._file.reading() as db:
            rows = db.execute(f"{sql} ORDER BY position, number LIMIT ?", [*values, max(k, 0)]).fetchall()
        return [(chunk_id, 1.0 / (1 + position)) for chunk_id, position in rows]
