"""What is stored of a reading that is over, and what the page tells of it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from core.errors import DocumentError, NotFoundError
from core.rag.document import ReadingProgress
from core.runs.run import as_dict

if TYPE_CHECKING:
    from collections.abc import Collection

    from core.rag.document import Document
    from core.rag.library import Library

FOUND = ("ready", "stopped")
"""States in a library of what was read, all or some of it."""

_PASSING = frozenset({"document_id", "fetching"})  # of no interest afterwards


def read(document: Document, name: str, progress: ReadingProgress | None, *, known: bool) -> dict[str, Any]:
    """Of a document that was read, to its end or until somebody stopped it.

    Args:
        document: As it is in the index.
        name: What its owner calls it.
        progress: How far it came.
        known: Nothing had to be read: the same bytes were there.
    """
    if document.status == "stopped":
        return {"status": "cancelled", "library_id": document.id, "facts": facts_of(progress)}
    told = replace(
        progress or ReadingProgress(document.id),
        pages=document.pages or 0,
        total=document.pages,
        chunks=document.chunks,
        scanned=document.scanned,
        tables=document.tables,
        seconds=document.seconds,
        invisible=document.invisible,
    )
    facts = {**(facts_of(told) or {}), **({"known": True} if known else {})}
    ready: dict[str, Any] = {"status": "ready", "library_id": document.id, "pages": document.pages, "facts": facts}
    if document.note:
        noted = DocumentError(f"{name}: {document.note}.", key=document.note, name=name)
        ready["error"] = as_dict(noted)
    return ready


def facts_of(progress: ReadingProgress | None) -> dict[str, Any] | None:
    """What is kept of how far it came."""
    if progress is None:
        return None
    return {name: value for name, value in asdict(progress).items() if name not in _PASSING}


def is_known(library: Library, digest: str, states: Collection[str] = ("ready",)) -> bool:
    """Whether a library has these bytes, in one of the states. Raises StorageError."""
    try:
        return library.document(digest).status in states
    except NotFoundError:
        return False
