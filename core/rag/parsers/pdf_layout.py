"""Reading order of a PDF page: left column before right, and late-drawn blocks before what they stand above."""

from __future__ import annotations

import unicodedata
from collections import Counter
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from core.rag.document import union

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_page import Line, Runs

_FEWEST_LINES = 8  # lines in each column
_MIDDLE = (0.38, 0.65)  # of the page's width: where a right column begins
_STEP = 4.0  # points within which the starts of lines count as equal
_FILLED = 0.6  # of a column's width: prose is that wide, the fields of a table are not
_MOST_WIDE = 0.25  # of the lines may go across both columns
_FEW_CHANGES = 5  # of side; a page drawn by columns has one, and one for each figure or note
_PARAGRAPH_GAP = 1.0  # line heights between paragraphs


def in_columns(runs: Runs, width: float) -> Runs:
    """The page's runs of lines, the left column of prose before the right one.

    Most programs draw column by column, and then the order of drawing is the best there is, so it stays. Only where the
    lines of two columns alternate, or the right one comes first, are they sorted.

    Args:
        runs: In the order in which they are drawn.
        width: Of the page, in points.
    """
    lines = [line for run in runs for line in run]
    if len(lines) < 2 * _FEWEST_LINES:
        return runs
    gutter = _gutter(lines, width)
    if gutter is None:
        return runs
    sides = [_side(line, gutter) for line in lines]
    if not _is_prose(lines, sides) or _is_in_column_order(sides) or _is_right_to_left(lines):
        return runs
    return list(_by_columns(lines, sides))


def _gutter(lines: Sequence[Line], width: float) -> float | None:
    """Where the right column begins, if one may be there: many lines begin at the same place in the middle."""
    first, last = (share * width for share in _MIDDLE)
    starts = Counter(round(x / _STEP) for line in lines if first <= (x := line.rectangle[0]) <= last)
    if not starts:
        return None
    (step, count) = starts.most_common(1)[0]
    return step * _STEP - _STEP if count >= _FEWEST_LINES else None


def _side(line: Line, gutter: float) -> str:
    x0, _, x1, _ = line.rectangle
    return "right" if x0 >= gutter else "left" if x1 <= gutter + _STEP else "both"


def _is_prose(lines: Sequence[Line], sides: Sequence[str]) -> bool:
    """Whether two columns of text stand beside each other, rather than the cells of a table."""
    if sides.count("both") > _MOST_WIDE * len(lines):
        return False
    spans: list[tuple[float, float]] = []
    for side in ("left", "right"):
        boxes = [line.rectangle for line, its in zip(lines, sides, strict=True) if its == side]
        if len(boxes) < _FEWEST_LINES:
            return False
        column = max(box[2] for box in boxes) - min(box[0] for box in boxes)
        if median(box[2] - box[0] for box in boxes) < _FILLED * column:
            return False
        spans.append((min(box[1] for box in boxes), max(box[3] for box in boxes)))
    (top, bottom), (other_top, other_bottom) = spans
    beside = min(bottom, other_bottom) - max(top, other_top)
    return beside > 0.5 * min(bottom - top, other_bottom - other_top)


def _is_in_column_order(sides: Sequence[str]) -> bool:
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
    close = line.rectangle[1] - bottom < _PARAGRAPH_GAP * (bottom - top)
    return close and line.size == before.size and not before.table and not line.table


# ------------------------------------------------------------------------------------------------ late-drawn blocks

_MOST_RUNS = 400  # a map or a plot has more, and no order
_SAME_COLUMN = 0.5  # of the narrower run's width: so much overlap makes it the same column
_OVERLAP = 2.0  # points by which boxes of lines may overlap


def top_down(runs: Runs) -> Runs:
    """The page's runs of lines; one that stands above an earlier one of its column goes before it.

    Most programs draw in reading order; some draw a head, a table or a text box after what stands below it.

    Args:
        runs: In the order in which they are drawn, columns in theirs.
    """
    if not 1 < len(runs) <= _MOST_RUNS or _is_rotated(runs):
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
    if one[3] > other[1] + _OVERLAP or one[1] >= other[1]:
        return False
    shared = min(one[2], other[2]) - max(one[0], other[0])
    return shared > _SAME_COLUMN * min(one[2] - one[0], other[2] - other[0])


def _is_rotated(runs: Runs) -> bool:
    """Whether the text is rotated, so that "above" does not mean "before"."""
    steps = [below.rectangle[1] - line.rectangle[1] for run in runs for line, below in pairwise(run)]
    if sum(step < 0 for step in steps) > sum(step > 0 for step in steps):
        return True
    boxes = [line.rectangle for run in runs for line in run if len(line.text) > 2]
    return sum(x1 - x0 < y1 - y0 for x0, y0, x1, y1 in boxes) * 2 > len(boxes)
