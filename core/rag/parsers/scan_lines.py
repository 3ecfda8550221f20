"""Lines of words in a picture, read with rapidocr: looked for in a smaller copy of what is printed on it, then cut out.

Where lines stand is seen in fewer pixels than what they say: they are looked for without the margins and the bare parts
of a sheet, in a copy with 0.73 of the pixels each way, and what is read is cut from the picture itself. Small print
that was not found so is looked for again, in all its pixels.
"""

from __future__ import annotations

from importlib import import_module
from math import ceil
from typing import Any, Final

LOOKED_AT: Final = 0.73
"""How large the copy is in which lines are looked for: for the side of a sheet drawn at 150 pixels an inch."""

_SMALLEST: Final = 736  # pixels: the shorter side of a copy; what is drawn smaller is looked at larger than it is
_LARGEST: Final = 1.5  # times at most: letters in a figure of a page are as large as its other letters
_LONGEST: Final = 4  # times as long as high, a picture is a strip, and counts as one that is so long
_STEP: Final = 32  # pixels: both sides of a copy are so many, or so many times as many
_NEAR = (32, 64)  # pixels above and below ink, and beside it, that are looked at with it: columns stay apart
_FAINTEST, _STRONG = 5, 20  # of 255: how much ink differs from the paper, in the mean of nine pixels
_GRAIN: Final = 3  # times what half of the pixels differ from the paper by is its grain
_EVERY: Final = 8  # of so many rows and columns one says what the paper is
_LOW = (5, 14)  # pixels: how high words of small print are, with what their edges blur into
_WIDE: Final = 250  # pixels: what is as low and wider is a ruled line
_FEWEST: Final = 3  # words of small print: fewer are specks
_SURE: Final = 0.5  # from 0 to 1; a line that is read with less is none


def lines_in(engine: Any, image: Any) -> list[tuple[str, float, Any]]:
    """What is read in a picture: each line, how sure it is from 0 to 1, and its four corners in pixels.

    Args:
        engine: Of rapidocr.
        image: Rows of pixels, each blue, green and red.
    """
    ink, scale = ink_in(image), scale_of(*image.shape[:2])
    corners = _found(engine, image, ink, scale)
    if scale < 1 and (small := _small_print(ink, corners)) is not None:
        corners = _with_more(corners, _found(engine, image, small, 1.0))
    if not len(corners):
        return []
    read = engine.recognize_txt(engine.crop_text_regions(image, corners))
    told = zip(read.txts, map(float, read.scores), corners, strict=True)
    return [(text, sure, box) for text, sure, box in told if text.strip() and sure >= _SURE]


def _found(engine: Any, image: Any, ink: Any, scale: float) -> Any:
    """The four corners of each line near some ink, as they stand in the picture."""
    numpy: Any = import_module("numpy")
    none = numpy.empty((0, 4, 2), numpy.float32)
    rows, columns = near(ink)
    if not len(rows):
        return none
    copy = _copy(image[numpy.ix_(rows, columns)], scale)
    found = engine(copy, use_det=True, use_cls=False, use_rec=False)
    if found.boxes is None or not len(found.boxes):
        return none
    corners = numpy.array(found.boxes, dtype=numpy.float32)
    for axis, kept in ((0, columns), (1, rows)):
        pixels = corners[:, :, axis] * (len(kept) / copy.shape[1 - axis])
        corners[:, :, axis] = numpy.interp(pixels, numpy.arange(len(kept)), kept)
    return corners


def _small_print(ink: Any, corners: Any) -> Any:
    """What of the ink looks like words of small print outside of the lines that were found; `None` if nothing."""
    numpy: Any = import_module("numpy")
    cv2: Any = import_module("cv2")
    rest = ink.copy()
    for box in corners:
        cv2.fillConvexPoly(rest, box.round().astype(numpy.int32), 0)
    _, parts, about, _ = cv2.connectedComponentsWithStats(rest)
    wide, high = about[:, cv2.CC_STAT_WIDTH], about[:, cv2.CC_STAT_HEIGHT]
    is_word = (high >= _LOW[0]) & (high <= _LOW[1]) & (wide > high) & (wide <= _WIDE)
    is_word[0] = False  # the paper
    return is_word[parts].astype(numpy.uint8) if is_word.sum() >= _FEWEST else None


def _with_more(corners: Any, more: Any) -> Any:
    """Lines, and those of others whose middle lies in none of them."""
    numpy: Any = import_module("numpy")
    cv2: Any = import_module("cv2")
    middles = more.mean(axis=1).tolist()
    fresh = [all(cv2.pointPolygonTest(box, middle, measureDist=False) < 0 for box in corners) for middle in middles]
    return numpy.concatenate([corners, more[numpy.array(fresh, dtype=bool)]])


def scale_of(high: int, wide: int) -> float:
    """How large the copy of a picture is, for each of its pixels."""
    shorter, longer = sorted((high, wide))
    return max(LOOKED_AT, min(_SMALLEST / max(shorter, longer / _LONGEST, 1), _LARGEST))


def ink_in(image: Any) -> Any:
    """Where a picture differs from its paper, as rows of 1 and 0: by more than the paper's grain, however faint."""
    numpy: Any = import_module("numpy")
    cv2: Any = import_module("cv2")
    some = image[::_EVERY, ::_EVERY].reshape(-1, 3)
    paper = numpy.median(some, axis=0)
    grain = float(numpy.median(numpy.abs(some - paper).max(axis=1)))
    least = min(_FAINTEST + _GRAIN * grain, _STRONG)
    blue, green, red = cv2.split(cv2.absdiff(cv2.blur(image, (3, 3)), (*paper.tolist(), 0.0)))
    return (cv2.max(cv2.max(blue, green), red) > least).astype(numpy.uint8)


def near(ink: Any) -> tuple[Any, Any]:
    """The rows and the columns that hold ink or are near some, as numbers from 0; none of a bare sheet."""
    numpy: Any = import_module("numpy")
    cv2: Any = import_module("cv2")
    rows, columns = (
        cv2.dilate(ink.any(axis=axis).astype(numpy.uint8).reshape(-1, 1), numpy.ones((2 * many + 1, 1), numpy.uint8))
        for axis, many in zip((1, 0), _NEAR, strict=True)
    )
    return numpy.flatnonzero(rows), numpy.flatnonzero(columns)


def _copy(image: Any, scale: float) -> Any:
    """A copy whose sides are as the network needs them: none is shorter than it should be."""
    high, wide = (ceil(side * scale / _STEP) * _STEP for side in image.shape[:2])
    return import_module("cv2").resize(image, (wide, high))
