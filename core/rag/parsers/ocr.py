"""OCR of scanned pages and pictures with rapidocr (the extra `ocr`), and the paragraphs and headings in its lines.

rapidocr (PP-OCR, Chinese and English) ships its weights. Runs in the worker process only, a page in one thread.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from statistics import fmean, median
from threading import Lock
from typing import TYPE_CHECKING, Any

from core.errors import MissingExtraError
from core.rag.document import Block, union
from core.rag.parsers import scan_lines, scan_tables
from core.rag.parsers.base import clean
from core.rag.parsers.pdf_layout import in_columns
from core.rag.parsers.pdf_page import Line, Pixels, joined
from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_page import RawPage, Runs

PACKAGE, EXTRA = "rapidocr", "ocr"
MOST_PIXELS = 50_000_000
LONGEST_SIDE = 2_200  # pixels; a larger picture is made smaller before it is read

_SURE = 0.85  # from 0 to 1, the mean of all lines; lower for text that is upside down
_UPRIGHT = 1.5  # a line is so much wider than high
_FEWEST_CELLS = 6  # lines: fewer make no table
_SEEN = 0.6  # likewise: what is recognised in a figure with less are strokes, not words
_ROW = 0.5  # of the height: lines that share so much stand beside each other


@dataclass(frozen=True, slots=True)
class Recognised:
    """A recognised line in a picture; its box is in pixels."""

    text: str
    box: Rectangle


@dataclass(frozen=True, slots=True)
class Sheet:
    """The result of reading a picture.

    Args:
        lines: From top to bottom of the upright text, which may be upside down in the picture.
        turns: Rotations by 90°, counterclockwise, that make the text stand upright.
        confidence: From 0 to 1.
    """

    lines: list[Recognised]
    turns: int
    confidence: float


_loading = Lock()


def is_here() -> bool:
    """Whether the extra is installed."""
    return find_spec(PACKAGE) is not None and find_spec("onnxruntime") is not None


def recognise(samples: bytes, width: int, height: int) -> Sheet:
    """Read a picture, however it is rotated.

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
    if best.lines and (sideways > 0 or best.confidence < _SURE):
        for turns in (1, 3) if sideways > 0 else (2,):
            other = _read(numpy.rot90(image, turns), turns)
            if sideways > 0 or other.confidence > best.confidence:
                best, sideways = other, 0
            if best.confidence >= _SURE:
                break
    return best


def turned_back(box: Rectangle, turns: int, width: float, height: float) -> Rectangle:
    """Where a box of a rotated picture is in the original.

    Args:
        turns: Rotations by 90°, counterclockwise.
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
    found = scan_lines.lines_in(_engine(), import_module("numpy").ascontiguousarray(image))
    lines = [Recognised(text, _around(corners)) for text, _, corners in found]
    letters = sum(len(text) for text, _, _ in found) or 1
    return Sheet(_in_rows(lines), turns, sum(len(text) * sure for text, sure, _ in found) / letters)


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


def _engine() -> Any:
    """The OCR engine, which several threads may use; loaded on first use: that takes a second and much memory."""
    with _loading:
        return _loaded()


@cache
def _loaded() -> Any:
    _raise_memory_limit()
    import_module("cv2").setNumThreads(1)
    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    return import_module(PACKAGE).RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.max_side_len": LONGEST_SIDE,
            "Global.use_vertical_padding": False,
            "Det.limit_side_len": 32,  # its copy is as large as it is given
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def _raise_memory_limit() -> None:
    """Use the memory that is allowed for OCR, beyond what other files get."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(ValueError, OSError):  # macOS refuses; there the bound was not set either
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


# -------------------------------------------------------------------------------------- from lines to text blocks

MOST_PAGES = 500  # of a document
_DPI = 150
# A page with fewer letters, and an image on more than such a share of it, is a scan: with a stamp, or without text.
_STAMPED, _BARE = (50, 0.4), (10, 0.01)
_OUTLINES = 40  # drawings on a page without any letters: they may be the letters
_NO_SIZE = -1.0  # marks recognised lines: sizes measured in a scan say little about headings
_PARAGRAPH_GAP = 0.8  # line heights
# Recognised boxes are as high as the ink; a printed line reaches from ascent to descent. In heights of the ink, on the
# average of common fonts: how much higher it begins, how much lower it ends.
_LATIN, _CHINESE = (0.16, -0.05), (0.10, 0.02)
# A heading stands alone in its row, in larger letters or in capitals.
_HEADING_HEIGHT, _LONGEST_HEADING, _FEWEST_CAPITALS = 1.35, 60, 5
_MOST_HEADINGS = 0.35  # of the lines: where there are more, large letters mean nothing
_SENTENCE_END = tuple(".,;:。，；：！？!?")
_SIMILAR = 0.25  # heights in a paragraph differ this much only by the letters that happen to be in a line


