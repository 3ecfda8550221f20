"""What a program drew too late: a head, a table or a box of text goes before that over which it stands.

Most programs draw in reading order, so that stays, but for what stands above something that was drawn before it, in the
same column.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from core.rag.document import union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_headings import Line
    from core.rag.parsers.pdf_margins import Runs

_MOST = 400  # runs of lines; a map or a plot has more, and no order
_SAME_COLUMN = 0.5  # of the narrower one's width stand above each other
_TOUCHING = 2.0  # points by which boxes of lines may reach into each other


def top_down(runs: Runs) -> Runs:
    """The page's runs of lines; one that stands above an earlier one, in its column, goes before it.

    Args:
        runs: In the order in which they are drawn, columns in theirs.
    """
    if not 1 < len(runs) <= _MOST or _is_lying(runs):
        return runs
    done: Runs = []
    places: list[Rectangle] = []
    for run in runs:
        place = _place(run)
        at = next((at for at, other in enumerate(places) if _is_above(place, other)), len(done))
        done.insert(at, run)
        places.insert(at, place)
    return done


def _place(run: Sequence[Line]) -> Rectangle:
    return union(tuple(line.rectangle for line in run)) or (0.0, 0.0, 0.0, 0.0)


def _is_above(one: Rectangle, other: Rectangle) -> bool:
    if one[3] > other[1] + _TOUCHING or one[1] >= other[1]:
        return False
    shared = min(one[2], other[2]) - max(one[0], other[0])
    return shared > _SAME_COLUMN * min(one[2] - one[0], other[2] - other[0])


def _is_lying(runs: Runs) -> bool:
    """Whether the text lies on its side or stands on its head, so that "above" does not mean "before"."""
    steps = [below.rectangle[1] - line.rectangle[1] for run in runs for line, below in pairwise(run)]
    if sum(step < 0 for step in steps) > sum(step > 0 for step in steps):
        return True
    boxes = [line.rectangle for run in runs for line in run if len(line.text) > 2]
    return sum(x1 - x0 < y1 - y0 for x0, y0, x1, y1 in boxes) * 2 > len(boxes)
