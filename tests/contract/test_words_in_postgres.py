"""Words are looked up by their own index, whatever else stands in the same part of the table."""

from __future__ import annotations

from typing import Any

from core.rag.document import Chunk, Document
from core.rag.draft import Piece
from core.rag.grown import words
from core.rag.grown.shelf import PgShelves
from tests.grown_shelves import shelves

__all__ = ["shelves"]
_SAME_PART = """
SELECT 'words, large ' || n FROM generate_series(1, 5000) AS n WHERE satisfies_hash_partition(
    'passages'::regclass, 64, replace(%s, 'passages_', '')::integer, ('words, large ' || n) COLLATE "C") LIMIT 1"""
_OTHERS = """
INSERT INTO passages SELECT %s, %s, nextval('passage_ids'), 'd', n, NULL, 0, 1, ARRAY[n, n + 1]::bigint[], '{}', '{}',
    'text', '', '[]', 'text' FROM generate_series(1, 4000) AS n"""


class Explained:
    """A connection that tells how each statement is carried out."""

    def __init__(self, db: Any) -> None:
        self._db = db
        self.plans: list[str] = []

    def execute(self, query: Any, values: Any) -> Any:
        said = query if isinstance(query, bytes) else query.encode()
        self.plans.append("\n".join(row[0] for row in self._db.execute(b"EXPLAIN " + said, values)))
        return self._db.execute(query, values)


def test_beside_a_much_larger_library_of_another_owner_words_have_their_own_index(shelves: PgShelves) -> None:
    shelf = shelves.of("words, small")
    chunks = [Chunk(f"lamp number {number}") for number in range(40)]
    shelf.put(Piece(Document("lamps", "", "text/plain", None, 40), chunks, []), is_first=True)
    of = shelf._owner, shelf._shelf  # pyright: ignore[reportPrivateUsage]
    with shelf._server.reading() as db:  # pyright: ignore[reportPrivateUsage]
        (part,) = db.execute("SELECT tableoid::regclass::text FROM passages WHERE owner = %s", of[:1]).fetchone() or (
            "",
        )
        (other,) = db.execute(_SAME_PART, [part]).fetchone() or ("",)
        number = shelves.of(other)._shelf  # pyright: ignore[reportPrivateUsage]
        db.execute(_OTHERS.encode(), [other, number])
        db.execute(f"ANALYZE {part}".encode())
        explained: Any = Explained(db)
        assert len(words.find(explained, of, ["lamp", "7"], 50, None)) == 40
        assert words.find_all(explained, of, ["lamp", "7"], 50, None, either=[], begun="")
    plans = [plan for plan in explained.plans if f"{part}_keys_idx" in plan]
    assert len(plans) == 2, explained.plans
    shelves.of(other).delete()
