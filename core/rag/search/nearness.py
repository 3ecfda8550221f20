"""The question's words close to each other say more than the same words scattered over a passage.

BM25 does not look at places. So the best that it finds are put in order once more: by how many of the question's terms
stand within a short stretch of the passage, and how many that follow each other in the question do so in the passage.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

from core.rag.sentences import ideographs

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

LOOKED_AT = 20
_STRETCH = 12  # terms: of a sentence or so, without its stop words
_WEIGHT = 0.5  # what all of them within one stretch add to the score, as a share of it
_FOLLOWING = 0.75  # what all neighbours of the question that are neighbours there add


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
