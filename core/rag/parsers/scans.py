"""Pages and pictures whose words must be recognised, as lines of text in their places."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING

from core.rag.document import Block, union
from core.rag.parsers import ocr
from core.rag.parsers.base import clean
from core.rag.parsers.pdf_columns import in_columns
from core.rag.parsers.pdf_headings import Line
from core.rag.parsers.text_lines import joined
from core.rag.sentences import ideographs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_margins import Runs
    from core.rag.parsers.pdf_page import Pixels, RawPage

MOST = 500  # pages of a document
_DPI = 150
# A page with fewer letters, and a picture on more than such a share of it, is a scan: with a stamp, or without text.
_STAMPED, _BARE = (50, 0.4), (10, 0.01)
_OUTLINES = 40  # drawings on a page without any letters: they may be the letters
_SIZE = -1.0  # what is measured in a scan says little about headings
_GAP = 0.8  # line heights that part paragraphs
# What is recognised is as high as the ink; a printed line reaches from ascent to descent. In heights of the ink, on the
# average of common fonts: how much higher it begins, how much lower it ends.
_LATIN, _CHINESE = (0.16, -0.05), (0.15, 0.05)
# A heading stands alone in its row, in larger letters or in capitals.
_LARGER, _LONGEST, _CAPITALS = 1.35, 60, 5
_MOST_HEADINGS = 0.35  # of the lines: where there are more, large letters mean nothing
_SENTENCE_END = tuple(".,;:。，；：！？!?")
_USUAL = 0.25  # heights in a paragraph differ so much only because of the letters that happen to stand in a line


def is_scan(page: RawPage) -> bool:
    """Whether words can only be seen on a page, not read."""
    letters = sum(len(line.text) for run in page.runs for line in run)
    if page.is_garbled or (not letters and len(page.drawn) >= _OUTLINES):
        return True
    fewer, share = _BARE if letters < _BARE[0] else _STAMPED
    return letters < fewer and page.pictured() > share


def recognised(page: RawPage) -> Runs:
    """What is recognised on a page beside what can be read, in points as displayed."""
    zoom = min(_DPI / 72, ocr.LONGEST_SIDE / max(page.width, page.height, 1.0))
    known = [line.rectangle for run in page.runs for line in run]
    runs = lines_of(page.pixels(zoom), zoom)
    return [kept for run in runs if (kept := [line for line in run if not _is_known(line, known)])]


def is_recognised(run: Sequence[Line]) -> bool:
    """Whether lines were recognised, not read."""
    return run[0].size == _SIZE


def block(run: Sequence[Line], page: int) -> Block:
    """A run of recognised lines as a paragraph, or as a heading."""
    text, starts = joined([line.text for line in run])
    places = tuple(zip(starts, (line.rectangle for line in run), strict=True))
    level = int(all(line.bold for line in run))
    return Block("heading" if level else "paragraph", text, page, places, level)


def lines_of(picture: Pixels, zoom: float, read: Callable[[bytes, int, int], ocr.Sheet] | None = None) -> Runs:
    """The lines of a picture in points, those of a paragraph together; those of headings are bold.

    Args:
        picture: What is to be read.
        zoom: Its pixels for each point.
        read: What reads; the extra `ocr` by default.

    Raises:
        MissingExtraError: The extra `ocr` is not installed.
    """
    sheet = (read or ocr.recognise)(picture.samples, picture.width, picture.height)
    lines = [
        Line(text, one.box, _SIZE, bold=False) for one in sheet.lines if (text := " ".join(clean(one.text).split()))
    ]
    lines = _with_headings(lines)
    wide = picture.width if sheet.turns % 2 == 0 else picture.height
    upright = [_as_printed(run) for part in in_columns([lines], wide) for run in _paragraphs(part)]
    return [[_in_points(line, sheet.turns, picture, zoom) for line in run] for run in upright]


def _with_headings(lines: list[Line]) -> list[Line]:
    if not lines:  # a blank page
        return lines
    usual = median(map(_height, lines))
    pairs = zip([None, *lines[:-1]], lines, [*lines[1:], None], strict=True)
    found = [replace(line, bold=_is_heading(before, line, after, usual)) for before, line, after in pairs]
    return found if sum(line.bold for line in found) <= _MOST_HEADINGS * len(lines) else lines


def _is_heading(before: Line | None, line: Line, after: Line | None, usual: float) -> bool:
    """Whether a line among those that stand next to it is a heading, where most are as high as `usual`."""
    text = line.text
    letters = sum(map(str.isalpha, text))
    if len(text) > _LONGEST or 2 * letters <= len(text) or letters < 2 or text.endswith(_SENTENCE_END):
        return False
    if any(_is_beside(line, other) for other in (before, after) if other):
        return False
    return _height(line) >= _LARGER * usual or (text.isupper() and letters >= _CAPITALS and _height(line) >= usual)


def _is_beside(line: Line, other: Line) -> bool:
    _, top, _, bottom = line.rectangle
    _, above, _, below = other.rectangle
    return 2 * (min(bottom, below) - max(top, above)) > min(_height(line), _height(other))


def _height(line: Line) -> float:
    return line.rectangle[3] - line.rectangle[1]


def _as_printed(run: Sequence[Line]) -> list[Line]:
    """A paragraph's lines with boxes as high as those of its letters, whichever of these stand in a line."""
    heights = [line.rectangle[3] - line.rectangle[1] for line in run]
    middling = median(heights)
    usual = fmean(height for height in heights if abs(height - middling) <= _USUAL * middling)
    text = "".join(line.text for line in run)
    above, below = _CHINESE if ideographs(text) * 2 > len(text) else _LATIN
    done: list[Line] = []
    for line in run:
        left, top, right, bottom = line.rectangle
        middle, height = (top + bottom) / 2, bottom - top
        if abs(height - middling) <= _USUAL * middling:
            height = usual
        place = (left, max(0.0, middle - (0.5 + above) * height), right, middle + (0.5 + below) * height)
        done.append(replace(line, rectangle=place))
    return done


def _in_points(line: Line, turns: int, picture: Pixels, zoom: float) -> Line:
    x0, y0, x1, y1 = ocr.turned_back(line.rectangle, turns, picture.width, picture.height)
    place = (round(x0 / zoom, 2), round(y0 / zoom, 2), round(x1 / zoom, 2), round(y1 / zoom, 2))
    return Line(line.text, place, line.size, line.bold)


def _paragraphs(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that stand close below or beside each other."""
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
    below = top - box[3] < _GAP * height and heights[1] < 1.6 * heights[0]
    return below and left < box[2] + 4 * height and box[0] < right + 4 * height


def _is_known(line: Line, known: Sequence[Rectangle]) -> bool:
    x, y = (line.rectangle[0] + line.rectangle[2]) / 2, (line.rectangle[1] + line.rectangle[3]) / 2
    return any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in known)
