"""The figures of a library: which stand beside passages, which a question names, and their pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.errors import NotFoundError
from core.rag.document import required
from core.rag.figure_labels import is_figure, labels_in

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from core.rag.document import Figure, Passage
    from core.rag.originals import Originals
    from core.rag.pages import Pictures
    from core.rag.shelf import Shelf

_FEWEST_PIXELS: Final = 10_000


class Figures:
    """Part of a library; use `Library.figures`."""

    def __init__(self, shelf: Shelf, originals: Originals, pictures: Pictures) -> None:
        self._shelf, self._originals, self._pictures = shelf, originals, pictures

    def of(self, document_ids: Collection[str]) -> list[Figure]:
        """The figures of documents, in their order.

        Raises:
            StorageError: The library cannot be read.
        """
        return self._shelf.figures(document_ids)

    def named(self, question: str, document_ids: Collection[str]) -> list[Figure]:
        """The figures that a question names, such as "figure 3" or 图2, in the order in which it does.

        Raises:
            StorageError: The library cannot be read.
        """
        labels = labels_in(question)
        there = [one for one in self.of(document_ids) if one.label in labels] if labels else []
        return sorted(there, key=lambda one: labels.index(one.label))

    def passages(self, figures: Sequence[Figure]) -> list[Passage]:
        """The passages that hold the captions of figures, each once.

        Raises:
            StorageError: The library cannot be read.
        """
        ids: dict[int, None] = {}
        for one in figures:
            if one.caption:
                rows = self._shelf.holding(one.document_id, one.page, one.caption)
                ids |= {chunk_id: None for chunk_id, text in rows if is_figure(text)}
        return self._shelf.passages([(chunk_id, 0.0) for chunk_id in ids])

    def picture(self, figure: Figure, pixels: int) -> Path:
        """The file with the picture of a figure (JPEG); it may be deleted at any time. Blocks.

        Args:
            pixels: It has no more.

        Raises:
            NotFoundError: The document or the page is gone.
            DocumentError: It cannot be drawn.
            StorageError: The library cannot be read.
            OSError: It cannot be kept.
        """
        document = required(self._shelf.document(figure.document_id))
        try:
            shape = self._shelf.shape(figure.document_id, figure.page) if figure.page is not None else None
        except NotFoundError:
            shape = None
        original = self._originals.path(document.id)
        return self._pictures.figure(document, original, figure, shape, max(_FEWEST_PIXELS, pixels))