def is_scan(page: RawPage) -> bool:
    """Whether a page shows words that can only be recognised, not read."""
    letters = sum(len(line.text) for run in page.runs for line in run)
    if page.is_garbled or (not letters and len(page.drawn) >= _OUTLINES):
        return True
    fewer, share = _BARE if letters < _BARE[0] else _STAMPED
    return letters < fewer and page.image_share() > share


def scanned_runs(page: RawPage, number: int = 1) -> Runs:
    """The lines recognised on a page that are not in its text, in points as displayed; `number` is the page's."""
    return to_recognise(page, number)()


def to_recognise(page: RawPage, number: int) -> Callable[[], Runs]:
    """Draw a page here, and give what does the rest of `scanned_runs`, in any thread."""
    zoom = min(_DPI / 72, LONGEST_SIDE / max(page.width, page.height, 1.0))
    known = [line.rectangle for run in page.runs for line in run]
    picture = page.pixels(zoom)

    def recognised() -> Runs:
        runs = lines_of(picture, zoom, page=number)
        return [kept for run in runs if (kept := [line for line in run if not _is_known(line, known)])]

    return recognised


def words_in(page: RawPage, place: Rectangle) -> list[str]:
    """The lines recognised in a part of a page, from top to bottom; raises MissingExtraError.

    Args:
        place: In points, as displayed.
    """
    x0, y0, x1, y1 = place
    zoom = min(_DPI / 72, LONGEST_SIDE / max(x1 - x0, y1 - y0, 1.0))
    picture = _part_of(page.pixels(zoom), [round(edge * zoom) for edge in place])
    return words_of(picture)


def words_of(picture: Pixels) -> list[str]:
    """The lines recognised in a picture of a figure, from top to bottom; raises MissingExtraError."""
    if not picture.width or not picture.height:
        return []
    sheet = recognise(picture.samples, picture.width, picture.height)
    texts = [" ".join(clean(one.text).split()) for one in sheet.lines]
    return list(filter(None, texts)) if sheet.confidence > _SEEN else []


def _part_of(picture: Pixels, place: Sequence[int]) -> Pixels:
    x0, y0, x1, y1 = (
        min(max(edge, 0), end) for edge, end in zip(place, (picture.width, picture.height) * 2, strict=True)
    )
    row = 3 * picture.width
    samples = b"".join(picture.samples[y * row + 3 * x0 : y * row + 3 * x1] for y in range(y0, y1))
    return Pixels(x1 - x0, max(0, y1 - y0), samples)


def is_recognised(run: Sequence[Line]) -> bool:
    """Whether lines come from OCR."""
    return run[0].size == _NO_SIZE


def block(run: Sequence[Line], page: int) -> Block:
    """A run of recognised lines as a paragraph, or as a heading; a table as it is."""
    if run[0].table:
        return run[0].table
    text, starts = joined([line.text for line in run])
    places = tuple(zip(starts, (line.rectangle for line in run), strict=True))
    level = int(all(line.bold for line in run))
    return Block("heading" if level else "paragraph", text, page, places, level)


def lines_of(
    picture: Pixels, zoom: float, read: Callable[[bytes, int, int], Sheet] | None = None, *, page: int | None = None
) -> Runs:
    """The lines of a picture in points, those of a paragraph together; those of headings are bold.

    Args:
        zoom: Its pixels for each point.
        read: The OCR function; `recognise` by default.
        page: Its number, from 1, to have tables found in it: one that stands upright has a line for each.

    Raises:
        MissingExtraError: The extra `ocr` is not installed.
    """
    sheet = (read or recognise)(picture.samples, picture.width, picture.height)
    lines = [
        Line(text, one.box, _NO_SIZE, bold=False) for one in sheet.lines if (text := " ".join(clean(one.text).split()))
    ]
    tables: list[Line] = []
    if page is not None and not sheet.turns and len(lines) >= _FEWEST_CELLS:
        lines, tables = scan_tables.with_tables(lines, picture, zoom, page)
    lines = _with_headings(lines)
    wide = picture.width if sheet.turns % 2 == 0 else picture.height
    upright = [_as_printed(run) for part in in_columns([lines], wide) for run in _paragraphs(part)]
    runs = [[_in_points(line, sheet.turns, picture, zoom) for line in run] for run in upright]
    return scan_tables.placed(runs, tables) if tables else runs


