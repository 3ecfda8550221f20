"""Documents, chunks and pages as rows of the library's file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from core.errors import NotFoundError
from core.rag.document import Document, PageShape, Passage

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from core.rag.document import Chunk

_COLUMNS = "id, name, media_type, pages, chunks, status, note, title, size"


def insert(
    db: sqlite3.Connection, document: Document, chunks: Sequence[Chunk], shapes: Sequence[PageShape]
) -> list[int]:
    """Write a document with all that belongs to it; the ids of its chunks come back."""
    db.execute(
        f"INSERT INTO documents ({_COLUMNS}, number) "  # noqa: S608 - literal names
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(number), 0) + 1 FROM documents))",
        (
            document.id,
            document.name,
            document.media_type,
            document.pages,
            document.chunks,
            document.status,
            document.note,
            document.title,
            document.size,
        ),
    )
    db.executemany(
        "INSERT INTO pages VALUES (?, ?, ?, ?, ?)",
        ((document.id, one.page, one.width, one.height, json.dumps(one.text_box)) for one in shapes),
    )
    ids: list[int] = []
    for position, chunk in enumerate(chunks):
        places = json.dumps(chunk.rectangles, separators=(",", ":"))
        row = (document.id, position, chunk.text, chunk.page, chunk.heading, places, chunk.overlap)
        done = db.execute(
            "INSERT INTO chunks (document_id, position, text, page, heading, rectangles, overlap) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        ids.append(done.lastrowid or 0)
    return ids


def get(db: sqlite3.Connection, document_id: str) -> Document | None:
    """One document, if it is there."""
    row = db.execute(f"SELECT {_COLUMNS} FROM documents WHERE id = ?", (document_id,)).fetchone()  # noqa: S608
    return Document(*row) if row else None


def everything(db: sqlite3.Connection) -> list[Document]:
    """All documents in the order in which they came."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM documents ORDER BY number").fetchall()  # noqa: S608
    return [Document(*row) for row in rows]


def chunk_ids(db: sqlite3.Connection, document_id: str) -> list[int]:
    """The ids of a document's chunks."""
    return [row[0] for row in db.execute("SELECT id FROM chunks WHERE document_id = ?", (document_id,))]


def passages(db: sqlite3.Connection, scored: Sequence[tuple[int, float]]) -> list[Passage]:
    """The chunks with these ids, in this order; one that is gone meanwhile is left out."""
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


def chunk_texts(db: sqlite3.Connection) -> list[tuple[int, str]]:
    """Every chunk with the text under which it is found."""
    rows = db.execute(
        "SELECT chunks.id, documents.title, documents.name, heading, text "
        "FROM chunks JOIN documents ON documents.id = document_id"
    )
    return [(chunk_id, searched_text(title or name, heading, text)) for chunk_id, title, name, heading, text in rows]


def searched_text(title: str, heading: str, text: str) -> str:
    """A chunk is found by its document's title and its headings too."""
    return f"{title}\n{heading}\n{text}"


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
