"""Tables with lines above and below, but none between their columns: rows are told by the gaps between words.

Printed tables of books and papers look so. Lists, formulas and two columns of prose have gaps as well; what counts as
a table has several rows in the same columns, and rules that hold it together.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING

from core.rag.document import Block, row_text, union
from core.rag.parsers.pdf_headings import Line
from core.rag.parsers.pdf_tables import THIN
from core.rag.sentences import ideographs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_margins import Runs

_FEWEST = 3  # rows
_GAP = 0.8  # line heights between columns
_PITCH = 2.6  # line heights from row to row
_SAME_ROW = 0.5  # of the height
_WORDS = 2.5  # of a field, on the average; prose has more
_FILLED = 0.4  # of the fields; a form's are empty
_HELD = 0.5  # of a table's width: as wide is a rule that belongs to it
_MOST_LINES = 2_000

_Row = list[Line]


def with_rows(runs: Runs, drawn: Sequence[Rectangle], page: int) -> Runs:
    """The page's runs of lines, in which a line with a table stands for the rows of each such table.

    Args:
        runs: In reading order.
        drawn: The boxes of lines and rectangles on the page.
        page: Its number.
    """
    lines = [line for run in runs for line in run if not line.table]
    rules = [edge for box in drawn for edge in _edges(box)]
    if len(rules) < 2 or not 2 * _FEWEST <= len(lines) <= _MOST_LINES:
        return runs
    for band in _bands(_rows(lines)):
        # A first row that goes across columns is a title.
        table = _table(band, page) or (_table(band[1:], page) if len(band) > _FEWEST else None)
        if table and table.rectangle and _is_held(table.rectangle, rules, _height(band[0])):
            runs = _replaced(runs, {id(line) for row in band[-len(table.cells) :] for line in row}, table)
    return runs


def _edges(box: Rectangle) -> tuple[Rectangle, ...]:
    """The lines across that a box shows: itself, or its upper and lower side."""
    x0, y0, x1, y1 = box
    if y1 - y0 <= THIN:
        return (box,)
    return ((x0, y0, x1, y0), (x0, y1, x1, y1)) if x1 - x0 > THIN else ()


def _rows(lines: Sequence[Line]) -> list[_Row]:
    """Lines that stand beside each other, from left to right; the rows from top to bottom."""
    rows: list[_Row] = []
    for line in sorted(lines, key=lambda one: one.rectangle[1] + one.rectangle[3]):
        _, top, _, bottom = line.rectangle
        if rows:
            _, above, _, below = rows[-1][0].rectangle
            if min(bottom, below) - max(top, above) > _SAME_ROW * min(bottom - top, below - above):
                rows[-1].append(line)
                continue
        rows.append([line])
    return [sorted(row, key=lambda one: one.rectangle[0]) for row in rows]


def _bands(rows: Sequence[_Row]) -> list[list[_Row]]:
    """Rows of several fields that follow each other closely."""
    bands: list[list[_Row]] = []
    before: _Row | None = None
    for row in rows:
        if not _is_parted(row):
            before = None
            continue
        if before and row[0].rectangle[1] - before[0].rectangle[1] < _PITCH * _height(row):
            bands[-1].append(row)
        else:
            bands.append([row])
        before = row
    return [band for band in bands if len(band) >= _FEWEST]


def _is_parted(row: _Row) -> bool:
    far = _GAP * _height(row)
    return len(row) > 1 and all(other.rectangle[0] - one.rectangle[2] >= far for one, other in pairwise(row))


def _height(row: _Row) -> float:
    return max(line.rectangle[3] - line.rectangle[1] for line in row)


def _table(band: Sequence[_Row], page: int) -> Block | None:
    columns = _columns(band)
    fields = [line.text for row in band for line in row]
    words = mean(len(field.split()) + ideographs(field) / 2 for field in fields)
    if len(columns) < 2 or words > _WORDS or any(len(row) > len(columns) for row in band):
        return None
    cells = tuple(_cells(row, columns) for row in band)
    filled = sum(bool(cell) for row in cells for cell in row)
    if filled < _FILLED * len(cells) * len(columns) or any(sum(map(bool, row)) < 2 for row in cells):
        return None
    left, right = columns[0][0], columns[-1][1]
    places: list[tuple[int, Rectangle]] = []
    start = 0
    for row, texts in zip(band, cells, strict=True):
        box = union(tuple(line.rectangle for line in row)) or (0.0, 0.0, 0.0, 0.0)
        places.append((start, (left, box[1], right, box[3])))
        start += len(row_text(texts)) + 1
    return Block("table", "\n".join(map(row_text, cells)), page, tuple(places), cells=cells)


def _columns(band: Sequence[_Row]) -> list[tuple[float, float]]:
    """From where to where each column goes: what overlaps in any two rows is one."""
    columns: list[tuple[float, float]] = []
    for x0, x1 in sorted((line.rectangle[0], line.rectangle[2]) for row in band for line in row):
        if columns and x0 < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], x1))
        else:
            columns.append((x0, x1))
    return columns


def _cells(row: _Row, columns: Sequence[tuple[float, float]]) -> tuple[str, ...]:
    texts = [""] * len(columns)
    for line in row:
        at = next(at for at, (_, end) in enumerate(columns) if line.rectangle[0] < end)
        texts[at] = f"{texts[at]} {' '.join(line.text.split())}".strip()
    return tuple(texts)


def _is_held(table: Rectangle, rules: Sequence[Rectangle], height: float) -> bool:
    """Whether rules run along a table, at least two, in it or close to it."""
    left, top, right, bottom = table
    levels = {
        round(y0 / height)
        for x0, y0, x1, _ in rules
        if min(x1, right) - max(x0, left) > _HELD * (right - left) and top - 1.5 * height < y0 < bottom + 1.5 * height
    }
    return len(levels) > 1


def _replaced(runs: Runs, taken: set[int], table: Block) -> Runs:
    """The runs with a table where the first of its lines stood."""
    done: Runs = []
    place = table.rectangle or (0.0, 0.0, 0.0, 0.0)
    is_new = True
    for run in runs:
        kept = [line for line in run if id(line) not in taken]
        if len(kept) < len(run) and is_new:
            first = next(at for at, line in enumerate(run) if id(line) in taken)
            before = run[:first]
            after = [line for line in run[first:] if id(line) not in taken]
            done += [part for part in (before, [Line("", place, 0.0, bold=False, table=table)], after) if part]
            is_new = False
        elif kept:
            done.append(kept)
    return done
