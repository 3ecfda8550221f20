"""The straight lines that a page of a PDF draws, as pypdfium2 gives them."""

from __future__ import annotations

from ctypes import c_float
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.rag.document import Rectangle

_MOST_OBJECTS, _MOST_SEGMENTS = 20_000, 4_000
_HAIR = 0.1  # points: a line has a place, so it has a thickness
_STRAIGHT = 0.5  # points off a straight line

_Point = tuple[float, float]


def straight(page: Any) -> Iterator[Rectangle]:
    """Lines across and down as thin boxes; left, bottom, right and top in the page's own measures."""
    raw: Any = import_module("pypdfium2.raw")
    for number, found in enumerate(page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=1)):
        if number >= _MOST_OBJECTS:
            return
        for (ax, ay), (bx, by) in _segments(raw, found.raw):
            if abs(ax - bx) <= _STRAIGHT or abs(ay - by) <= _STRAIGHT:
                yield (min(ax, bx) - _HAIR, min(ay, by) - _HAIR, max(ax, bx) + _HAIR, max(ay, by) + _HAIR)


def _segments(raw: Any, path: Any) -> Iterator[tuple[_Point, _Point]]:
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(path, matrix)
    x, y = c_float(), c_float()
    first = last = (0.0, 0.0)
    for index in range(min(_MOST_SEGMENTS, raw.FPDFPath_CountSegments(path))):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        if not raw.FPDFPathSegment_GetPoint(segment, x, y):
            continue
        here = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            first = here
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield last, here
        if raw.FPDFPathSegment_GetClose(segment):
            yield here, first
        last = here
