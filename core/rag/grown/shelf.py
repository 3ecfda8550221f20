"""The grown shelf: the documents and passages of one owner's library in PostgreSQL."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

import psycopg

from core.errors import NotFoundError, StorageError
from core.rag.document import Document, Figure, Heading, PageShape, Passage
from core.rag.grown import words
from core.rag.grown.connections import Connections, number_of, one
from core.rag.grown.listed import WordLists, forget_lists
from core.rag.grown.making import Making, VectorJobs
from core.rag.grown.near import forget_graphs
from core.rag.grown.notes import PgNotes
from core.rag.half_read import KeptPages
from core.rag.records import headings_in, searched_text
from core.rag.search.terms import terms
from core.rag.search.turns import InTurns
from core.rag.shelf import writable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Sequence

    from core.rag.document import Chunk
    from core.rag.draft import Piece
    from core.rag.embedding.base import Embedder
    from core.rag.grown.connections import Db
    from core.rag.grown.makers import Maker
    from core.rag.grown.vectors import PgVectors
    from core.rag.shelf import Derived, Vectors

_COLUMNS = tuple(field.name for field in fields(Document))
_DOCUMENTS = f"SELECT {', '.join(_COLUMNS)} FROM shelf_documents WHERE shelf = %(shelf)s"  # noqa: S608 - our own fields
_INSERT = (
    f"INSERT INTO shelf_documents (shelf, {', '.join(_COLUMNS)}, number) "  # noqa: S608 - the same
    f"SELECT %(shelf)s, {', '.join(f'%({name})s' for name in _COLUMNS)}, coalesce(max(number), 0) + 1 "
    "FROM shelf_documents WHERE shelf = %(shelf)s"
)
_CHANGED = tuple(name for name in _COLUMNS if name not in {"id", "name"})
_UPDATE = (
    f"UPDATE shelf_documents SET {', '.join(f'{name} = %({name})s' for name in _CHANGED)} "  # noqa: S608 - the same
    "WHERE shelf = %(shelf)s AND id = %(id)s"
)
_COPY = (
    "COPY passages (owner, shelf, id, document_id, position, page, overlap, len, keys, repeated, times, text, heading, "
    "rectangles, terms) FROM STDIN"
)
_PASSAGES = """
SELECT p.id, p.text, d.name, d.id, p.page, p.rectangles, p.heading
FROM passages p JOIN shelf_documents d ON d.shelf = p.shelf AND d.id = p.document_id
WHERE p.owner = %(owner)s AND p.shelf = %(shelf)s AND """
_KEEP_PAGES = (
    "INSERT INTO shelf_half_read VALUES (%s, %s, %s, %s, %s) ON CONFLICT (shelf, document_id, last) "
    "DO UPDATE SET made_by = excluded.made_by, data = excluded.data"
)
_HERE = "FROM passages WHERE owner = %(owner)s AND shelf = %(shelf)s"
_OF = f"{_HERE} AND document_id = %(document)s"
_NO_VECTORS_OF = (
    "DELETE FROM passage_vectors WHERE owner = %(owner)s AND shelf = %(shelf)s AND document_id = %(document)s"
)


class PgShelves:
    """The shelves of one database.

    Args:
        address: As `PARLOUR_DATABASE` has it.
        reader: What the connections are called by which documents are held that are read.
        maker: The part that this process has in making vectors; left out, it makes those of what it opens by itself.

    Attributes:
        jobs: Whose vectors are to be made, and by whom, where processes part that.
    """

    def __init__(self, address: str, reader: str = "", maker: Maker | None = None) -> None:
        self._server = Connections(address, reader)
        self.jobs = VectorJobs(self._server, maker) if maker is not None else None

    def of(self, owner: str, library: str = "documents") -> PgShelf:
        """The shelf of a library of an owner, made where there is none. Raises StorageError."""
        named = (writable(owner), writable(library))
        find = "SELECT id FROM shelves WHERE owner = %s AND library = %s"
        with self._server.reading() as db:
            if db.execute(find, named).fetchone() is None:
                db.execute("INSERT INTO shelves (owner, library) VALUES (%s, %s) ON CONFLICT DO NOTHING", named)
            return PgShelf(self._server, named[0], one(db, find, named)[0], self.jobs)

    def forget(self, owner: str) -> None:
        """Delete all libraries of an owner. Raises StorageError."""
        find = "SELECT id FROM shelves WHERE owner = %s"
        with self._server.reading() as db:
            found = db.execute(find, [writable(owner)]).fetchall()
        for (number,) in found:
            PgShelf(self._server, writable(owner), number).delete()

    def close(self) -> None:
        """Close all connections."""
        if self.jobs is not None:
            self.jobs.close()
        self._server.close()


class PgShelf:
    """A `Shelf`; made by `PgShelves.of`.

    Args:
        number: Of the library.
        jobs: Where it is noted that it lacks vectors.
    """

    def __init__(self, server: Connections, owner: str, number: int, jobs: VectorJobs | None = None) -> None:
        self._jobs = jobs
        self._server, self._owner, self._shelf = server, owner, number
        self._here = {"owner": owner, "shelf": number}
        self._closed = False
        self._notes = PgNotes(server, number)
        self._locks: dict[str, PgLock] = {}
        self._lists = WordLists(server, self._here)

    @property
    def notes(self) -> PgNotes:
        """As of `Shelf`."""
        return self._notes

    # ---- documents

    def documents(self) -> list[Document]:
        """As of `Shelf`."""
        return [Document(*row) for row in self._rows(f"{_DOCUMENTS} ORDER BY number")]

    def document(self, document_id: str) -> Document | None:
        """As of `Shelf`."""
        rows = self._rows(f"{_DOCUMENTS} AND id = %(document)s", document=writable(document_id))
        return Document(*rows[0]) if rows else None

    def put(self, piece: Piece, *, is_first: bool, check: Callable[[], None] = lambda: None) -> Document | None:
        """As of `Shelf`."""
        document = piece.document
        values = {name: _kept(getattr(document, name)) for name in _COLUMNS} | self._here
        rows = self._prepared(document, piece.chunks, 0 if is_first else document.chunks - len(piece.chunks))
        with self._changing() as db:
            self._check_held(document.id)
            check()  # what is so now, however long it took until it was our turn
            if is_first:
                self._delete(db, document.id)  # the remains of a killed reading
                db.execute(_INSERT.encode(), values)
            elif not db.execute(_UPDATE.encode(), values).rowcount:
                return None
            self._put_pages(db, piece)
            self._put_passages(db, rows)
            self._keep_pages(db, piece)
            if rows and self._jobs is not None and self._server.has_vectors():
                self._jobs.note(db, self._shelf)
            return self._one(db, document.id)

    def _keep_pages(self, db: Db, piece: Piece) -> None:
        document, kept = piece.document.id, piece.kept
        if piece.document.status not in {"reading", "stopped"} or (kept is not None and kept.begins):
            db.execute("DELETE FROM shelf_half_read WHERE shelf = %s AND document_id = %s", [self._shelf, document])
        if piece.document.status in {"reading", "stopped"} and kept is not None:
            row = [self._shelf, document, kept.last, kept.by, kept.data]
            db.execute(_KEEP_PAGES, row)

    def half_read(self, document_id: str, page: int | None = None) -> list[KeptPages]:
        """As of `Shelf`."""
        query = "SELECT last, made_by, data FROM shelf_half_read WHERE shelf = %(shelf)s AND document_id = %(document)s"
        query = f"{query} AND last >= %(page)s ORDER BY last LIMIT %(most)s"
        most = None if page is None else 1  # they follow each other
        rows = self._rows(query, document=writable(document_id), page=page or 0, most=most)
        return [KeptPages(last, by, bytes(data)) for last, by, data in rows]

    def _prepared(self, document: Document, chunks: Sequence[Chunk], first: int) -> list[list[Any]]:
        title = document.title or document.name
        rows: list[list[Any]] = []
        for position, chunk in enumerate(chunks, first):
            there = terms(searched_text(title, chunk.heading, chunk.text))
            keys, repeated, times = words.counted(self._shelf, there)
            places = json.dumps(chunk.rectangles, separators=(",", ":"))
            about = [document.id, position, chunk.page, chunk.overlap, len(there), keys, repeated, times]
            rows.append([*about, writable(chunk.text), writable(chunk.heading), places, writable(" ".join(there))])
        return rows

    def _put_passages(self, db: Db, rows: Sequence[list[Any]]) -> None:
        if not rows:
            return
        ids = db.execute("SELECT nextval('passage_ids') FROM generate_series(1, %s)", [len(rows)]).fetchall()
        with db.cursor() as cursor, cursor.copy(_COPY) as copy:
            for (number,), row in zip(sorted(ids), rows, strict=True):
                copy.write_row([self._owner, self._shelf, number, *row])
        words.take_in(db, self._shelf, [row[11] for row in rows])
        self._count(db, len(rows), sum(row[4] for row in rows))

    def _put_pages(self, db: Db, piece: Piece) -> None:
        document = piece.document.id
        with db.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO shelf_pages VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (shelf, document_id, page) "
                "DO UPDATE SET width = excluded.width, height = excluded.height, text_box = excluded.text_box",
                [
                    (self._shelf, document, shape.page, shape.width, shape.height, json.dumps(shape.text_box))
                    for shape in piece.shapes
                ],
            )
            cursor.executemany(
                "INSERT INTO shelf_figures VALUES (%s, %s, %s, %s, %s, %s, %s, %s) "
                "ON CONFLICT (shelf, document_id, number) DO UPDATE SET page = excluded.page, label = excluded.label, "
                "caption = excluded.caption, place = excluded.place, source = excluded.source",
                [
                    (
                        self._shelf,
                        document,
                        figure.number,
                        figure.page,
                        writable(figure.label),
                        writable(figure.caption),
                        json.dumps(figure.place),
                        writable(figure.source),
                    )
                    for figure in piece.figures
                ],
            )

    def rename(self, document_id: str, name: str) -> None:
        """As of `Shelf`."""
        self._check_open()
        with self._server.writing() as db:
            query = "UPDATE shelf_documents SET name = %s WHERE id = %s AND shelf = %s"
            db.execute(query, [writable(name), writable(document_id), self._shelf])

    def mark_stopped(self, document_id: str) -> None:
        """As of `Shelf`."""
        with self._changing() as db:
            self._check_held(document_id)
            query = "UPDATE shelf_documents SET status = 'stopped' WHERE id = %s AND shelf = %s"
            db.execute(query, [writable(document_id), self._shelf])

    def remove(self, document_id: str) -> None:
        """As of `Shelf`."""
        with self._changing() as db:
            self._check_held(document_id)
            self._delete(db, document_id)

    def _check_held(self, document_id: str) -> None:
        """Nothing, where a document that is read here is still ours, or none is. Raises StorageError."""
        lock = self._locks.get(writable(document_id))
        if lock is not None:
            lock.check()

    def _delete(self, db: Db, document_id: str) -> None:
        given = {**self._here, "document": writable(document_id)}
        self._notes.forget(db, document_id)
        if not db.execute("DELETE FROM shelf_documents WHERE shelf = %(shelf)s AND id = %(document)s", given).rowcount:
            return
        gone = db.execute(f"DELETE {_OF} RETURNING terms, len".encode(), given).fetchall()
        if self._server.has_vectors():
            db.execute(_NO_VECTORS_OF, given)
        if gone:
            words.take_out(db, self._shelf, [there for there, _ in gone])
            self._count(db, -len(gone), -sum(length for _, length in gone))

    @contextmanager
    def _changing(self) -> Generator[Db]:
        """A transaction in which nobody else changes the library."""
        self._check_open()
        self._server.has_vectors()  # what is made for that must not wait for what we hold
        with self._server.writing() as db:
            if db.execute("SELECT 1 FROM shelves WHERE id = %(shelf)s FOR UPDATE", self._here).fetchone() is None:
                raise StorageError("The library was deleted.", key="library_closed")
            yield db

    def _count(self, db: Db, passages: int, length: int) -> None:
        db.execute(
            "UPDATE shelves SET passages = passages + %s, terms = terms + %s, change = change + 1 WHERE id = %s",
            [passages, length, self._shelf],
        )

    def _one(self, db: Db, document_id: str) -> Document:
        return Document(*one(db, f"{_DOCUMENTS} AND id = %(document)s", {**self._here, "document": document_id}))  # pyright: ignore[reportArgumentType]

    # ---- passages

    def passages(self, scored: Sequence[tuple[int, float]]) -> list[Passage]:
        """As of `Shelf`."""
        rows = self._rows(f"{_PASSAGES} p.id = ANY(%(ids)s)", ids=[chunk_id for chunk_id, _ in scored])
        there = {row[0]: row for row in rows}
        return [_passage(there[chunk_id], score) for chunk_id, score in scored if chunk_id in there]

    def whole(self, documents: Collection[str]) -> list[Passage]:
        """As of `Shelf`."""
        query = f"{_PASSAGES} p.document_id = ANY(%(documents)s) ORDER BY d.number, p.position"
        return [_passage(row, 0.0) for row in self._rows(query, documents=_all(documents))]

    def some(self, document_id: str, start: int, most: int) -> list[Passage]:
        """As of `Shelf`."""
        query = f"{_PASSAGES} p.document_id = %(document)s ORDER BY p.position LIMIT %(most)s OFFSET %(start)s"
        given = {"document": writable(document_id), "start": max(0, start), "most": max(0, most)}
        return [_passage(row, 0.0) for row in self._rows(query, **given)]

    def first_ids(self, document_id: str, most: int) -> list[int]:
        """As of `Shelf`."""
        given = {"document": writable(document_id), "most": max(0, most)}
        rows = self._rows(f"SELECT id {_OF} ORDER BY id LIMIT %(most)s", **given)
        return [row[0] for row in rows]

    def places(self, chunk_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """As of `Shelf`."""
        rows = self._rows(f"SELECT id, position, overlap {_HERE} AND id = ANY(%(ids)s)", ids=list(chunk_ids))
        return {chunk_id: (position, overlap) for chunk_id, position, overlap in rows}

    def letters(self, documents: Collection[str], most: float | None = None) -> int:
        """As of `Shelf`."""
        query = f"SELECT coalesce(sum(length(text)), 0) {_HERE} AND document_id = ANY(%(documents)s)"
        wanted, counted, at, step = _all(documents), 0, 0, len(documents) if most is None else _FIRST_COUNTED
        while at < len(wanted) and (most is None or counted <= most):  # each text is unpacked to be counted
            counted += int(self._rows(query, documents=wanted[at : at + step])[0][0])
            at, step = at + step, step * 2
        return counted

    def headings(self, documents: Collection[str]) -> dict[str, list[Heading]]:
        """As of `Shelf`."""
        query = (
            f"SELECT document_id, heading, page {_HERE} AND document_id = ANY(%(documents)s) AND heading <> '' "
            "ORDER BY document_id, position"
        )
        return headings_in(self._rows(query, documents=_all(documents)))

    def figures(self, documents: Collection[str]) -> list[Figure]:
        """As of `Shelf`."""
        query = (
            "SELECT f.document_id, d.name, f.number, f.page, f.label, f.caption, f.place, f.source "
            "FROM shelf_figures f JOIN shelf_documents d ON d.shelf = f.shelf AND d.id = f.document_id "
            "WHERE f.shelf = %(shelf)s AND f.document_id = ANY(%(documents)s) ORDER BY d.number, f.number"
        )
        rows = self._rows(query, documents=_all(documents))
        return [Figure(*row[:6], place=tuple(json.loads(row[6]) or ()) or None, source=row[7]) for row in rows]

    def holding(self, document_id: str, page: int | None, text: str) -> list[tuple[int, str]]:
        """As of `Shelf`."""
        on_page = "AND page IS NOT DISTINCT FROM %(page)s AND position(%(text)s IN text) > 0"
        query = f"SELECT id, text {_OF} {on_page} ORDER BY id"
        rows = self._rows(query, document=writable(document_id), page=page, text=writable(text))
        return [(chunk_id, found) for chunk_id, found in rows]

    def shape(self, document_id: str, page: int) -> PageShape:
        """As of `Shelf`."""
        query = "SELECT width, height, text_box FROM shelf_pages WHERE shelf = %(shelf)s "
        within = "AND document_id = %(document)s AND page = %(page)s"
        rows = self._rows(query + within, document=writable(document_id), page=page) if _fits(page) else []
        if not rows:
            raise NotFoundError(f"There is no page {page}.")
        width, height, box = rows[0]
        corners = json.loads(box)
        return PageShape(page, width, height, tuple(corners) if corners else None)

    def last_page(self, document_id: str) -> int:
        """As of `Shelf`."""
        query = "SELECT coalesce(max(page), 0) FROM shelf_pages WHERE shelf = %(shelf)s AND document_id = %(document)s"
        return int(self._rows(query, document=writable(document_id))[0][0])

    def position(self, document_id: str, *, chunk_id: int | None = None, page: int | None = None) -> int:
        """As of `Shelf`."""
        document = writable(document_id)
        if chunk_id is not None:
            rows = self._rows(f"SELECT position {_OF} AND id = %(id)s", document=document, id=chunk_id)
            return rows[0][0] if rows else 0
        return self._rows(f"SELECT count(*) {_OF} AND page < %(page)s", document=document, page=page or 0)[0][0]

    def height(self, passage: Passage) -> float:
        """As of `Shelf`."""
        on_page = "AND page IS NOT DISTINCT FROM %(page)s"
        query = f"SELECT count(*) FILTER (WHERE id < %(id)s), count(*) {_OF} {on_page}"
        given = {"document": writable(passage.document_id), "id": passage.chunk_id, "page": passage.page}
        before, there = self._rows(query, **given)[0]
        return before / there if there else 0.0

    # ---- search

    def words(self, asked: Sequence[str], k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """As of `Shelf`."""
        self._check_open()
        wanted = None if documents is None else _all(documents)
        with self._server.reading() as db:
            found = words.find(db, (self._owner, self._shelf), _all(asked), k, wanted, self._lists)
        self._lists.tell()
        return found

    def all_words(
        self,
        asked: Sequence[str],
        k: int,
        documents: Collection[str] | None = None,
        *,
        either: Sequence[str] = (),
        begun: str = "",
    ) -> list[tuple[int, float]]:
        """As of `Shelf`."""
        self._check_open()
        wanted = None if documents is None else _all(documents)
        here = (self._owner, self._shelf)
        with self._server.reading() as db:
            either, begun = _all(either), writable(begun)
            return words.find_all(db, here, _all(asked), k, wanted, either=either, begun=begun)

    def terms_of(self, chunk_ids: Sequence[int]) -> dict[int, str]:
        """As of `Shelf`."""
        return dict(self._rows(f"SELECT id, terms {_HERE} AND id = ANY(%(ids)s)", ids=list(chunk_ids)))

    def texts_of(self, chunk_ids: Sequence[int]) -> list[str]:
        """As of `Shelf`."""
        return [row[0] for row in self._rows(f"SELECT text {_HERE} AND id = ANY(%(ids)s)", ids=list(chunk_ids))]

    def beginnings(self, k: int, documents: Collection[str] | None = None) -> list[tuple[int, int]]:
        """As of `Shelf`."""
        query = (
            "SELECT p.id, p.position FROM passages p "
            "JOIN shelf_documents d ON d.shelf = p.shelf AND d.id = p.document_id "
            "WHERE p.owner = %(owner)s AND p.shelf = %(shelf)s AND p.position < %(most)s "
            "AND (%(documents)s::text[] IS NULL OR p.document_id = ANY(%(documents)s::text[])) "
            "ORDER BY p.position, d.number LIMIT %(most)s"
        )
        wanted = None if documents is None else _all(documents)
        rows = self._rows(query, documents=wanted, most=min(k, _LARGEST))
        return [(chunk_id, position) for chunk_id, position in rows]

    def vectors(
        self, embedder: Embedder, *, most: int | None, in_parts: bool, moved: Callable[[], None]
    ) -> PgVectors | None:
        """As of `Shelf`."""
        if not self._server.has_vectors():
            return None
        from core.rag.grown.vectors import PgVectors

        return PgVectors(self._server, (self._owner, self._shelf), embedder, most, in_parts=in_parts, moved=moved)

    def making(self, vectors: Sequence[Vectors]) -> Sequence[Derived]:
        """As of `Shelf`."""
        mine = cast("Sequence[PgVectors]", vectors)
        return [InTurns(mine) if self._jobs is None else Making(self._jobs, self._shelf, mine)]

    def quick_words(self, on_old: Callable[[], None]) -> WordLists:
        """As of `Shelf`."""
        self._lists.on_old = on_old
        return self._lists

    def mend(self) -> None:
        """As of `Shelf`: the server's index is never behind its table."""

    # ---- as a whole

    def lock(self, document_id: str) -> PgLock:
        """As of `Shelf`."""
        self._check_open()
        return PgLock(self._server, self._shelf, writable(document_id), self._locks)

    def delete(self) -> None:
        """Delete the library with all that is in it. Raises StorageError."""
        with self._changing() as db:
            db.execute(f"DELETE {_HERE}".encode(), self._here)
            if self._server.has_vectors():
                db.execute("DELETE FROM passage_vectors WHERE owner = %(owner)s AND shelf = %(shelf)s", self._here)
            db.execute("DELETE FROM shelf_terms WHERE shelf = %(shelf)s", self._here)
            forget_lists(db, self._shelf)
            db.execute("DELETE FROM shelves WHERE id = %(shelf)s", self._here)
        if self._server.has_vectors():
            forget_graphs(self._server)

    def is_intact(self) -> bool:
        """As of `Shelf`."""
        return not self._closed

    def close(self) -> None:
        """As of `Shelf`; the connections are those of all shelves, and stay."""
        self._closed = True

    def _rows(self, query: str, **given: Any) -> list[tuple[Any, ...]]:
        self._check_open()
        with self._server.reading() as db:
            return db.execute(query.encode(), {**self._here, **given}).fetchall()

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("The library is closed.", key="library_closed")


