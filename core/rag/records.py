"""Documents, chunks and pages as rows of the library's file."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from core.errors import NotFoundError
from core.rag.document import Document, Figure, Heading, PageShape, Passage

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Sequence

    from core.rag.document import Chunk

_COLUMNS = tuple(one.name for one in fields(Document))
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM documents"  # noqa: S608 - names of our own fields


def insert(
    db: sqlite3.Connection,
    document: Document,
    chunks: Sequence[Chunk],
    shapes: Sequence[PageShape],
    figures: Sequence[Figure] = (),
) -> list[int]:
    """Write a document with its chunks, page shapes and figures so far; returns the ids of the chunks."""
    db.execute(
        f"INSERT INTO documents ({', '.join(_COLUMNS)}, number) "  # noqa: S608 - names of our own fields
        f"VALUES ({'?, ' * len(_COLUMNS)}(SELECT coalesce(max(number), 0) + 1 FROM documents))",
        _values(document),
    )
    _add_figures(db, figures)
    return _add(db, document.id, 0, chunks, shapes)


def extend(
    db: sqlite3.Connection,
    document: Document,
    chunks: Sequence[Chunk],
    shapes: Sequence[PageShape],
    figures: Sequence[Figure] = (),
) -> list[int]:
    """Add a piece to a document; `document` is its record including these chunks.

    The stored name stays, as the document may have been renamed meanwhile.
    """
    columns = [column for column in _COLUMNS if column not in {"id", "name"}]
    values = [getattr(document, column) for column in columns]
    changes = ", ".join(f"{column} = ?" for column in columns)
    db.execute(f"UPDATE documents SET {changes} WHERE id = ?", [*values, document.id])  # noqa: S608 - our own fields
    _add_figures(db, figures)
    return _add(db, document.id, document.chunks - len(chunks), chunks, shapes)


def _add_figures(db: sqlite3.Connection, figures: Sequence[Figure]) -> None:
    db.executemany(
        "INSERT OR REPLACE INTO figures VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (one.document_id, one.number, one.page, one.label, one.caption, json.dumps(one.place), one.source)
            for one in figures
        ),
    )


def _values(document: Document) -> list[Any]:
    return [getattr(document, column) for column in _COLUMNS]


def _add(
    db: sqlite3.Connection, document_id: str, first: int, chunks: Sequence[Chunk], shapes: Sequence[PageShape]
) -> list[int]:
    db.executemany(
        "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?)",
        ((document_id, one.page, one.width, one.height, json.dumps(one.text_box)) for one in shapes),
    )
    ids: list[int] = []
    for position, chunk in enumerate(chunks, first):
        places = json.dumps(chunk.rectangles, separators=(",", ":"))
        row = (document_id, position, chunk.text, chunk.page, chunk.heading, places, chunk.overlap)
        done = db.execute(
            "INSERT INTO chunks (document_id, position, text, page, heading, rectangles, overlap) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        ids.append(done.lastrowid or 0)
    return ids


def remove(db: sqlite3.Connection, document_id: str) -> None:
    """Delete a document with its chunks and pages; the caller deletes its words from the search index."""
    db.execute("DELETE FROM documents WHERE id = ?", (document_id,))


def get(db: sqlite3.Connection, document_id: str) -> Document | None:
    """One document, if it is there."""
    row = db.execute(f"{_SELECT} WHERE id = ?", (document_id,)).fetchone()
    return Document(*row) if row else None


def all_documents(db: sqlite3.Connection) -> list[Document]:
    """All documents, the oldest first."""
    rows = db.execute(f"{_SELECT} ORDER BY number").fetchall()
    return [Document(*row) for row in rows]


def chunk_ids(db: sqlite3.Connection, document_id: str) -> list[int]:
    """The ids of a document's chunks."""
    return [row[0] for row in db.execute("SELECT id FROM chunks WHERE document_id = ?", (document_id,))]


