"""Search by meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from core.rag.search.keyword import KeywordSearcher

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.rag.embedding.base import Floats
    from core.rag.index_file import IndexFile
    from core.rag.search.word_index import WordIndex
    from core.rag.vectors import Vectors


NEAREST = 200
"""Chunks of a large library that are compared: enough for the best ten to be among them, all but surely."""


class VectorSearcher(KeywordSearcher):
    """Chunks that mean what the question means; while there are no vectors yet, those that hold its words.

    Args:
        file: The library's file.
        vectors: Those of each model, the best first.
        quick: The quicker index of words, if there is one.
    """

    def __init__(self, file: IndexFile, vectors: Sequence[Vectors] = (), quick: WordIndex | None = None) -> None:
        super().__init__(file, quick=quick)
        self._vectors = vectors

    def find(self, question: str, k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """Chunks by the cosine with the best model that has vectors for all of them."""
        if k < 1:
            return []
        for vectors in self._vectors:
            likeness = vectors.like(question, documents, nearest=max(NEAREST, 2 * k))
            if likeness is not None:
                return [(int(likeness.ids[at]), float(likeness.cosines[at])) for at in top(likeness.cosines, k)]
        return super().find(question, k, documents)


def top(scores: Floats, k: int) -> list[int]:
    """The places of the highest scores, the highest first."""
    if k < len(scores):
        some = np.argpartition(-scores, k)[:k]
        return [int(at) for at in some[np.argsort(-scores[some], kind="stable")]]
    return [int(at) for at in np.argsort(-scores, kind="stable")]
