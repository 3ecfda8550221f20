"""Tables in recognised lines of a scan: cells by the ruling lines in the picture, else by how the lines are aligned."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from core.rag.parsers.pdf_page import Line
from core.rag.parsers.pdf_tables import aligned_tables, is_outside, ruled_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.document import Block, Rectangle
    from core.rag.parsers.pdf_page import Pixels, Runs

_DARK: Final = 150  # of 255: ink, also where a scan is pale
_ACROSS, _DOWN = 36.0, 18.0  # points: strokes of letters are shorter
_THICKEST: Final = 4.0  # points
_MOST: Final = 2_000  # rulings


def with_tables(lines: Sequence[Line], picture: Pixels, zoom: float, page: int) -> tuple[list[Line], list[Line]]:
    """The recognised lines that stand in no table, and a line for each table, all in points.

    Args:
        lines: Upright, in pixels.
        zoom: Pixels for each point.
        page: From 1.
    """
    placed = [replace(one, rectangle=_in_points(one.rectangle, zoom)) for one in lines]
    words = [(*one.rectangle, one.text) for one in placed]
    tables = [block for _, block in ruled_tables(_rules(picture, zoom), lambda: words, page)]
    places = [place for block in tables if (place := block.rectangle)]
    outside = [one for one in placed if is_outside(places, one.rectangle)]
    aligned = aligned_tables(outside, page)
    taken = {id(one) for _, used in aligned for one in used}
    left = {id(one) for one in outside} - taken
    kept = [line for line, one in zip(lines, placed, strict=True) if id(one) in left]
    return kept, [_as_line(block) for block in (*tables, *(block for block, _ in aligned))]


def placed(runs: Runs, tables: Sequence[Line]) -> Runs:
    """The runs, each table before the first that stands below its upper edge."""
    done = list(runs)
    for table in sorted(tables, key=lambda one: one.rectangle[1]):
        below = (at for at, run in enumerate(done) if run[0].rectangle[1] >= table.rectangle[1])
        done.insert(next(below, len(done)), [table])
    return done


def _as_line(block: Block) -> Line:
    return Line("", block.rectangle or (0.0, 0.0, 0.0, 0.0), 0.0, bold=False, table=block)


def _rules(picture: Pixels, zoom: float) -> list[Rectangle]:
    """The boxes of long straight lines in a picture, in points."""
    numpy: Any = import_module("numpy")
    cv2: Any = import_module("cv2")
    image = numpy.frombuffer(picture.samples, dtype=numpy.uint8).reshape(picture.height, picture.width, 3)
    dark = (image.min(axis=2) < _DARK).astype(numpy.uint8)
    found: list[Rectangle] = []
    for wide, high in ((max(3, round(_ACROSS * zoom)), 1), (1, max(3, round(_DOWN * zoom)))):
        long = cv2.morphologyEx(dark, cv2.MORPH_OPEN, numpy.ones((high, wide), numpy.uint8))
        _, _, boxes, _ = cv2.connectedComponentsWithStats(long, 8)
        for left, top, across, down, _ in boxes[1 : _MOST + 1].tolist():
            if min(across, down) <= _THICKEST * zoom:
                found.append(_in_points((left, top, left + across, top + down), zoom))
    return found


def _in_points(box: Sequence[float], zoom: float) -> Rectangle:
    x0, y0, x1, y1 = (round(edge / zoom, 2) for edge in box)
    return (x0, y0, x1, y1)
