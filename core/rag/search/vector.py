"""Search by meaning, and hybrid search by words and meaning."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from core.errors import ModelServiceError
from core.rag.prose import ideographs
from core.rag.search.keyword import KeywordSearcher

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from core.rag.embedding.across import Script
    from core.rag.embedding.base import Floats
    from core.rag.shelf import Found, Similarity, Vectors

NEAREST = 200
"""Chunks of a large library that are compared: enough for the best ten to be among them almost surely."""


class _WithVectors(KeywordSearcher):
    """What searches by meaning, and by words where there are no vectors.

    Args:
        vectors: Those of each model, the best first.
    """

    def __init__(self, shelf: Found, vectors: Sequence[Vectors] = ()) -> None:
        super().__init__(shelf)
        self._vectors = vectors


class VectorSearcher(_WithVectors):
    """Chunks by meaning; while there are no vectors yet, by words."""

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


_LOOKED_AT = 50  # the best of each side that are put together
_WORDS_BESIDE_PARTS = 0.7  # chosen on typeset articles of SQuAD, none of which is in the reported draw
_WORDS_ACROSS = 0.15  # years and foreign names alone are the same in both scripts; chosen on half of XQuAD's questions
_SCRIPT_OF = 10  # the most alike passages, whose script is looked at


class HybridSearcher(_WithVectors):
    """Chunks by words and meaning; while there are no vectors yet, by words alone."""

    def find(self, question: str, k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """Chunks with their scores from 0 to 1, or of words alone where nothing else is there."""
        if k < 1:
            return []
        words = super().find(question, max(k, _LOOKED_AT), documents)
        alike = partial(self._alike, question, documents, max(NEAREST, 2 * k), [chunk_id for chunk_id, _ in words])
        best = next(alike(), None)
        if best is None:
            return words[:k]
        if not self._is_in_another_script(question, best):
            return _fused(words, best, k)
        return _across(words, [*alike("Chinese" if _is_chinese(question) else "other")] or [best], k)

    def _alike(
        self,
        question: str,
        documents: Collection[str] | None,
        nearest: int,
        also: Sequence[int],
        script: Script | None = None,
    ) -> Iterator[Similarity]:
        """The similarities by each model with a vector for every chunk; a model is loaded when its turn comes."""
        for vectors in self._vectors:
            with suppress(ModelServiceError):  # a service that is out of reach now: words find without it
                likeness = vectors.like(question, documents, nearest=nearest, also=also, script=script)
                if likeness is not None:
                    yield likeness

    def _is_in_another_script(self, question: str, likeness: Similarity) -> bool:
        nearest = [int(likeness.ids[at]) for at in top(likeness.cosines, _SCRIPT_OF)]
        texts = self._shelf.texts_of(nearest)
        return bool(texts) and _is_chinese(" ".join(texts)) != _is_chinese(question)


def _is_chinese(text: str) -> bool:
    wide = ideographs(text)
    # An ideograph says as much as several letters. Of texts without any, which most are, no letter is counted.
    return wide > 0 and wide * 3 > sum(map(str.isalpha, text))


def _fused(words: Sequence[tuple[int, float]], likeness: Similarity, k: int) -> list[tuple[int, float]]:
    """The best of both sides, by the sum of both stretched scores."""
    said = _said(words, likeness.ids)
    either = np.union1d(top(said, _LOOKED_AT), top(likeness.cosines, _LOOKED_AT))
    weight = np.float32(_WORDS_BESIDE_PARTS if likeness.in_parts else 1.0)
    total: Floats = (weight * _stretched(said[either]) + _stretched(likeness.cosines[either])) / (1 + weight)
    order = top(total, k)
    return [(int(likeness.ids[either[at]]), float(total[at])) for at in order]


def _across(words: Sequence[tuple[int, float]], alike: Sequence[Similarity], k: int) -> list[tuple[int, float]]:
    """The best by all models, which err differently, and by the few words that both scripts share."""
    ids = alike[0].ids
    # Of another model's there are others where chunks came or went between both answers, or were left out.
    same = [one for one in alike if np.array_equal(one.ids, ids)]
    total: Floats = np.float32(_WORDS_ACROSS) * _stretched(_said(words, ids))
    for one in same:
        total = total + _stretched(one.cosines)
    total = total / np.float32(len(same) + _WORDS_ACROSS)
    return [(int(ids[at]), float(total[at])) for at in top(total, k)]


def _said(words: Sequence[tuple[int, float]], ids: NDArray[np.int64]) -> Floats:
    """The scores by words of these chunks, whose ids grow."""
    said = np.zeros(len(ids), np.float32)
    found = np.array([chunk_id for chunk_id, _ in words], np.int64)
    places = np.minimum(np.searchsorted(ids, found), len(said) - 1)
    there = ids[places] == found  # a chunk may have come or gone between both searches
    said[places[there]] = np.array([score for _, score in words], np.float32)[there]
    return said


def _stretched(scores: Floats) -> Floats:
    low, high = float(scores.min()), float(scores.max())
    if high > low:
        return ((scores - low) / (high - low)).astype(np.float32)
    return np.full_like(scores, float(high > 0))  # one alone, or all alike: all of it, or nothing