def _with_headings(lines: list[Line]) -> list[Line]:
    if not lines:  # a blank page
        return lines
    usual = median(map(_height, lines))
    pairs = zip([None, *lines[:-1]], lines, [*lines[1:], None], strict=True)
    found = [replace(line, bold=_is_heading(before, line, after, usual)) for before, line, after in pairs]
    return found if sum(line.bold for line in found) <= _MOST_HEADINGS * len(lines) else lines


def _is_heading(before: Line | None, line: Line, after: Line | None, usual: float) -> bool:
    """Whether a line is a heading, where most lines are as high as `usual`."""
    text = line.text
    letters = sum(map(str.isalpha, text))
    if len(text) > _LONGEST_HEADING or 2 * letters <= len(text) or letters < 2 or text.endswith(_SENTENCE_END):
        return False
    if any(_is_beside(line, other) for other in (before, after) if other):
        return False
    return _height(line) >= _HEADING_HEIGHT * usual or (
        text.isupper() and letters >= _FEWEST_CAPITALS and _height(line) >= usual
    )


def _is_beside(line: Line, other: Line) -> bool:
    _, top, _, bottom = line.rectangle
    _, above, _, below = other.rectangle
    return 2 * (min(bottom, below) - max(top, above)) > min(_height(line), _height(other))


def _height(line: Line) -> float:
    return line.rectangle[3] - line.rectangle[1]


def _as_printed(run: Sequence[Line]) -> list[Line]:
    """A paragraph's lines with boxes as high as its font, whichever letters happen to be in a line."""
    heights = [line.rectangle[3] - line.rectangle[1] for line in run]
    middling = median(heights)
    usual = fmean(height for height in heights if abs(height - middling) <= _SIMILAR * middling)
    text = "".join(line.text for line in run)
    above, below = _CHINESE if ideographs(text) * 2 > len(text) else _LATIN
    done: list[Line] = []
    for line in run:
        left, top, right, bottom = line.rectangle
        middle, height = (top + bottom) / 2, bottom - top
        if abs(height - middling) <= _SIMILAR * middling:
            height = usual
        place = (left, max(0.0, middle - (0.5 + above) * height), right, middle + (0.5 + below) * height)
        done.append(replace(line, rectangle=place))
    return done


def _in_points(line: Line, turns: int, picture: Pixels, zoom: float) -> Line:
    x0, y0, x1, y1 = turned_back(line.rectangle, turns, picture.width, picture.height)
    place = (round(x0 / zoom, 2), round(y0 / zoom, 2), round(x1 / zoom, 2), round(y1 / zoom, 2))
    return Line(line.text, place, line.size, line.bold)


def _paragraphs(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines grouped with those close below or beside them."""
    runs: list[list[Line]] = []
    for line in lines:
        if runs and line.bold == runs[-1][-1].bold and _is_near(runs[-1], line):
            runs[-1].append(line)
        else:
            runs.append([line])
    return runs


def _is_near(run: Sequence[Line], line: Line) -> bool:
    left, top, right, bottom = line.rectangle
    box = union(tuple(one.rectangle for one in run[-3:])) or line.rectangle
    height = bottom - top
    heights = sorted((height, run[-1].rectangle[3] - run[-1].rectangle[1]))
    below = top - box[3] < _PARAGRAPH_GAP * height and heights[1] < 1.6 * heights[0]
    return below and left < box[2] + 4 * height and box[0] < right + 4 * height


def _is_known(line: Line, known: Sequence[Rectangle]) -> bool:
    x, y = (line.rectangle[0] + line.rectangle[2]) / 2, (line.rectangle[1] + line.rectangle[3]) / 2
    return any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in known)
