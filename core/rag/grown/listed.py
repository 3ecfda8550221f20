"""Lists of words of a large library in PostgreSQL: which passages have a term, read at once and added up here.

The table of passages is the truth. A library is listed in parts of tens of thousands of passages, by growing ids; what
came after the last part is looked through by itself, and what went is left out when the best are fetched. Lists are
made beside all that goes on, and used once they are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg

from core.errors import StorageError
from core.rag.grown import words
from core.rag.grown.connections import number_of, one

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from core.rag.grown.connections import Connections, Db
    from core.rag.grown.packed import Packing

LARGE: Final = 20_000
"""Passages from which on a library is listed: in fewer each can be looked up."""
_NEW: Final = 1_000  # passages that are not listed yet, from which on they are
_MOST_NEW: Final = 4_000  # that a search looks through by itself
_MOST_ADDED: Final = 400_000  # times that the rarer terms stand in a library; others count where one of these stands
_PLACES: Final = 65_536  # passages of a part: a place has two bytes
_LISTED: Final = 16_000_000  # terms of the passages of a part: making it takes some 370 MB at most
_AT_ONCE: Final = 2_048  # passages that are read at once
_GROWS: Final = 2  # a part is made anew with what came after it until that is so many times smaller
_WASTE: Final = 0.25  # the share of listed passages that may be gone
_NEXT_TURN: Final = 1.0  # seconds until who waits for another one that makes lists looks again
_SPARE: Final = 50  # candidates more than asked for: lengths are rounded in lists
_MANY_TIMES: Final = 4  # so many times more where common terms are not added up
_ONE_AT_A_TIME: Final = number_of("listed")

_PARTS: Final = "SELECT id, last, passages, listed FROM word_parts WHERE shelf = %(shelf)s ORDER BY last"
_LISTS: Final = """
SELECT p.id, p.last, p.passages, l.key, l.packed
FROM word_parts p CROSS JOIN unnest(%(added)s::bigint[]) AS a (key)
LEFT JOIN LATERAL (SELECT key, packed FROM word_lists WHERE part = p.id AND key = a.key OFFSET 0) AS l ON true
WHERE p.shelf = %(shelf)s ORDER BY p.last"""
_HERE: Final = f"{words.SCORED}owner = %(owner)s AND shelf = %(shelf)s AND "
_NEW_ONES: Final = words.best_of(f"{_HERE}id > %(last)s")
_CHOSEN: Final = words.best_of(f"""
WITH chosen AS MATERIALIZED (
    SELECT ('x' || encode(substring(p.ids FROM 8 * a.place + 1 FOR 8), 'hex'))::bit(64)::bigint AS id
    FROM unnest(%(parts)s::bigint[], %(places)s::integer[]) AS a (part, place) JOIN word_parts p ON p.id = a.part
) {_HERE}id = ANY(ARRAY(SELECT id FROM chosen))""")  # noqa: S608 - our own
_SIZE: Final = "SELECT passages FROM shelves WHERE id = %(shelf)s"
_READ: Final = """
SELECT id, len, keys, repeated, times FROM passages
WHERE owner = %(owner)s AND shelf = %(shelf)s AND id > %(last)s ORDER BY id LIMIT %(most)s"""
_HOW_MANY_NEW: Final = """
SELECT count(*) FROM (
    SELECT FROM passages WHERE owner = %(owner)s AND shelf = %(shelf)s AND id > %(last)s LIMIT %(most)s) AS new"""
_COPY: Final = "COPY word_lists (part, key, packed) FROM STDIN (FORMAT BINARY)"
_LEFT: Final = "DELETE FROM word_lists WHERE part = ANY(%s)"
# Each part is found by one look into the index: there are millions of lists.
_OF_NONE: Final = """
WITH RECURSIVE parts AS (
    (SELECT part FROM word_lists ORDER BY part LIMIT 1) UNION ALL
    SELECT (SELECT l.part FROM word_lists l WHERE l.part > p.part ORDER BY l.part LIMIT 1) FROM parts p
    WHERE p.part IS NOT NULL)
