"""Search by words in PostgreSQL: BM25 as SQLite's full-text index has it, over the same terms."""

from __future__ import annotations

import sys
from collections import Counter
from math import log
from typing import TYPE_CHECKING, Any, Protocol

from core.rag.grown.connections import number_of, one

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from core.rag.grown.connections import Db

_EACH = 1_000  # times that the asked terms stand in a library, up to which passages are looked up one by one
_MANY = 20_000  # times that the asked terms stand in a library, from which on the common ones bring nothing in
_ENOUGH = 4_000  # passages that rarer terms bring in, or that are looked through
_RAREST = 40  # terms that count there: somebody may ask by a whole page, and each is looked for in each passage
_K1, _B = 1.2, 0.75
_LEAST = 1e-6  # what a term counts that is in half of the passages or more
# The part of the table that has a library is named in statements. To ask for its owner would offer another index,
# which leads to all passages of the library: the planner takes it where the part is mostly a larger one's.
_STATE = """
SELECT s.passages, s.terms, t.term, t.passages, (
    SELECT tableoid::regclass::text FROM passages WHERE owner = %(owner)s AND shelf = %(shelf)s LIMIT 1)
FROM shelves s LEFT JOIN shelf_terms t ON t.shelf = s.id AND t.term = ANY(%(terms)s) WHERE s.id = %(shelf)s"""
# Materialized, so that what is added up has no arrays with it; `OFFSET 0` keeps one look into the index for each term,
# where the planner would compare every term with every passage of the library.
_EACH_TERM = """
WITH hits AS MATERIALIZED (
    SELECT p.id, p.len, a.weight, p.f
    FROM unnest(%(keys)s::bigint[], %(shorts)s::integer[], %(weights)s::float8[]) AS a (key, short, weight)
    CROSS JOIN LATERAL (
        SELECT id, len, coalesce(times[array_position(repeated, a.short)], 1) AS f FROM {part}
        WHERE shelf + 0 = %(shelf)s AND keys @> ARRAY[a.key]
        AND (%(documents)s::text[] IS NULL OR document_id = ANY(%(documents)s::text[])) OFFSET 0
    ) AS p
)
SELECT id, sum(weight * f * %(more)s / (f + %(flat)s + %(sloped)s * len)) AS score FROM hits
GROUP BY id ORDER BY score DESC, id LIMIT %(most)s"""
# The keys of a passage are fetched and unpacked once, by adding nothing to them, and not anew for each term.
SCORED = """
SELECT id, (
    SELECT sum(a.weight * f * %(more)s / (f + %(flat)s + %(sloped)s * len))
    FROM (
        SELECT weight, coalesce(times[array_position(repeated, short)], 1) AS f
        FROM (SELECT keys || '{{}}'::bigint[] AS there OFFSET 0) AS unpacked,
            unnest(%(keys)s::bigint[], %(shorts)s::integer[], %(weights)s::float8[]) AS one (key, short, weight)
        WHERE key = ANY(there)
    ) AS a
) AS score
FROM {part} WHERE """
"""Passages with their scores: that of one without any of the terms is `NULL`."""
_RARE_FIRST = f"""{SCORED}shelf + 0 = %(shelf)s AND keys && %(rare)s::bigint[]
    AND (%(documents)s::text[] IS NULL OR document_id = ANY(%(documents)s::text[]))
ORDER BY score DESC, id LIMIT %(most)s"""


def best_of(query: str) -> str:
    """The best of some passages with their scores."""
    return f"SELECT id, score FROM ({query}) AS s WHERE score IS NOT NULL ORDER BY score DESC, id LIMIT %(most)s"  # noqa: S608 - ours


_OF_FEW = best_of(f"{SCORED}owner = %(owner)s AND shelf = %(shelf)s AND document_id = ANY(%(documents)s::text[])")
_PASSAGES_OF = (
    "SELECT coalesce(sum(chunks), 0) FROM shelf_documents WHERE shelf = %(shelf)s AND id = ANY(%(documents)s)"
)

