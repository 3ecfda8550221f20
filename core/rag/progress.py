"""How far the reading of a document has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadingProgress:
    """What is known of a document while it is read, and once more when it has been read.

    Args:
        document_id: The document's id in its library, the hash of its bytes.
        pages: Read so far; 0 where the format has none.
        total: How many it has, as soon as that is known; `None` where the format has none.
        scanned: Pages or pictures in which words were recognised.
        tables: Found so far.
        chunks: Those that a search finds already.
        seconds: Since reading began.
        fetching: Its address is being called; there is nothing to read yet.
        invisible: Invisible characters that were taken out.
    """

    document_id: str
    pages: int = 0
    total: int | None = None
    scanned: int = 0
    tables: int = 0
    chunks: int = 0
    seconds: float = 0.0
    fetching: bool = False
    invisible: int = 0
