"""Lines of words in a picture, read with rapidocr: looked for in a smaller copy of what is printed on it, then cut out.

Where lines stand is seen in fewer pixels than what they say: they are looked for without the margins and the bare parts
of a sheet, in a copy with 0.73 of the pixels each way, and what is read is cut from the picture itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

LOOKED_AT: Final = 0.73
"""How large the copy is in which lines are looked for: for the side of a sheet drawn at 150 pixels an inch."""

_SMALLEST: Final = 736  # pixels: the shorter side of a copy; what is drawn smaller is looked at larger than it is
_LONGEST: Final = 4  # times as long as high, a picture is a strip, and counts as one that is so long
_STEP: Final = 32  # pixels: both sides of a copy are so many, or so many times as many
_NEAR: Final = 32  # pixels around ink that are looked at with it
_INK: Final = 20  # of 255: what differs more from the paper, in the mean of nine pixels, is no grain of it
_EVERY: Final = 8  # of so many rows and columns one says what the paper is
_SURE: Final = 0.5  # from 0 to 1; a line that is read with less is none


def lines_in(engine: Any, image: Any) -> list[tuple[str, float, Any]]:
    """What is read in a picture: each line, how sure it is from 0 to 1, and its four corners in pixels.

    Args:
        engine: Of rapidocr.
        image: Rows of pixels, each blue, green and red.
    """
    numpy: Any = import_module("numpy")
    rows, columns = near_ink(image)
    if not len(rows):
        return []
    copy = _copy(image[numpy.ix_(rows, columns)], scale_of(*image.shape[:2]))
    found = engine(copy, use_det=True, use_cls=False, use_rec=False)
    if found.boxes is None or not len(found.boxes):
        return []
    corners = numpy.array(found.boxes, dtype=numpy.float32)
    for axis, kept in ((0, columns), (1, rows)):
        pixels = corners[:, :, axis] * (len(kept) / copy.shape[1 - axis])
        corners[:, :, axis] = numpy.interp(pixels, numpy.arange(len(kept)), kept)
    read = engine.recognize_txt(engine.crop_text_regions(image, corners))
    told = zip(read.txts, map(float, read.scores), corners, strict=True)
    return [(text, sure, box) for text, sure, box in told if text.strip() and sure >= _SURE]


def scale_of(high: int, wide: int) -> float:
    """How large the copy of a picture is, for each of its pixels."""
    shorter, longer = sorted((high, wide))
    return max(LOOKED_AT, _SMALLEST / max(shorter, longer / _LONGEST, 1))


def near_ink(image: Any) -> tuple[Any, Any]:
    """The rows and the columns of a picture that hold ink or are near some, as numbers from 0; none of a bare sheet."""
    numpy: Any = import_module("numpy")
    cv2: Any = import_module("cv2")
    paper = [float(numpy.median(image[::_EVERY, ::_EVERY, colour])) for colour in range(3)]
    differs = cv2.absdiff(cv2.blur(image, (3, 3)), (*paper, 0.0)).max(axis=2) > _INK
    near = numpy.ones((2 * _NEAR + 1, 1), numpy.uint8)
    rows, columns = (
        numpy.flatnonzero(cv2.dilate(differs.any(axis=axis).astype(numpy.uint8).reshape(-1, 1), near))
        for axis in (1, 0)
    )
    return rows, columns


def _copy(image: Any, scale: float) -> Any:
    """A copy whose sides are as the network needs them."""
    high, wide = (max(_STEP, round(side * scale / _STEP) * _STEP) for side in image.shape[:2])
    return import_module("cv2").resize(image, (wide, high))
