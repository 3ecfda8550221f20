"""Words in pictures, read by rapidocr (PP-OCR, Chinese and English), which brings its weights: the extra `ocr`.

Runs in the worker process only, with one thread.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from core.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.document import Rectangle

PACKAGE, EXTRA = "rapidocr", "ocr"
MOST_PIXELS = 50_000_000
LONGEST_SIDE = 2_200  # pixels; a larger picture is made smaller before it is read

_SURE = 0.85  # mean certainty, from 0 to 1; upside down it is less
_UPRIGHT = 1.5  # a line is so much wider than high
_ROW = 0.5  # of the height: lines that share so much stand beside each other


@dataclass(frozen=True, slots=True)
class Recognised:
    """A line of words in a picture; its box is in pixels."""

    text: str
    box: Rectangle


@dataclass(frozen=True, slots=True)
class Sheet:
    """What was read in a picture.

    Args:
        lines: From top to bottom as the words stand, which may be upside down in the picture.
        turns: How often the picture must be turned by 90° against the clock for its words to stand upright.
        certainty: From 0 to 1.
    """

    lines: list[Recognised]
    turns: int
    certainty: float


def is_here() -> bool:
    """Whether the extra is installed."""
    return find_spec(PACKAGE) is not None and find_spec("onnxruntime") is not None


def recognise(samples: bytes, width: int, height: int) -> Sheet:
    """Read a picture, whichever way up it is.

    Args:
        samples: Rows of pixels, each red, green and blue.
        width: Pixels.
        height: Pixels.

    Raises:
        MissingExtraError: The extra `ocr` is not installed.
    """
    numpy = import_module("numpy") if is_here() else None
    if numpy is None:
        raise MissingExtraError("Reading words in pictures", PACKAGE, EXTRA)
    image = numpy.frombuffer(samples, dtype=numpy.uint8).reshape(height, width, 3)[:, :, ::-1]
    best = _read(image, 0)
    sideways = sum(len(line.text) * (1 if _is_sideways(line.box) else -1) for line in best.lines)
    if best.lines and (sideways > 0 or best.certainty < _SURE):
        for turns in (1, 3) if sideways > 0 else (2,):
            other = _read(numpy.rot90(image, turns), turns)
            if sideways > 0 or other.certainty > best.certainty:
                best, sideways = other, 0
            if best.certainty >= _SURE:
                break
    return best


def turned_back(box: Rectangle, turns: int, width: float, height: float) -> Rectangle:
    """Where a box of the turned picture is in the picture as it was.

    Args:
        box: In the picture that was turned by 90° against the clock.
        turns: How often.
        width: Of the picture as it was.
        height: Of the picture as it was.
    """
    x0, y0, x1, y1 = box
    match turns % 4:
        case 1:
            return (width - y1, x0, width - y0, x1)
        case 2:
            return (width - x1, height - y1, width - x0, height - y0)
        case 3:
            return (y0, height - x1, y1, height - x0)
        case _:
            return box


def _read(image: Any, turns: int) -> Sheet:
    found = _engine()(import_module("numpy").ascontiguousarray(image), use_cls=False)
    if found.boxes is None or not found.txts:
        return Sheet([], turns, 0.0)
    lines = [
        Recognised(text, _around(corners))
        for corners, text in zip(found.boxes, found.txts, strict=True)
        if text.strip()
    ]
    letters = sum(len(text) for text in found.txts) or 1
    certainty = sum(len(text) * float(score) for text, score in zip(found.txts, found.scores, strict=True)) / letters
    return Sheet(_in_rows(lines), turns, certainty)


def _around(corners: Any) -> Rectangle:
    across, down = corners[:, 0], corners[:, 1]
    return (float(across.min()), float(down.min()), float(across.max()), float(down.max()))


def _in_rows(lines: Sequence[Recognised]) -> list[Recognised]:
    """From top to bottom; those beside each other from left to right."""
    rows: list[list[Recognised]] = []
    for line in sorted(lines, key=lambda one: one.box[1] + one.box[3]):
        _, top, _, bottom = line.box
        if rows:
            _, above, _, below = rows[-1][0].box
            if min(bottom, below) - max(top, above) > _ROW * min(bottom - top, below - above):
                rows[-1].append(line)
                continue
        rows.append([line])
    return [line for row in rows for line in sorted(row, key=lambda one: one.box[0])]


def _is_sideways(box: Rectangle) -> bool:
    return box[3] - box[1] > _UPRIGHT * (box[2] - box[0])


@cache
def _engine() -> Any:
    """The reader; it takes a second and much memory, so only where there is something to read."""
    _make_room()
    import_module("cv2").setNumThreads(1)
    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    return import_module(PACKAGE).RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.max_side_len": LONGEST_SIDE,
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def _make_room() -> None:
    """Take the memory that is allowed for this, beyond what other files get."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):  # macOS refuses; there the bound was not set either
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
