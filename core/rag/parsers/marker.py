"""The marker pen: places of a picture become yellow, ink stays ink."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.document import Rectangle

_MARKER = (0xF2, 0xCF, 0x3F)


def marked(samples: bytes, width: int, height: int, marks: Sequence[Rectangle], zoom: float) -> bytes:
    """The pixels (rows of red, green, blue) with places marked.

    Args:
        samples: The picture.
        width: Of it, in pixels.
        height: Of it, in pixels.
        marks: Places, in points.
        zoom: Pixels for each point.
    """
    pixels = bytearray(samples)
    for mark in marks:
        _mark(pixels, width, height, [round(edge * zoom) for edge in mark])
    return bytes(pixels)


def _mark(samples: bytearray, width: int, height: int, box: list[int]) -> None:
    """Multiply the pixels of a box with the marker's colour: ink stays ink, paper turns yellow."""
    left, top, right, bottom = box
    left, right = max(0, left - 2), min(width, right + 2)
    for row in range(max(0, top - 1), min(height, bottom + 1)):
        start, end = 3 * (row * width + left), 3 * (row * width + right)
        for channel, table in enumerate(_TABLES):
            samples[start + channel : end : 3] = samples[start + channel : end : 3].translate(table)


_TABLES = tuple(bytes(round(value * (0.34 + 0.66 * strength / 255)) for value in range(256)) for strength in _MARKER)
