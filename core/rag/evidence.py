"""Passages before the model, and citation marks in its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.document import Passage


def numbered(passages: Sequence[Passage]) -> str:
    """The passages as a text block for a model, numbered from 1."""
    raise NotImplementedError


class CitingStream:
    """Text passes through; sentences that a passage supports get ` [n]`."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = tuple(passages)

    def feed(self, text: str) -> str:
        """Take in a piece, give out what is settled."""
        raise NotImplementedError

    def close(self) -> str:
        """The rest."""
        raise NotImplementedError
