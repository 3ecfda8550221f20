"""The pages that replies cite: pictures, and on each the places of the passages and of the sentences that bear out."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from core.errors import ParlourError, StorageError
from core.rag.citations import sentence_of
from core.rag.places import proof_on_page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from core.export.schema import ExportedCitation
    from core.rag.document import Rectangle
    from core.rag.library import Library

ZOOM = 2.0
"""Pixels for each point of a page."""
_MOST_MARKS = 20  # sentences that are looked for in one passage

PageKey: TypeAlias = "tuple[str, int]"
"""A document's id in the index, and the page."""


@dataclass(frozen=True, slots=True)
class PagePicture:
    """The picture of a page as PNG; `size` is that of the page in points."""

    png: bytes
    size: tuple[float, float]


def page_of(one: ExportedCitation) -> PageKey | None:
    """The page that a passage is on; `None` for one of the web, or of a document without pages."""
    return (one.document_id, one.page) if one.document_id and one.page is not None and not one.url else None


def cited_sentences(texts: Iterable[str], number: int) -> list[str]:
    """The sentences that name a passage, each once.

    Args:
        texts: What a reply says.
    """
    found: dict[str, None] = {}
    for text in texts:
        for occurrence in range(_MOST_MARKS):
            said = sentence_of(text, number, occurrence)
            if not said or (occurrence and said in found):
                break
            found[said] = None
    return list(found)


class CitedPages:
    """Draws pages for a program that takes them along; what cannot be drawn is left out.

    Args:
        library: The index of the owner's documents; `None` where it is not there.
        kept: Pictures that came along with the conversation: what reads each, and the size of its page in points.
    """

    def __init__(
        self,
        library: Library | None,
        kept: Mapping[PageKey, tuple[Callable[[], Awaitable[bytes]], tuple[float, float]]] | None = None,
    ) -> None:
        self._library = library
        self._kept = kept or {}

    async def picture(self, page: PageKey) -> PagePicture | None:
        """A page; `None` where the document is gone, or has no pages to be seen."""
        drawn = await asyncio.to_thread(self._drawn, page)
        if drawn is not None or page not in self._kept:
            return drawn
        read, size = self._kept[page]
        try:
            return PagePicture(await read(), size)
        except (OSError, StorageError):
            return None

    def _drawn(self, page: PageKey) -> PagePicture | None:
        if self._library is not None:
            with suppress(ParlourError):
                return PagePicture(self._library.page_image(*page, ZOOM), self._library.page_size(*page))
        return None

    def borne_out(self, one: ExportedCitation, sentences: Sequence[str]) -> tuple[Rectangle, ...]:
        """The places on the page of what bears these sentences out; nothing where that cannot be known."""
        page = page_of(one)
        if self._library is None or page is None:
            return ()
        try:
            content = self._library.pages.content(*page)
        except ParlourError:
            return ()
        return proof_on_page(sentences, one.text, content.blocks, content.letters)
