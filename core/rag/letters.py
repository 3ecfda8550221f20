"""How large the letters of a page are printed, from where its lines stand."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import east_asian_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from core.rag.document import Block

_TALL = 1.12  # a printed line's height in sizes of its letters: no font's is smaller
_WIDE = 0.5  # a letter's usual width in its size; a Chinese one is as wide as it is large


def letters_of(blocks: Iterable[Block]) -> float:
    """The size, in points, of the letters that most of the text is printed in; 0 where no line has a place."""
    sizes = sorted(size for block in blocks for size in _sizes(block))
    half = sum(letters for _, letters in sizes) / 2
    for size, letters in sizes:
        half -= letters
        if half <= 0:
            return size
    return 0.0


def _sizes(block: Block) -> Iterator[tuple[float, int]]:
    """The size of each printed line's letters, and how many they are."""
    ends = [*(begin for begin, _ in block.lines[1:]), len(block.text)][: len(block.lines)]
    for (begin, (x0, y0, x1, y1)), end in zip(block.lines, ends, strict=True):
        text = block.text[begin:end].strip()
        wide = sum(1.0 if east_asian_width(letter) in "WF" else _WIDE for letter in text)
        size = min(abs(y1 - y0) / _TALL, abs(x1 - x0) / max(wide, _WIDE))
        if size > 0:
            yield size, len(text)
