"""The sentence of a reply that carries a mark, and the sentences of the passage that bear it out."""

from __future__ import annotations

import re
from collections import Counter

from core.rag.markup import Markup
from core.rag.sentences import sentence_spans
from core.rag.support import words_of

# A run of spaces is tried once, from its start.
_MARK = re.compile(
    r"(?<![ \t\u00a0])[ \t\u00a0]*+(?:\[(\d{1,3}(?:[,，、;] ?\d{1,3}){0,9})\](?!\()|【(\d{1,3})[^】\n]{0,40}】)"
)
_NUMBERS = re.compile(r"\d+")
_FEWEST = 2  # words that both have
_SHARE = 0.25  # of the sentence's words
_SECOND_ADDS = 0.2
_LONGEST = 40_000  # letters of a passage that is compared


def cited_numbers(text: str) -> list[int]:
    """The numbers of all marks in a Markdown text, in order; each as often as it stands there."""
    return [number for number, _ in _marks(text)]


def sentence_of(text: str, number: int, occurrence: int = 0) -> str:
    """The sentence before a mark; "" where there is no such mark.

    Args:
        text: Markdown with marks such as `[1]`.
        number: What the mark says.
        occurrence: Which of the marks that say so, from 0; the first, if there are not so many.
    """
    ends = [end for one, end in _marks(text) if one == number]
    if not ends:
        return ""
    before = text[: ends[occurrence] if 0 <= occurrence < len(ends) else ends[0]]
    line = _MARK.sub("", before[before.rfind("\n") + 1 :]).rstrip()
    spans = sentence_spans(line)
    return line[slice(*spans[-1])].strip() if spans else ""


def borne_by(sentence: str, text: str) -> list[tuple[int, int]]:
    """Where the sentences stand in a passage that bear out a sentence best, two at most; none if none does.

    Args:
        sentence: Of a reply.
        text: The passage's; a row of a table counts as a sentence.
    """
    said = words_of(sentence)
    spans = _sentences(text[:_LONGEST])
    shared = [said & words_of(text[start:end]) for start, end in spans]
    if not said or not shared:
        return []
    # What stands in each row says less than what stands in one.
    common = Counter(word for words in shared for word in words)
    scores = [sum(_weight(word) / common[word] for word in words) for words in shared]
    best = max(range(len(scores)), key=lambda at: (scores[at], len(shared[at])))
    if len(shared[best]) < min(_FEWEST, len(said)) or len(shared[best]) < _SHARE * len(said):
        return []
    rest = [words - shared[best] for words in shared]
    second = max(range(len(rest)), key=lambda at: sum(_weight(word) for word in rest[at]))
    adds = len(rest[second]) >= max(_FEWEST, _SECOND_ADDS * len(said))
    return [spans[at] for at in sorted({best, second} if adds else {best})]


def _marks(text: str) -> list[tuple[int, int]]:
    """Number and beginning of each mark; what stands in code is none."""
    markup = Markup()
    literal = [markup.is_literal(letter) for letter in text]
    return [
        (int(number), match.start())
        for match in _MARK.finditer(text)
        if not literal[match.end() - 1]
        for number in _NUMBERS.findall(match[1] or match[2])
    ]


def _sentences(text: str) -> list[tuple[int, int]]:
    """Start and end of each sentence; one that goes on after a line's end is one."""
    spans: list[tuple[int, int]] = []
    in_row = False  # the last sentence, as far as it has come, is of a table
    for start, end in sentence_spans(text):
        has_bar = "|" in text[start:end]
        goes_on = bool(spans) and not (in_row or has_bar) and _goes_on(text[slice(*spans[-1])][-1:], text[start])
        begin = spans.pop()[0] if goes_on else start
        spans.append((begin, start + len(text[start:end].rstrip())))
        in_row = has_bar
    return spans


def _goes_on(before: str, after: str) -> bool:
    return before.isalpha() and after.islower()


def _weight(word: str) -> float:
    return 2.0 if any(letter.isdigit() for letter in word) else 1.0
