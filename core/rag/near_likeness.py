"""The likeness of a question and the chunks near it, in a library too large to compare them all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from core.rag.embedding.base import Floats
    from core.rag.index_file import IndexFile
    from core.rag.search.near_graph import NearGraph

    Ids = NDArray[np.int64]

_FEW = 2_000  # chunks that are compared one by one sooner than looked for
_FARTHEST = 5_000  # chunks that the graph is asked for, before all that are wanted are compared
_MORE = 1.2  # as many as it takes, were they spread evenly, and some
_PRESENT = "SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(?))"
_WITHIN = " AND document_id IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class Likeness:
    """Cosines of chunks with a question, by growing ids; `in_parts`, those of the likest part of each."""

    ids: Ids
    cosines: Floats
    in_parts: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """All vectors: those in the graph, and the few that came since, by growing ids."""

    graph: NearGraph
    ids: Ids
    rows: Floats

    def holds(self, wanted: Ids) -> NDArray[np.bool_]:
        """Of which chunks there is a vector."""
        return _within(self.graph.ids, wanted) | _within(self.ids, wanted)

    def likeness(self, wanted: Ids, asked: Floats) -> Likeness:
        """The cosines of chunks, exactly; those without a vector are left out."""
        wanted = wanted[self.holds(wanted)]
        old = _within(self.graph.ids, wanted)
        cosines = np.empty(len(wanted), np.float32)
        cosines[old] = self.graph.rows(wanted[old]) @ asked
        if not old.all():
            cosines[~old] = self.rows[np.searchsorted(self.ids, wanted[~old])] @ asked
        return Likeness(wanted, cosines)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search by meaning is after.

    Args:
        documents: Only chunks of these; of all by default.
        count: How many chunks they have.
        most: How many of the nearest are wanted.
        also: Chunks whose likeness is wanted, whatever it is.
    """

    documents: Collection[str] | None
    count: int
    most: int
    also: Sequence[int] = ()


def near(file: IndexFile, known: Known, asked: Floats, wanted: Wanted) -> Likeness:
    """The chunks nearest to a question, and some more; `known` are the vectors of the library in `file`."""
    size = len(known.graph)
    reach = min(size, int(wanted.most * max(1.0, size / wanted.count) * _MORE) + 1)
    while wanted.count > _FEW and reach <= _FARTHEST:
        found = known.graph.nearest(asked, reach)
        every = np.concatenate([found, known.ids, np.array(wanted.also, np.int64)])
        with file.reading() as db:
            here = _present(db, every, wanted.documents)
        if reach == size or np.count_nonzero(np.isin(found, here)) >= wanted.most:
            return known.likeness(here, asked)
        reach = min(size, 4 * reach)
    with file.reading() as db:
        return known.likeness(ids_of(db, wanted.documents), asked)


def _present(db: sqlite3.Connection, ids: Ids, documents: Collection[str] | None) -> Ids:
    """Those of these chunks that are in the library, and in these documents; by growing ids."""
    asked = (json.dumps(ids.tolist()), *((json.dumps(list(documents)),) if documents is not None else ()))
    query = f"{_PRESENT}{_WITHIN if documents is not None else ''} ORDER BY id"
    found = db.execute(query, asked).fetchall()
    return np.fromiter((row[0] for row in found), np.int64, len(found))


def ids_of(db: sqlite3.Connection, documents: Collection[str] | None) -> Ids:
    """The chunks of these documents, of all by default; the numbers grow."""
    if documents is None:
        found = db.execute("SELECT id FROM chunks ORDER BY id").fetchall()
    else:
        found = db.execute(
            "SELECT id FROM chunks WHERE document_id IN (SELECT value FROM json_each(?)) ORDER BY id",
            (json.dumps(list(documents)),),
        ).fetchall()
    return np.fromiter((row[0] for row in found), np.int64, len(found))


def _within(some: Ids, wanted: Ids) -> NDArray[np.bool_]:
    """Which of these numbers are among some that grow."""
    if not len(some):
        return np.zeros(len(wanted), bool)
    places = np.minimum(np.searchsorted(some, wanted), len(some) - 1)
    return some[places] == wanted
