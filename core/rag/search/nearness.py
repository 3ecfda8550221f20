"""The question's words close to each other say more than the same words scattered over a passage.

BM25 does not look at places. So the best that it finds are put in order once more, by how many of the question's terms
stand within a short stretch of the passage.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

LOOKED_AT = 20
_STRETCH = 12  # terms: of a sentence or so, without its stop words
_WEIGHT = 0.5  # what all of them within one stretch add to the score, as a share of it


def nearest_first(
    db: sqlite3.Connection, asked: Sequence[str], found: Sequence[tuple[int, float]]
) -> list[tuple[int, float]]:
    """What was found, the first `LOOKED_AT` in the order of their raised scores.

    Args:
        db: The library.
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
    share = {chunk_id: _together(terms.split(), wanted) / len(wanted) for chunk_id, terms in rows}
    raised = [(chunk_id, score * (1 + _WEIGHT * share.get(chunk_id, 0.0))) for chunk_id, score in first]
    raised.sort(key=lambda one: -one[1])
    return [*raised, *found[LOOKED_AT:]]


def _together(terms: Sequence[str], wanted: Collection[str]) -> int:
    """The most different wanted terms within one stretch."""
    places = [at for at, term in enumerate(terms) if term in wanted]
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
