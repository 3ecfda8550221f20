"""Vectors of passages in PostgreSQL, compared by pgvector within one library: all of them, where it is small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from core.rag.grown.connections import one
from core.rag.grown.near import LEAST, PgGraph
from core.rag.search.stored_vectors import PARTS, MadeVectors
from core.rag.shelf import Similarity, writable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    from core.rag.embedding.across import Script
    from core.rag.embedding.base import Embedder, Floats
    from core.rag.grown.connections import Connections
    from core.rag.grown.making import HeldJob
    from core.rag.search.turns import Found, Row

_NEWEST = "SELECT coalesce(max(id), 0) FROM passages WHERE owner = %(owner)s AND shelf = %(shelf)s"
# The document is named too, though the passage alone says it: so its own vectors are looked at, not all of the library.
_NONE = """NOT EXISTS (
    SELECT 1 FROM passage_vectors v WHERE v.owner = p.owner AND v.shelf = p.shelf AND v.model = %(model)s
    AND v.document_id = p.document_id AND v.passage_id = p.id)"""
_LACKING = f"""
SELECT document_id, first, chunks FROM (
    SELECT p.document_id, min(p.id) AS first FROM passages p
    WHERE p.owner = %(owner)s AND p.shelf = %(shelf)s AND p.id > %(after)s AND {_NONE} GROUP BY p.document_id
) lacking JOIN shelf_documents d ON d.shelf = %(shelf)s AND d.id = document_id"""  # noqa: S608 - our own words
_MISSING = f"""
SELECT p.id, p.position, d.title, d.name, p.heading, p.text
FROM passages p JOIN shelf_documents d ON d.shelf = p.shelf AND d.id = p.document_id
WHERE p.owner = %(owner)s AND p.shelf = %(shelf)s AND p.document_id = %(document)s AND p.position > %(after)s
AND {_NONE} ORDER BY p.position LIMIT %(most)s"""  # noqa: S608 - the same
_KEEP = """
INSERT INTO passage_vectors (owner, shelf, model, passage_id, document_id, vec)
SELECT owner, shelf, %(model)s, id, document_id, %(vec)s::halfvec
FROM passages WHERE owner = %(owner)s AND shelf = %(shelf)s AND id = %(id)s ON CONFLICT DO NOTHING"""
_MADE = """
SELECT p.document_id, count(v.passage_id), count(*) FROM passages p LEFT JOIN passage_vectors v
ON v.owner = p.owner AND v.shelf = p.shelf AND v.model = %(model)s AND v.passage_id = p.id
WHERE p.owner = %(owner)s AND p.shelf = %(shelf)s AND p.document_id = ANY(%(documents)s) GROUP BY p.document_id"""
_COUNT = "SELECT count(*) FROM passage_vectors WHERE owner = %(owner)s AND shelf = %(shelf)s AND model = %(model)s"
_HERE = "FROM passage_vectors WHERE owner = %(owner)s AND shelf = %(shelf)s AND model = %(model)s"
_CHUNKS_OF = "SELECT coalesce(sum(chunks), 0) FROM shelf_documents WHERE shelf = %(shelf)s AND id = ANY(%(documents)s)"
_WITHIN = " AND document_id = ANY(%(documents)s)"


class PgVectors(MadeVectors):
    """The vectors of one model in one library.

    Args:
        server: Where they are.
        of: The owner of the library, and its number.
        embedder: The model; `most`, `in_parts` and `moved` are as of `MadeVectors`.
    """

    def __init__(
        self,
        server: Connections,
        of: tuple[str, int],
        embedder: Embedder,
        most: int | None = None,
        *,
        in_parts: bool = False,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(embedder, most, in_parts, moved)
        self._server = server
        self._is_whole_at = -1  # the change of the library at which every passage had a vector
        self._given: dict[str, Any] = {"owner": of[0], "shelf": of[1], "model": self.model}
        self.graph = None if in_parts else PgGraph(server, self._given)
        self.held: HeldJob | None = None
        """The lease under which they are being made."""

    def newest(self) -> int:
        """As of `MadeVectors`."""
        with self._server.reading() as db:
            return int(one(db, _NEWEST, self._given)[0])

    def lacking(self, after: int) -> list[Found]:
        """As of `MadeVectors`."""
        with self._server.reading() as db:
            return db.execute(_LACKING.encode(), {**self._given, "after": after}).fetchall()  # pyright: ignore[reportReturnType]

    def missing(self, document: str, after: int, most: int) -> list[Row]:
        """As of `MadeVectors`."""
        given = {**self._given, "document": document, "after": after, "most": most}
        with self._server.reading() as db:
            return db.execute(_MISSING.encode(), given).fetchall()  # pyright: ignore[reportReturnType]

    def _kept_size(self) -> int:
        with self._server.reading() as db:
            row = db.execute(f"SELECT vector_dims(vec) {_HERE} LIMIT 1".encode(), self._given).fetchone()
        return row[0] if row else 0

    def keep(self, made: Sequence[tuple[int, NDArray[np.float16]]]) -> None:
        """As of `MadeVectors`; raises JobLostError, TurnOverError where they are made under a lease."""
        held = self.held
        with self._server.writing() as db:
            # While they are added no passage goes: its vector would stay.
            db.execute("SELECT 1 FROM shelves WHERE id = %(shelf)s FOR SHARE", self._given)
            if held is not None:
                held.check(db)
            with db.cursor() as cursor:
                cursor.executemany(_KEEP, [{**self._given, "id": at, "vec": _text(row)} for at, row in made])

        if held is not None:
            held.check_turn()

    def tell(self) -> None:
        """Call back that some were made, here or elsewhere."""
        self.moved()

    def is_whole(self) -> bool:
        """Whether no passage lacks a vector that should have one."""
        count = self._chunks()
        return not count or (self.most is not None and count > self.most) or self._has_all(None)

    def _chunks(self) -> int:
        return self._state()[0]

    def _state(self) -> tuple[int, int]:
        with self._server.reading() as db:
            row = db.execute("SELECT passages, change FROM shelves WHERE id = %(shelf)s", self._given).fetchone()
        return (row[0], row[1]) if row else (0, 0)

    def made(self, documents: Collection[str]) -> dict[str, tuple[int, int]] | None:
        """As of `Vectors`."""
        if self.most is not None and self._chunks() > self.most:
            return None
        with self._server.reading() as db:
            found = db.execute(_MADE, {**self._given, "documents": [writable(one) for one in documents]}).fetchall()
        return {document: (done, total) for document, done, total in found}

    def like(
        self,
        question: str,
        documents: Collection[str] | None = None,
        *,
        nearest: int = 0,
        also: Sequence[int] = (),
        script: Script | None = None,
    ) -> Similarity | None:
        """As of `Vectors`."""
        if not self._has_all(documents) or (asked := self._asked(question, script)) is None:
            return None
        given: dict[str, Any] = {**self._given, "asked": _text(asked), "also": list(also)}
        here = _HERE
        if documents is not None:
            here, given["documents"] = _HERE + _WITHIN, [writable(one) for one in documents]
        distance = self._distance(asked)
        if nearest and self.graph is not None and self.graph.is_there() and self._are_many(given):
            distance = f"(vec::halfvec({len(asked)})) <#> %(asked)s::halfvec({len(asked)})"  # as the index has it
        query = f"SELECT passage_id, -({distance}) {here}"
        if nearest:
            given["nearest"] = nearest
            query = f"({query} ORDER BY {distance} LIMIT %(nearest)s) UNION ({query} AND passage_id = ANY(%(also)s))"
        with self._server.reading() as db:
            rows = db.execute(f"{query} ORDER BY passage_id".encode(), given).fetchall()
        if not rows:
            return None
        ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        return Similarity(ids, np.fromiter((row[1] for row in rows), np.float32, len(rows)), self.in_parts)

    def _are_many(self, given: dict[str, Any]) -> bool:
        """Whether the passages of the documents are more than are compared one by one."""
        if "documents" not in given:
            return True
        with self._server.reading() as db:
            return one(db, _CHUNKS_OF, given)[0] >= LEAST

    def _distance(self, asked: Floats) -> str:
        """The expression of the distance: of what has parts, that of the nearest."""
        if not self.in_parts:
            return "vec <#> %(asked)s::halfvec"
        size = len(asked)
        starts = (1 + part * size for part in range(PARTS))
        return f"least({', '.join(f'subvector(vec, {at}, {size}) <#> %(asked)s::halfvec' for at in starts)})"

    def _has_all(self, documents: Collection[str] | None) -> bool:
        """Whether every passage that counts has a vector, and there is one; counted anew when the library changed."""
        count, change = self._state()
        if not count:
            return False
        if self._is_whole_at != change:
            with self._server.reading() as db:
                if one(db, _COUNT, self._given)[0] == count:
                    self._is_whole_at = change
        if self._is_whole_at == change:
            return True
        made = {} if documents is None else self.made(documents) or {}
        return bool(made) and all(done == total for done, total in made.values())


def _text(row: NDArray[Any]) -> str:
    return f"[{','.join(map(repr, row.astype(np.float16).tolist()))}]"
