"""The letters of a page where it has them, packed while it is read, and whether they bear a mark out.

What a mark is made of are lines and blocks as they were put together, and of a line in part an estimate. What is kept
here comes from the page itself: its words with their boxes, of a scan the lines that were recognised.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, TypeAlias
from unicodedata import normalize

from core.rag.figure_labels import without_signs
from core.rag.text_width import text_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from core.rag.document import Block, Rectangle, WordRow

_Word: TypeAlias = tuple[float, float, float, float, str]

_NEAR: Final = 1.5  # points that a letter may stand out of a mark
_TALL: Final = 2.5  # times as high as it is wide, a word lies on its side
_MOST: Final = 20_000  # words of a page
_WORDS: Final = re.compile(r"[^\W_]+")
_NO_WORDS: Final = re.compile(r"[\W_]+")
_SHARE: Final = 0.9  # of the letters of a whole passage


def packed(words: Iterable[_Word]) -> tuple[WordRow, ...] | None:
    """Words with their boxes (in points, as displayed) in a form that takes little room, in the same order.

    `None` of more than 20,000, for by some of the words no mark is proved or disproved.
    """
    some = [*islice(words, _MOST + 1)]
    if len(some) > _MOST:
        return None
    rows: list[tuple[int, int, list[str], list[float]]] = []
    texts: list[str] = []
    edges: list[float] = []
    top = bottom = height = None
    for x0, y0, x1, y1, text in some:
        if y0 != top or y1 != bottom:  # the words of a line have one height: few are rounded
            top, bottom, here = y0, y1, (round(y0), round(y1))
            if here != height:
                height = here
                texts, edges = list[str](), list[float]()
                rows.append((*here, texts, edges))
        texts.append(text)
        edges += (x0, x1)
    return tuple((upper, lower, _lines(each), tuple(map(round, ends))) for upper, lower, each, ends in rows)


def _lines(texts: list[str]) -> str:
    """Each in one line."""
    lines = "\n".join(texts)
    return lines if lines.count("\n") < len(texts) else "\n".join(text.replace("\n", " ") for text in texts)


def pieces_of(block: Block) -> Iterator[_Word]:
    """The lines of a block, of a table whose columns are known its cells: for what is nowhere printed as it is told."""
    if not block.lines:  # its places are not known
        return
    ends = [*(start for start, _ in block.lines[1:]), len(block.text)]
    rows = block.cells if block.columns and len(block.cells) == len(block.lines) else ()
    for at, ((start, (x0, y0, x1, y1)), end) in enumerate(zip(block.lines, ends, strict=True)):
        if rows and len(rows[at]) == len(block.columns):
            yield from (
                (left, y0, right, y1, cell) for cell, (left, right) in zip(rows[at], block.columns, strict=True)
            )
        else:
            yield (x0, y0, x1, y1, block.text[start:end])


class Letters:
    """The letters of a page.

    Args:
        rows: As of `packed`.
    """

    def __init__(self, rows: Sequence[WordRow]) -> None:
        self._rows = rows

    def hold(self, text: str, places: Sequence[Rectangle]) -> bool:
        """Whether all words of a text stand in places of the page, each in one piece."""
        said = Counter(_words(text))
        inside = self._inside(places) if said else ""
        return all(inside.count(word) >= times for word, times in said.items())

    def hold_most(self, text: str, places: Sequence[Rectangle]) -> bool:
        """Whether nearly all that a passage says stands in its places."""
        inside, said = self._inside(places), _words(text)
        return sum(len(word) for word in said if word in inside) >= _SHARE * sum(map(len, said))

    def _inside(self, places: Sequence[Rectangle]) -> str:
        """The letters and figures within places, in the order of the page."""
        wide = [(x0 - _NEAR, y0 - _NEAR, x1 + _NEAR, y1 + _NEAR) for x0, y0, x1, y1 in places]
        found: list[str] = []
        for top, bottom, texts, edges in self._rows:
            middle, left, right = (top + bottom) / 2, min(edges), max(edges)
            here = [one for one in wide if one[1] <= middle <= one[3] and one[0] < right and left < one[2]]
            if not here:
                continue
            if len(texts) > 1 and bottom - top > _TALL * (right - left) / (texts.count("\n") + 1):
                here = [one for one in here if _has_most(texts, top, bottom, one)]
            if any(x0 <= left and right <= x1 for x0, _, x1, _ in here):
                found.append(texts)
            elif here:
                spans = zip(texts.split("\n"), edges[::2], edges[1::2], strict=False)
                found += [part for text, x0, x1 in spans for part in _covered(text, x0, x1, here)]
        return _bare(" ".join(found))


def _has_most(text: str, top: int, bottom: int, place: Rectangle) -> bool:
    """Whether a place has a word that lies on its side but for half a letter: which way it runs is not known."""
    return min(bottom, place[3]) - max(top, place[1]) > (bottom - top) * (1 - 0.5 / len(text))


def _covered(text: str, begin: int, end: int, places: Iterable[Rectangle]) -> Iterator[str]:
    """The letters of a word, or of a line that is one piece, whose middle lies in places."""
    for left, _, right, _ in places:
        if left <= begin and end <= right:
            yield text
            return
        if left < end and begin < right:
            yield "".join(letter for letter, middle in _middles(text, begin, end) if left <= middle <= right)
            return


def _middles(text: str, begin: int, end: int) -> Iterator[tuple[str, float]]:
    """Each letter with the middle of its place, where none is known but that of all."""
    steps = [0.0]
    for letter in text:
        steps.append(steps[-1] + text_width(letter))
    scale = (end - begin) / (steps[-1] or 1.0)
    for letter, (before, after) in zip(text, pairwise(steps), strict=True):
        yield letter, begin + scale * (before + after) / 2


def _words(text: str) -> list[str]:
    """The words of a text as they are compared: in small letters, without signs."""
    return _WORDS.findall(normalize("NFKC", without_signs(text)).casefold())


def _bare(text: str) -> str:
    """The same words as one."""
    return _NO_WORDS.sub("", normalize("NFKC", text).casefold())
