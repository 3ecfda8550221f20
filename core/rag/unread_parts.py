"""Which files within a document (an archive, a letter) could not be read: their places in its text say so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.rag.citations import BETWEEN
from core.rag.parsers.parts import NOT_READ, NOT_READ_BEYOND, REASONS

if TYPE_CHECKING:
    from core.rag.library import Library

PARTS_UNREAD: Final = "document_parts_unread"
"""The note of a document in which files could not be read."""
_LONGEST: Final = 60  # letters of a name
_SENTENCES: Final = frozenset(NOT_READ.format(*reason) for reason in REASONS.values())
_BEYOND = re.compile(re.escape(NOT_READ_BEYOND).replace(r"\{rest\}", r"(\d+)").replace(r"\{most\}", r"\d+"))


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
    for one in library.context.whole([document_id]):
        text = one.text.strip()
        if text in _SENTENCES and one.heading:
            names.append(_short(one.heading.replace(BETWEEN, "/")))
        elif beyond := _BEYOND.fullmatch(text):
            more += int(beyond[1])
    return UnreadParts(tuple(names), more)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"
