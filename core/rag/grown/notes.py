"""Notes that models made of documents, in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.rag.grown.connections import one
from core.rag.shelf import writable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.rag.grown.connections import Connections, Db

_MOST_KEPT = 20_000  # rows of one library
_KEEP = """
INSERT INTO shelf_notes (shelf, key, document_id, notes) VALUES (%s, %s, %s, %s)
ON CONFLICT (shelf, key, document_id) DO UPDATE SET notes = excluded.notes"""
_OLDEST = """
DELETE FROM shelf_notes WHERE shelf = %s AND number <= (
    SELECT number FROM shelf_notes WHERE shelf = %s ORDER BY number DESC OFFSET %s LIMIT 1)"""


class PgNotes:
    """The `Notes` of one library.

    Args:
        shelf: The library's number.
    """

    def __init__(self, server: Connections, shelf: int) -> None:
        self._server, self._shelf = server, shelf

    def kept(self, keys: Collection[str]) -> Mapping[str, str]:
        """As of `Notes`."""
        asked = "SELECT key, notes FROM shelf_notes WHERE shelf = %s AND key = ANY(%s)"
        with self._server.reading() as db:
            rows = db.execute(asked, [self._shelf, [writable(key) for key in keys]]).fetchall()
        return dict(rows)  # pyright: ignore[reportUnknownVariableType, reportArgumentType]

    def keep(self, key: str, documents: Sequence[str], notes: str) -> None:
        """As of `Notes`."""
        wanted = sorted({writable(one) for one in documents})
        with self._server.writing() as db:
            db.execute("SELECT 1 FROM shelves WHERE id = %s FOR SHARE", [self._shelf])
            asked = "SELECT count(*) FROM shelf_documents WHERE shelf = %s AND id = ANY(%s)"
            if one(db, asked, [self._shelf, wanted])[0] < len(wanted):
                return
            with db.cursor() as cursor:
                rows = [(self._shelf, writable(key), document, writable(notes)) for document in wanted]
                cursor.executemany(_KEEP, rows)
            db.execute(_OLDEST, [self._shelf, self._shelf, _MOST_KEPT])

    def forget(self, db: Db, document_id: str) -> None:
        """Delete the notes that a document is in: of several documents they go with the first that goes."""
        db.execute(
            "DELETE FROM shelf_notes WHERE shelf = %s AND key IN "
            "(SELECT key FROM shelf_notes WHERE shelf = %s AND document_id = %s)",
            [self._shelf, self._shelf, writable(document_id)],
        )