SELECT part FROM parts WHERE part IS NOT NULL AND NOT EXISTS (SELECT FROM word_parts w WHERE w.id = parts.part)"""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a library: the passages up to one, and how many terms they have."""

    number: int
    last: int
    passages: int
    listed: int


class WordLists:
    """The lists of one library; a `QuickWords`.

    Args:
        given: `owner` and `shelf`, its number.
    """

    def __init__(self, server: Connections, given: dict[str, Any]) -> None:
        self._server, self._given = server, given
        self.on_old: Callable[[], None] = lambda: None
        self._is_old = False

    def is_wanted(self) -> bool:
        """As of `QuickWords`; not while that cannot be known."""
        try:
            with self._server.reading() as db:
                return self._passages(db) >= LARGE or bool(self._parts(db))
        except StorageError:
            return False

    def close(self) -> None:
        """As of `QuickWords`: nothing is held."""

    # ---- search

    def find(self, db: Db, part: str, given: dict[str, Any], standing: Sequence[int]) -> list[tuple[int, float]] | None:
        """As of `Lists`."""
        from core.rag.grown.packed import Scores

        if given["total"] < LARGE // 2:
            return None
        added = _so_many(standing)
        asked = {**self._given, **given, "added": given["keys"][:added]}
        with db.transaction():  # what is listed and what is new are of the same moment
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            with db.cursor(binary=True) as cursor:
                rows = cursor.execute(_LISTS, asked).fetchall()
            if not rows:
                if given["total"] >= LARGE:
                    self._is_old = True
                return None
            asked["last"] = rows[-1][1]
            (new,) = one(db, _HOW_MANY_NEW, {**asked, "most": _MOST_NEW + 1})
            if new >= _NEW:
                self._is_old = True
            if new > _MOST_NEW:
                return None
            found = words.scored(db, _NEW_ONES, part, asked) if new else []
            most = asked["most"]
            how = {name: asked[name] for name in ("more", "flat", "sloped")}
            scores = Scores(rows, dict(zip(asked["keys"], asked["weights"], strict=True)), **how)
            wanted = (most + _SPARE) if added == len(standing) else _MANY_TIMES * most + _SPARE
            while True:
                parts, places, is_all = scores.best(wanted)
                known = words.scored(db, _CHOSEN, part, {**asked, "parts": parts, "places": places})
                if is_all or len(known) >= most:
                    break
                wanted *= 4  # some of them are gone
        return sorted([*found, *known], key=lambda one: (-one[1], one[0]))[:most]

    def tell(self) -> None:
        """Say that a question found it behind the library; not on its connection: whoever hears it needs one too."""
        if self._is_old:
            self._is_old = False
            self.on_old()

    # ---- making

    def fill(self, stop: threading.Event) -> bool:
        """As of `QuickWords`; one process lists at a time."""
        while True:
            with self._server.reading() as db:
                if self._is_current(db):
                    return True
            if stop.is_set():
                return False
            if (held := self._server.lock(_ONE_AT_A_TIME)) is None:
                if stop.wait(_NEXT_TURN):
                    return False
                continue
            try:
                self._make_one(held, stop)
            except psycopg.errors.ForeignKeyViolation:
                return False  # the library was deleted
            except psycopg.Error as error:
                raise StorageError(f"The words of a large library are not listed yet: {error}") from error
            finally:
                self._server.unlock(held, _ONE_AT_A_TIME)

    def _is_current(self, db: Db) -> bool:
        passages, parts = self._passages(db), self._parts(db)
        if passages < LARGE // 2 or (passages < LARGE and not parts):
            return not parts
        new = self._new(db, parts, passages)
        return bool(parts) and new < _NEW and not _is_wasted(parts, passages - new)

    def _make_one(self, db: Db, stop: threading.Event) -> None:
        """The next part, in the place of those that go into it."""
        passages, parts = self._passages(db), self._parts(db)
        if self._is_current(db):  # another process was faster
            return
        if left := [part for (part,) in db.execute(_OF_NONE).fetchall()]:  # of a library that an older Parlour deleted
            _drop(db, left)
        if passages < LARGE // 2 or _is_wasted(parts, passages - self._new(db, parts, passages)):
            with db.transaction():
                _drop(db, [one.number for one in parts])
            return
        kept, joined = list(parts), list[Part]()
        size = listed = self._new(db, parts, passages)
        while kept and kept[-1].passages <= _GROWS * size and kept[-1].passages + size <= _PLACES:
            if kept[-1].listed + listed > _LISTED:
                break
            joined.append(kept.pop())
            size, listed = size + joined[-1].passages, listed + joined[-1].listed
        packing = self._packed(db, kept[-1].last if kept else 0, stop)
        if packing.passages and not stop.is_set():
            with db.transaction():
                _write(db, self._given["shelf"], packing, [one.number for one in joined])

    def _packed(self, db: Db, last: int, stop: threading.Event) -> Packing:
        """The next passages after one, as many as go into a part."""
        from core.rag.grown.packed import Packing

        packing = Packing()
        while packing.passages < _PLACES and packing.listed < _LISTED and not stop.is_set():
            most = min(_AT_ONCE, _PLACES - packing.passages)
            with db.cursor(binary=True) as cursor:
                rows = cursor.execute(_READ, {**self._given, "last": last, "most": most}).fetchall()
            if not rows:
                break
            packing.add(rows)
            last = packing.last
        return packing

    def _passages(self, db: Db) -> int:
        row = db.execute(_SIZE, self._given).fetchone()
        return row[0] if row else 0

    def _parts(self, db: Db) -> list[Part]:
        return [Part(*row) for row in db.execute(_PARTS, self._given).fetchall()]

    def _new(self, db: Db, parts: Sequence[Part], passages: int) -> int:
        """How many passages came after the last part."""
        if not parts:
            return passages
        return one(db, _HOW_MANY_NEW, {**self._given, "last": parts[-1].last, "most": None})[0]


