"""Excerpts: of a text that is too long for a model, what fits a question best."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from core.rag.prose import sentence_spans
from core.rag.search.terms import terms

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEW_LINES = 3  # of a text whose lines are what is chosen from: rows of a table, or of a list


def excerpt(text: str, question: str, most: int) -> str:
    """Of a text that is too long, `most` characters that fit the question best.

    Of prose these are sentences that follow one another; of a table, rows, and its first line, for that may be its
    head. Where nothing fits, the beginning of the text stays.
    """
    lines = text.split("\n")
    if "|" in lines[0] or len(lines) > _FEW_LINES or len(sentence_spans(text)) == 1:
        return _lines_around(lines[0], lines[1:], text, question, most)
    spans = sentence_spans(text)
    fits = _fits([text[start:end] for start, end in spans], question)
    best = fits.index(max(fits))
    if not any(fits):
        return text[:most]
    first = last = best
    while True:
        before = fits[first - 1] if first and spans[last][1] - spans[first - 1][0] <= most else -1.0
        after = fits[last + 1] if last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= most else -1.0
        if max(before, after) < 0:
            return text[spans[first][0] : spans[last][1]].strip()[:most]
        if after >= before:
            last += 1
        else:
            first -= 1


def _fits(parts: Sequence[str], question: str) -> list[float]:
    """How well each part fits the question: a word that is in few of them tells more."""
    asked = set(terms(question))
    wanted = [asked.intersection(terms(part)) for part in parts]
    seen = Counter(term for found in wanted for term in found)
    return [sum(1 / seen[term] for term in found) for found in wanted]


def _lines_around(first: str, lines: Sequence[str], text: str, question: str, most: int) -> str:
    """The line that fits the question best, with those around it, and the first one."""
    fits = _fits(lines, question)
    room = most - len(first) - 1
    if not any(fits) or len(lines[best := fits.index(max(fits))]) > room:
        return text[:most]
    start = end = best
    room -= len(lines[best])
    while end + 1 < len(lines) and len(lines[end + 1]) < room:
        end += 1
        room -= len(lines[end]) + 1
    while start > 0 and len(lines[start - 1]) < room:
        start -= 1
        room -= len(lines[start]) + 1
    return "\n".join((first, *lines[start : end + 1]))