class PgLock:
    """A `Lock` of the server; it ends with the connection of whoever has it.

    Args:
        shelf: The number of the library.
        document_id: What is locked.
        locks: Those that are held here, by documents.
    """

    def __init__(self, server: Connections, shelf: int, document_id: str, locks: dict[str, PgLock]) -> None:
        self._server, self._key = server, number_of("reading", shelf, document_id)
        self._document, self._locks = document_id, locks
        self._held: Db | None = None

    def acquire(self) -> bool:
        """As of `Lock`."""
        self._held = self._server.lock(self._key)
        if self._held is not None:
            self._locks[self._document] = self
        return self._held is not None

    def check(self) -> None:
        """Nothing, while it is held: whoever reads a document in our place has ended its connection first.

        Raises:
            StorageError: It is not held any more.
        """
        try:
            if self._held is not None:
                self._held.execute("SELECT 1")
        except psycopg.Error as error:
            text = "This document is read by another process by now, or the database was away."
            raise StorageError(text, hint="Try again in a moment.", key="document_unheld") from error

    def release(self) -> None:
        """As of `Lock`."""
        held, self._held = self._held, None
        if self._locks.get(self._document) is self:
            del self._locks[self._document]
        if held is not None:
            self._server.unlock(held, self._key)


_LARGEST = 2**31 - 1
_FIRST_COUNTED = 8  # documents whose letters are counted before it is seen whether there are too many already


def _fits(number: int) -> bool:
    return -_LARGEST <= number <= _LARGEST


def _kept(value: Any) -> Any:
    return writable(value) if isinstance(value, str) else value


def _all(texts: Collection[str]) -> list[str]:
    return [writable(one) for one in texts]


def _passage(row: tuple[Any, ...], score: float) -> Passage:
    chunk_id, text, name, document_id, page, rectangles, heading = row
    places = tuple((x0, y0, x1, y1) for x0, y0, x1, y1 in json.loads(rectangles))
    return Passage(text, round(score, 6), name, document_id, page, places, heading, chunk_id)