# What is asked for stands in groups: the first `needed` of them each have to be there, and one of the others, if any.
_ALL = """
WITH hits AS MATERIALIZED (
    SELECT p.id, p.document_id, p.len, a.number, sum(p.f) AS f
    FROM unnest(%(keys)s::bigint[], %(shorts)s::integer[], %(numbers)s::integer[]) AS a (key, short, number)
    CROSS JOIN LATERAL (
        SELECT id, document_id, len, coalesce(times[array_position(repeated, a.short)], 1) AS f FROM {part}
        WHERE shelf + 0 = %(shelf)s AND keys @> ARRAY[a.key] OFFSET 0
    ) AS p
    GROUP BY p.id, p.document_id, p.len, a.number
), spread AS (
    SELECT number, greatest(ln((%(total)s - count(*) + 0.5) / (count(*) + 0.5)), %(least)s) AS weight
    FROM hits GROUP BY number
)
SELECT id, sum(weight * f * %(more)s / (f + %(flat)s + %(sloped)s * len)) AS score
FROM hits JOIN spread USING (number)
WHERE %(documents)s::text[] IS NULL OR document_id = ANY(%(documents)s::text[])
GROUP BY id
HAVING count(*) FILTER (WHERE number < %(needed)s) = %(needed)s AND (%(alone)s OR max(number) >= %(needed)s)
ORDER BY score DESC, id LIMIT %(most)s"""
_BEGUN = """
SELECT term FROM shelf_terms WHERE shelf = %s AND term >= %s AND term < %s ORDER BY passages DESC LIMIT %s"""
_MOST_BEGUN = 2_000  # terms that begin with what was typed


def key_of(shelf: int, term: str) -> int:
    """The number that stands for a term in one library."""
    return number_of(shelf, term)


def short_of(key: int) -> int:
    """A smaller number that stands for it within one passage."""
    return (key & 0xFFFF_FFFF) - 0x8000_0000


