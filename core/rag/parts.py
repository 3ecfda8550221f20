"""The parts of a chunk whose meaning is compared each on its own: two sentences or so.

A question asks for one thing, a chunk tells several: its vector as a whole is like none of them. The best of its parts
is what makes a chunk like a question.
"""

from __future__ import annotations

from core.rag.sentences import sentence_spans

PARTS = 4
"""The most parts of a chunk."""


def parts_of(title: str, heading: str, text: str) -> list[str]:
    """The parts, each under the heading; neighbours share a sentence.

    Args:
        title: Of the document; stands before the parts where there is no heading.
        heading: Above the chunk.
        text: The chunk's.
    """
    about = heading.strip() or title.strip()
    spans = sentence_spans(text)
    steps = len(spans) - 1  # from a sentence to the next
    count = max(1, min(PARTS, steps))
    found = list[str]()
    for number in range(count):
        first, last = number * steps // count, (number + 1) * steps // count
        part = text[spans[first][0] : spans[last][1]].strip() if spans else ""
        found.append(f"{about}\n{part}")
    return found
