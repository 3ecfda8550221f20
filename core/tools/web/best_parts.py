"""Which parts of a long text are given to a model: those about a question, or its two ends."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.rag.prose import count_tokens
from core.rag.search.terms import terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_K1, _B = 1.2, 0.75  # as BM25 is mostly used
_HEAD = 0.6  # of the room is for the beginning, where a text is cut to its ends


@dataclass(frozen=True, slots=True)
class Chosen:
    """Parts of a text.

    Args:
        numbers: Theirs, in order of the text, from 0.
        by_question: Whether they are those about the question; else all, or the two ends.
    """

    numbers: tuple[int, ...]
    by_question: bool = False


def best_parts(parts: Sequence[str], question: str, room: float) -> Chosen:
    """The parts that fit into `room` tokens; all if they fit.

    Args:
        parts: In order.
        question: What is wanted of them; "" for the beginning and the end.
        room: Tokens, by estimate. The first part chosen is given even if it is larger.
    """
    sizes = [count_tokens(part) for part in parts]
    if sum(sizes) <= room:
        return Chosen(tuple(range(len(parts))))
    asked = set(terms(question))
    scores = _scores(parts, asked) if asked else []
    if not any(scores):
        return Chosen(tuple(_ends(sizes, room)))
    order = sorted(range(len(parts)), key=lambda at: (-scores[at], at))
    return Chosen(tuple(sorted(_fitting((at for at in order if scores[at]), sizes, room))), by_question=True)


def _ends(sizes: Sequence[float], room: float) -> list[int]:
    head = _fitting(range(len(sizes)), sizes, room * _HEAD)
    left = room - sum(sizes[at] for at in head)
    tail = _fitting(range(len(sizes) - 1, len(head) - 1, -1), sizes, left) if left > sizes[-1] else []
    return [*head, *sorted(tail)]


def _fitting(order: Iterable[int], sizes: Sequence[float], room: float) -> list[int]:
    found: list[int] = []
    for at in order:
        if found and sizes[at] > room:
            break
        found.append(at)
        room -= sizes[at]
    return found


def _scores(parts: Sequence[str], asked: set[str]) -> list[float]:
    """BM25 of each part."""
    counted = [Counter(terms(part)) for part in parts]
    lengths = [sum(words.values()) for words in counted]
    usual = (sum(lengths) / len(parts)) or 1.0
    rarity = {
        term: math.log(1 + (len(parts) - among + 0.5) / (among + 0.5))
        for term in asked
        if (among := sum(term in words for words in counted))
    }
    return [
        sum(
            weight * words[term] * (_K1 + 1) / (words[term] + _K1 * (1 - _B + _B * length / usual))
            for term, weight in rarity.items()
            if words[term]
        )
        for words, length in zip(counted, lengths, strict=True)
    ]
