"""Notes that models made of documents, kept in the library's file so that nothing is read and paid for twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.rag.index_file import IndexFile
    from core.rag.shelf import Notes

_MOST_KEPT = 20_000  # rows
_MOST_REMEMBERED = 500  # of about two thousand letters each
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS readings (
        key TEXT NOT NULL, document_id TEXT NOT NULL, notes TEXT NOT NULL, PRIMARY KEY (key, document_id))""",
    "CREATE INDEX IF NOT EXISTS readings_of_document ON readings (document_id)",
    # Notes of several documents go with the first of them that goes.
    """CREATE TRIGGER IF NOT EXISTS readings_of_deleted AFTER DELETE ON documents BEGIN
        DELETE FROM readings WHERE key IN (SELECT key FROM readings WHERE document_id = OLD.id); END""",
)


class Readings:
    """The notes of one library. The table is made when the first one is kept."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def kept(self, keys: Collection[str]) -> Mapping[str, str]:
        """Those of the notes that there are, by their keys.

        Raises:
            StorageError: The library cannot be read.
        """
        with self._file.reading() as db:
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'readings'").fetchone() is None:
                return {}
            rows = db.execute(
                "SELECT key, notes FROM readings WHERE key IN (SELECT value FROM json_each(?))",
                (json.dumps(list(keys)),),
            )
            return dict(rows.fetchall())

    def keep(self, key: str, documents: Sequence[str], notes: str) -> None:
        """Keep notes until one of the documents goes; of very many the oldest go.

        Args:
            documents: Ids of those that the notes are of. Where one is gone by now, nothing is kept.

        Raises:
            StorageError: The library cannot be written.
        """
        wanted = sorted(set(documents))
        with self._file.writing() as db:
            for statement in _SCHEMA:
                db.execute(statement)
            (there,) = db.execute(
                "SELECT count(*) FROM documents WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(wanted),)
            ).fetchone()
            if there < len(wanted):
                return
            db.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?, ?)", [(key, one, notes) for one in wanted])
            db.execute(
                "DELETE FROM readings WHERE rowid <= (SELECT max(rowid) FROM readings) - ?",
                (_MOST_KEPT,),
            )


class RememberedNotes:
    """Notes that are kept, and those that are only remembered.

    What a conversation that goes by itself has read is remembered in memory alone: nothing of its question, or of what
    was found for it, stays with a library that outlives it.

    Args:
        notes: Those that are kept.
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._remembered: dict[str, str] = {}

    def remember(self, key: str, notes: str) -> None:
        """Have notes at hand until the library is closed; of very many the oldest go."""
        self._remembered[key] = notes
        while len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.pop(next(iter(self._remembered)), None)  # another thread may have been faster

    def kept(self, keys: Collection[str]) -> Mapping[str, str]:
        """As of `Notes`, with those that are remembered."""
        remembered = {key: notes for key in keys if (notes := self._remembered.get(key)) is not None}
        return {**remembered, **self._notes.kept(keys)}

    def keep(self, key: str, documents: Sequence[str], notes: str) -> None:
        """As of `Notes`."""
        self._notes.keep(key, documents, notes)