def forget_lists(db: Db, shelf: int) -> None:
    """Drop the lists of a library, in the transaction that deletes it."""
    _drop(db, [row[0] for row in db.execute("SELECT id FROM word_parts WHERE shelf = %s", [shelf]).fetchall()])


def _drop(db: Db, parts: Sequence[int]) -> None:
    if parts:
        db.execute(_LEFT, [list(parts)])
        db.execute("DELETE FROM word_parts WHERE id = ANY(%s)", [list(parts)])


def _write(db: Db, shelf: int, packing: Packing, joined: Sequence[int]) -> None:
    (part,) = one(db, "SELECT nextval('word_parts_id_seq')")
    with db.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.set_types(["int8", "int8", "bytea"])
        for key, packed in packing.lists():
            copy.write_row((part, key, packed))
    # Last, for it waits for whoever changes the library, and they for us. Whoever deletes it has that before the lists.
    db.execute("SELECT FROM shelves WHERE id = %s FOR KEY SHARE", [shelf])
    _drop(db, joined)
    ours = [part, shelf, packing.last, packing.passages, packing.listed, packing.ids()]
    db.execute("INSERT INTO word_parts (id, shelf, last, passages, listed, ids) VALUES (%s, %s, %s, %s, %s, %s)", ours)


def _is_wasted(parts: Sequence[Part], still_there: int) -> bool:
    listed = sum(one.passages for one in parts)
    return listed - still_there > _WASTE * listed


def _so_many(standing: Sequence[int]) -> int:
    """Of how many terms the lists are added up: the rarest, one at least."""
    total, count = 0, 0
    for passages in standing:
        total += passages
        if count and total > _MOST_ADDED:
            break
        count += 1
    return count
