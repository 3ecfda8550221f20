"""Which files within a document (an archive, a letter) could not be read: what stands in their place says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.rag.citations import BETWEEN
from core.rag.not_read import beyond, is_not_read

if TYPE_CHECKING:
    from core.rag.document import Document
    from core.rag.library import Library

PARTS_UNREAD: Final = "document_parts_unread"
"""The note of a document in which files could not be read."""
_LONGEST: Final = 60  # letters of a name


@dataclass(frozen=True, slots=True)
class UnreadParts:
    """Files within a document that could not be read.

    Args:
        names: Those that are known by name, in their order; files within files with both names.
        more: How many there are besides.
    """

    names: tuple[str, ...] = ()
    more: int = 0


def unread_parts(library: Library, document_id: str) -> UnreadParts:
    """Which they are, of a document with the note `PARTS_UNREAD`. Blocks.

    Raises:
        StorageError: The library cannot be read.
    """
    names: list[str] = []
    more = 0
    for one in library.context.whole([document_id], unread=True):
        if rest := beyond(one.text):
            more += rest
        elif is_not_read(one.text) and one.heading:
            names.append(_short(one.heading.replace(BETWEEN, "/")))
    return UnreadParts(tuple(names), more)


def chunks_of_text(library: Library, document: Document) -> int:
    """How many chunks of a document are text of it. Blocks. Raises StorageError."""
    if document.note != PARTS_UNREAD:
        return document.chunks
    return document.chunks - sum(is_not_read(one.text) for one in library.context.whole([document.id], unread=True))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"