def headings(db: sqlite3.Connection, document_ids: Collection[str]) -> dict[str, list[Heading]]:
    """The headings of the first two levels of each document, in the order in which they come."""
    rows = db.execute(
        "SELECT document_id, heading, page FROM chunks "
        "WHERE document_id IN (SELECT value FROM json_each(?)) AND heading <> '' ORDER BY document_id, position",
        (json.dumps(list(document_ids)),),
    )
    return headings_in(rows)


def headings_in(rows: Iterable[tuple[str, str, int | None]]) -> dict[str, list[Heading]]:
    """The headings of the first two levels of documents.

    Args:
        rows: Of chunks in their order: the document, the headings above it, and the page.
    """
    found: dict[str, dict[tuple[str, ...], Heading]] = {}
    for document_id, heading, page in rows:
        path = tuple(heading.split(" > ")[:2])
        there = found.setdefault(document_id, {})
        for level in range(1, len(path) + 1):
            there.setdefault(path[:level], Heading(level, path[level - 1], page))
    return {document_id: list(there.values()) for document_id, there in found.items()}


def passages(db: sqlite3.Connection, scored: Sequence[tuple[int, float]]) -> list[Passage]:
    """The chunks with these ids, in this order, without those deleted meanwhile."""
    rows: dict[int, tuple[Any, ...]] = {
        row[0]: row
        for row in db.execute(
            "SELECT chunks.id, text, documents.name, documents.id, page, rectangles, heading "
            "FROM chunks JOIN documents ON documents.id = document_id "
            "WHERE chunks.id IN (SELECT value FROM json_each(?))",
            (json.dumps([chunk_id for chunk_id, _ in scored]),),
        )
    }
    return [_passage(rows[chunk_id], score) for chunk_id, score in scored if chunk_id in rows]


def _passage(row: tuple[Any, ...], score: float) -> Passage:
    chunk_id, text, name, document_id, page, rectangles, heading = row
    places = tuple((x0, y0, x1, y1) for x0, y0, x1, y1 in json.loads(rectangles))
    return Passage(text, round(score, 6), name, document_id, page, places, heading, chunk_id)


def figures(db: sqlite3.Connection, document_ids: Collection[str]) -> list[Figure]:
    """The figures of documents, in their order."""
    rows = db.execute(
        "SELECT figures.document_id, documents.name, figures.number, page, label, caption, place, source "
        "FROM figures JOIN documents ON documents.id = figures.document_id "
        "WHERE figures.document_id IN (SELECT value FROM json_each(?)) ORDER BY documents.number, figures.number",
        (json.dumps(list(document_ids)),),
    )
    return [Figure(*row[:6], place=tuple(json.loads(row[6]) or ()) or None, source=row[7]) for row in rows]


def chunk_texts(db: sqlite3.Connection) -> list[tuple[int, str]]:
    """Every chunk id with the text that is indexed for it."""
    rows = db.execute(
        "SELECT chunks.id, documents.title, documents.name, heading, text "
        "FROM chunks JOIN documents ON documents.id = document_id"
    )
    return [(chunk_id, searched_text(title or name, heading, text)) for chunk_id, title, name, heading, text in rows]


def searched_text(title: str, heading: str, text: str) -> str:
    """The text that is indexed for a chunk: with its document's title and its headings."""
    return f"{title}\n{heading}\n{text}"


def last_page(db: sqlite3.Connection, document_id: str) -> int:
    """The last page that is stored; 0 if none is."""
    (last,) = db.execute("SELECT coalesce(max(page), 0) FROM pages WHERE document_id = ?", (document_id,)).fetchone()
    return int(last)


def shape(db: sqlite3.Connection, document_id: str, page: int) -> PageShape:
    """The shape of a page.

    Raises:
        NotFoundError: There is no such document or page.
    """
    row = db.execute(
        "SELECT width, height, text_box FROM pages WHERE document_id = ? AND page = ?", (document_id, page)
    ).fetchone()
    if row is None:
        raise NotFoundError(f"There is no page {page}.")
    width, height, box = row
    corners = json.loads(box)
    return PageShape(page, width, height, tuple(corners) if corners else None)