def counted(shelf: int, terms: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
    """The numbers of a passage's terms; the smaller ones of those that are there more than once, and how often."""
    there = {key_of(shelf, term): count for term, count in Counter(terms).items()}
    repeated = {short_of(key): count for key, count in there.items() if count > 1}
    return list(there), list(repeated), list(repeated.values())


def take_in(db: Db, shelf: int, each: Iterable[str]) -> None:
    """Count the terms of new passages; `each` are those of one, parted by spaces."""
    there = _passages_with(each)
    ordered = sorted(there)  # in one order, so that two writers do not wait for each other
    db.execute(
        "INSERT INTO shelf_terms AS t (shelf, term, passages) "
        "SELECT %s, term, passages FROM unnest(%s::text[], %s::integer[]) AS a (term, passages) "
        "ON CONFLICT (shelf, term) DO UPDATE SET passages = t.passages + excluded.passages",
        [shelf, ordered, [there[term] for term in ordered]],
    )


def take_out(db: Db, shelf: int, each: Iterable[str]) -> None:
    """Count the terms of passages no more."""
    there = _passages_with(each)
    db.execute(
        "UPDATE shelf_terms t SET passages = t.passages - a.passages "
        "FROM unnest(%s::text[], %s::integer[]) AS a (term, passages) WHERE t.shelf = %s AND t.term = a.term",
        [list(there), list(there.values()), shelf],
    )
    db.execute("DELETE FROM shelf_terms WHERE shelf = %s AND passages < 1 AND term = ANY(%s)", [shelf, list(there)])


def _passages_with(each: Iterable[str]) -> Counter[str]:
    return Counter(term for terms in each for term in set(terms.split()))


class Lists(Protocol):
    """Which passages of a library have a term, read at once."""

    def find(self, db: Db, part: str, given: dict[str, Any], standing: Sequence[int]) -> list[tuple[int, float]] | None:
        """The best passages, exactly scored; `None` where the library is not listed, or not far enough.

        Args:
            part: The part of the table that has the library.
            given: What is asked with, and `total`, how many passages the library has.
            standing: In how many passages each of the terms stands, the rarest first.
        """
        ...


def find(
    db: Db,
    of: tuple[str, int],
    asked: Sequence[str],
    k: int,
    documents: Collection[str] | None,
    lists: Lists | None = None,
) -> list[tuple[int, float]]:
    """The best `k` passages of a library that hold any of these terms.

    In a very large library, terms that stand in very many passages only count where a rarer one stands as well (in one
    that is not listed, in many passages), and of very many terms the rarest.

    Args:
        of: The owner of the library, and its number.
        lists: Those of the library, where it may have some.
    """
    rows = db.execute(_STATE, {"terms": list(asked), "owner": of[0], "shelf": of[1]}).fetchall()
    there = sorted((row[3], row[2]) for row in rows if row[2] is not None)
    if not there or rows[0][4] is None:
        return []
    total, length, *_, part = rows[0]
    keys = [key_of(of[1], term) for _, term in there]
    given: dict[str, Any] = {
        **_about(of, total, length, k, documents),
        "total": total,
        "keys": keys,
        "shorts": [short_of(key) for key in keys],
        "weights": [_weight(total, passages) for passages, _ in there],
    }
    standing = [passages for passages, _ in there]
    if sum(standing) > _EACH and documents is None and lists is not None:
        found = lists.find(db, part, _rarest(given), standing[:_RAREST])
        if found is not None:
            return found
    if sum(standing) <= _MANY:
        return scored(db, _EACH_TERM, part, given)
    given = _rarest(given)
    if documents is not None and one(db, _PASSAGES_OF, given)[0] <= _ENOUGH:
        return scored(db, _OF_FEW, part, {**given, "owner": of[0]})
    rare, count = list[int](), 0
    for passages, term in there[:_RAREST]:
        if rare and count + passages > _ENOUGH:
            break
        rare.append(key_of(of[1], term))
        count += passages
    return scored(db, _RARE_FIRST, part, {**given, "rare": rare})


def find_all(  # noqa: PLR0913 - what is asked for
    db: Db,
    of: tuple[str, int],
    asked: Sequence[str],
    k: int,
    documents: Collection[str] | None,
    *,
    either: Sequence[str],
    begun: str,
) -> list[tuple[int, float]]:
    """As of `Found.all_words`; `of` is as of `find`."""
    shelf = of[1]
    rows = db.execute(_STATE, {"terms": [], "owner": of[0], "shelf": shelf}).fetchall()
    if not rows or not rows[0][0] or rows[0][4] is None:
        return []
    groups = [[term] for term in (*asked, *either)]
    if begun:
        longer = (begun, f"{begun}{chr(sys.maxunicode)}")
        groups.append([term for (term,) in db.execute(_BEGUN, [shelf, *longer, _MOST_BEGUN])])
    total, length, *_, part = rows[0]
    keys = [key_of(shelf, term) for group in groups for term in group]
    given = {
        **_about(of, total, length, k, documents),
        "keys": keys,
        "shorts": [short_of(key) for key in keys],
        "numbers": [number for number, group in enumerate(groups) for _ in group],
        "total": total,
        "least": _LEAST,
        "needed": len(asked),
        "alone": not (either or begun),
    }
    return scored(db, _ALL, part, given)


def _rarest(given: dict[str, Any]) -> dict[str, Any]:
    return given | {name: given[name][:_RAREST] for name in ("keys", "shorts", "weights")}


def scored(db: Db, query: str, part: str, given: dict[str, Any]) -> list[tuple[int, float]]:
    """What a query about a part of the table gives."""
    return [(passage, float(score)) for passage, score in db.execute(query.format(part=part).encode(), given)]


def _about(of: tuple[str, int], total: int, length: int, k: int, documents: Collection[str] | None) -> dict[str, Any]:
    return {
        "shelf": of[1],
        "documents": None if documents is None else list(documents),
        "more": _K1 + 1,
        "flat": _K1 * (1 - _B),
        "sloped": _K1 * _B * total / max(length, 1),
        "most": min(k, total),
    }


def _weight(total: int, passages: int) -> float:
    return max(log((total - passages + 0.5) / (passages + 0.5)), _LEAST) if total >= passages else _LEAST
