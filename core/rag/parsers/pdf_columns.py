"""Pages of two columns whose lines are drawn across: the left column is read before the right one.

Most programs draw column by column, and then the order of drawing is the best there is, so it stays. Only where the
lines of two columns of prose alternate, or the right one comes first, are they put in order.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.rag.parsers.pdf_headings import Line

_FEWEST = 8  # lines in each column
_MIDDLE = (0.38, 0.65)  # of the page's width: where a right column begins
_STEP = 4.0  # points within which beginnings of lines are one
_FILLED = 0.6  # of a column's width: prose is that wide, the fields of a table are not
_MOST_WIDE = 0.25  # of the lines may go across both columns
_FEW_CHANGES = 5  # of side; a page drawn by columns has one, and one for each figure or note
_GAP = 1.0  # line heights that part paragraphs

Runs = list[list["Line"]]


def in_columns(runs: Runs, width: float) -> Runs:
    """The page's runs of lines in reading order.

    Args:
        runs: In the order in which they are drawn.
        width: Of the page, in points.
    """
    lines = [line for run in runs for line in run]
    if len(lines) < 2 * _FEWEST:
        return runs
    gutter = _gutter(lines, width)
    if gutter is None:
        return runs
    sides = [_side(line, gutter) for line in lines]
    if not _is_prose(lines, sides) or _is_in_order(sides) or _is_right_to_left(lines):
        return runs
    return list(_by_columns(lines, sides))


def _gutter(lines: Sequence[Line], width: float) -> float | None:
    """Where the right column begins, if one may be there: many lines begin at the same place in the middle."""
    first, last = (share * width for share in _MIDDLE)
    starts = Counter(round(x / _STEP) for line in lines if first <= (x := line.rectangle[0]) <= last)
    if not starts:
        return None
    (step, count) = starts.most_common(1)[0]
    return step * _STEP - _STEP if count >= _FEWEST else None


def _side(line: Line, gutter: float) -> str:
    x0, _, x1, _ = line.rectangle
    return "right" if x0 >= gutter else "left" if x1 <= gutter + _STEP else "both"


def _is_prose(lines: Sequence[Line], sides: Sequence[str]) -> bool:
    """Whether two columns of text stand beside each other, rather than the fields of a table."""
    if sides.count("both") > _MOST_WIDE * len(lines):
        return False
    spans: list[tuple[float, float]] = []
    for side in ("left", "right"):
        boxes = [line.rectangle for line, its in zip(lines, sides, strict=True) if its == side]
        if len(boxes) < _FEWEST:
            return False
        column = max(box[2] for box in boxes) - min(box[0] for box in boxes)
        if median(box[2] - box[0] for box in boxes) < _FILLED * column:
            return False
        spans.append((min(box[1] for box in boxes), max(box[3] for box in boxes)))
    (top, bottom), (other_top, other_bottom) = spans
    beside = min(bottom, other_bottom) - max(top, other_top)
    return beside > 0.5 * min(bottom - top, other_bottom - other_top)


def _is_in_order(sides: Sequence[str]) -> bool:
    order = [side for side in sides if side != "both"]
    changes = sum(one != other for one, other in pairwise(order))
    lefts = [at for at, side in enumerate(order) if side == "left"]
    rights = [at for at, side in enumerate(order) if side == "right"]
    return changes <= _FEW_CHANGES and median(lefts) < median(rights)


def _is_right_to_left(lines: Sequence[Line]) -> bool:
    """Whether it is Arabic or Hebrew, where the right column comes first."""
    letters = [letter for line in lines for letter in line.text[:20] if letter.isalpha()]
    return sum(unicodedata.bidirectional(letter) in {"R", "AL"} for letter in letters) * 2 > len(letters)


def _by_columns(lines: Sequence[Line], sides: Sequence[str]) -> Iterator[list[Line]]:
    """From one line across both columns to the next: the left column, then the right one."""
    placed = sorted(zip(lines, sides, strict=True), key=lambda one: _height(one[0]))
    columns: dict[str, list[Line]] = {"left": [], "right": []}
    for line, side in placed:
        if side != "both":
            columns[side].append(line)
            continue
        yield from _paragraphs(columns["left"])
        yield from _paragraphs(columns["right"])
        yield [line]
        columns = {"left": [], "right": []}
    yield from _paragraphs(columns["left"])
    yield from _paragraphs(columns["right"])


def _height(line: Line) -> tuple[float, float]:
    x0, y0, _, y1 = line.rectangle
    return (round((y0 + y1) / 2 / _STEP), x0)


def _paragraphs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Lines close below each other, in letters of the same size."""
    run: list[Line] = []
    for line in lines:
        if run and not _goes_on(run[-1], line):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _goes_on(before: Line, line: Line) -> bool:
    _, top, _, bottom = before.rectangle
    close = line.rectangle[1] - bottom < _GAP * (bottom - top)
    return close and line.size == before.size and not before.table and not line.table
