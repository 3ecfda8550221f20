"""No search at all: the first chunks of each document, for questions about the whole of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from core.rag.search.keyword import KeywordSearcher

if TYPE_CHECKING:
    from collections.abc import Collection


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
