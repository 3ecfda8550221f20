"""How wide text is that is printed in a usual font."""

from __future__ import annotations

from collections import Counter
from unicodedata import east_asian_width

# From the space to the tilde, in hundredths of their size: the mean of Helvetica and Times.
_WIDTHS = (
    *(26, 31, 38, 53, 53, 86, 72, 19, 33, 33, 44, 57, 26, 33, 26, 28, 53, 53, 53, 53, 53, 53, 53, 53, 53, 53, 28, 28),
    *(57, 57, 57, 50, 97, 69, 67, 69, 72, 64, 58, 75, 72, 31, 44, 69, 58, 86, 72, 75, 61, 75, 69, 61, 61, 72, 69, 94),
    *(69, 69, 61, 31, 28, 31, 47, 53, 33, 50, 53, 47, 53, 50, 31, 53, 53, 25, 25, 50, 25, 81, 53, 53, 53, 53, 33, 44),
    *(28, 53, 50, 72, 50, 50, 47, 41, 23, 41, 56),
)
_ADVANCES = {chr(32 + at): width / 100 for at, width in enumerate(_WIDTHS)}


def text_width(text: str) -> float:
    """The width of text, in widths of a Chinese character; an estimate for highlighting."""
    return sum(
        count * (_ADVANCES.get(letter) or (1.0 if east_asian_width(letter) in "WF" else 0.52))
        for letter, count in Counter(text).items()
    )
