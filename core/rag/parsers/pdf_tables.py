"""Tables on a PDF page: with ruling lines, or with columns found by the gaps between words."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean
from typing import TYPE_CHECKING

from core.rag.document import Block, row_text, union
from core.rag.parsers.base import clean, is_ideograph
from core.rag.parsers.pdf_page import Line
from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_page import Runs, Word

_THIN = 3.5  # points: a rectangle that is no thicker is a line
_NEAR = 3.0  # points between lines that count as one
_SHORTEST = 5.0
_MOST_CROSSINGS = 400_000  # a map has more, and no tables
_MOST_CELLS = 5_000
_FEWEST_FILLED = 0.6  # of the rows have several filled cells; a drawing's or a form's have not


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line: where it is, from where to where it goes."""

    at: float
    start: float
    end: float


def ruled_tables(
    drawn: Iterable[Rectangle], words: Callable[[], Sequence[Word]], page: int
) -> list[tuple[Rectangle, Block]]:
    """The tables with ruling lines on a page, each with its place.

    Lines that cross make a grid; words fall into its cells; a missing border merges two cells. That is cheap enough to
    try on every page with such lines.

    Args:
        drawn: The boxes of lines and rectangles, as displayed.
        words: Gives the words with their boxes, in reading order; asked for only where lines cross.
    """
    across, down = _rules(drawn)
    found: list[tuple[Rectangle, Block]] = []
    if len(across) < 2 or len(down) < 2 or len(across) * len(down) > _MOST_CROSSINGS:
        return found
    grids = [grid for rows, columns in _grids(across, down) if (grid := _Grid(rows, columns)).fits]
    every: Sequence[Word] = words() if grids else ()
    for grid in grids:
        block = grid.filled(every, page)
        if block and block.rectangle:
            found.append((block.rectangle, block))
    return found


def _rules(drawn: Iterable[Rectangle]) -> tuple[list[_Rule], list[_Rule]]:
    """The lines across and down; a rectangle has four."""
    across: list[_Rule] = []
    down: list[_Rule] = []
    for x0, y0, x1, y1 in drawn:
        width, height = x1 - x0, y1 - y0
        if height <= _THIN and width >= _SHORTEST:
            across.append(_Rule((y0 + y1) / 2, x0, x1))
        elif width <= _THIN and height >= _SHORTEST:
            down.append(_Rule((x0 + x1) / 2, y0, y1))
        elif width >= _SHORTEST and height >= _SHORTEST:
            across += (_Rule(y0, x0, x1), _Rule(y1, x0, x1))
            down += (_Rule(x0, y0, y1), _Rule(x1, y0, y1))
    return _joined(across), _joined(down)


def _joined(rules: list[_Rule]) -> list[_Rule]:
    """Lines that continue each other become one."""
    done: list[_Rule] = []
    levels: list[list[_Rule]] = []
    for rule in sorted(rules, key=lambda one: one.at):
        if levels and rule.at - levels[-1][0].at <= _NEAR:
            levels[-1].append(rule)
        else:
            levels.append([rule])
    for level in levels:
        at = sum(rule.at for rule in level) / len(level)
        start, end = 0.0, -1.0
        for rule in sorted(level, key=lambda one: one.start):
            if end >= start and rule.start <= end + _NEAR:
                end = max(end, rule.end)
                continue
            if end >= start:
                done.append(_Rule(at, start, end))
            start, end = rule.start, rule.end
        done.append(_Rule(at, start, end))
    return done


def _grids(across: list[_Rule], down: list[_Rule]) -> list[tuple[list[_Rule], list[_Rule]]]:
    """The lines in groups connected by crossings."""
    group = list(range(len(across) + len(down)))

    def root(one: int) -> int:
        while group[one] != one:
            group[one] = group[group[one]]
            one = group[one]
        return one

    for a, row in enumerate(across):
        for d, column in enumerate(down, len(across)):
            if (
                row.start - _NEAR <= column.at <= row.end + _NEAR
                and column.start - _NEAR <= row.at <= column.end + _NEAR
            ):
                group[root(d)] = root(a)
    members: dict[int, tuple[list[_Rule], list[_Rule]]] = {}
    for at, rule in enumerate([*across, *down]):
        members.setdefault(root(at), ([], []))[at >= len(across)].append(rule)
    return [(rows, columns) for rows, columns in members.values() if len(rows) >= 2 and len(columns) >= 2]


class _Grid:
    """The cells between crossing lines."""

    def __init__(self, rows: Sequence[_Rule], columns: Sequence[_Rule]) -> None:
        self._rows, self._columns = rows, columns
        self._ys, self._xs = _edges(rows, columns), _edges(columns, rows)

    @property
    def fits(self) -> bool:
        """Whether it has as many cells as a table: not a frame's, nor a map's."""
        high, wide = len(self._ys) - 1, len(self._xs) - 1
        return high >= 2 and wide >= 2 and high * wide <= _MOST_CELLS

    def filled(self, words: Sequence[Word], page: int) -> Block | None:
        """The table of the words in the grid; `None` where it is a drawing or a form rather than a table."""
        high, wide = len(self._ys) - 1, len(self._xs) - 1
        homes = self._merged(high, wide)
        texts: dict[tuple[int, int], list[Word]] = {}
        for word in words:
            row = bisect_right(self._ys, (word[1] + word[3]) / 2) - 1
            column = bisect_right(self._xs, (word[0] + word[2]) / 2) - 1
            if 0 <= row < high and 0 <= column < wide:
                texts.setdefault(homes[row][column], []).append(word)
        return self._block(texts, page)

    def _merged(self, high: int, wide: int) -> list[list[tuple[int, int]]]:
        """For each cell the first of those that it is merged with."""
        homes = [[(row, column) for column in range(wide)] for row in range(high)]
        across, down = _by_place(self._rows), _by_place(self._columns)
        for row in range(high):
            middle = (self._ys[row] + self._ys[row + 1]) / 2
            for column in range(wide):
                if column and not _is_ruled(down, self._xs[column], middle):
                    homes[row][column] = homes[row][column - 1]
                elif row and not _is_ruled(across, self._ys[row], (self._xs[column] + self._xs[column + 1]) / 2):
                    homes[row][column] = homes[row - 1][column]
        return homes

    def _block(self, texts: dict[tuple[int, int], list[Word]], page: int) -> Block | None:
        used_columns = sorted({column for _, column in texts})
        used_rows = sorted({row for row, _ in texts})
        several = sum(len([column for column in used_columns if (row, column) in texts]) > 1 for row in used_rows)
        if len(used_columns) < 2 or len(used_rows) < 2 or several < _FEWEST_FILLED * len(used_rows):
            return None
        cells = tuple(tuple(_text(texts.get((row, column), ())) for column in used_columns) for row in used_rows)
        left, right = self._xs[0], self._xs[-1]
        places: list[tuple[int, Rectangle]] = []
        start = 0
        for row, below, content in zip(used_rows, [*used_rows[1:], len(self._ys) - 1], cells, strict=True):
            places.append((start, _rounded(left, self._ys[row], right, self._ys[below])))
            start += len(row_text(content)) + 1
        begins = [self._xs[column] for column in used_columns]
        columns = tuple((round(a, 2), round(b, 2)) for a, b in pairwise([*begins, right]))
        return Block("table", "\n".join(map(row_text, cells)), page, tuple(places), cells=cells, columns=columns)


def _edges(rules: Sequence[_Rule], crossing: Sequence[_Rule]) -> list[float]:
    """Where the cells begin and end; many tables have no lines at their sides, but the crossing ones reach that far."""
    edges = sorted({rule.at for rule in rules})
    first, last = min(rule.start for rule in crossing), max(rule.end for rule in crossing)
    return [
        *([first] if first < edges[0] - _SHORTEST else []),
        *edges,
        *([last] if last > edges[-1] + _SHORTEST else []),
    ]


def _by_place(rules: Sequence[_Rule]) -> dict[float, list[_Rule]]:
    places: dict[float, list[_Rule]] = {}
    for rule in rules:
        places.setdefault(rule.at, []).append(rule)
    return places


def _is_ruled(rules: Mapping[float, Sequence[_Rule]], at: float, where: float) -> bool:
    return any(rule.start - _NEAR <= where <= rule.end + _NEAR for rule in rules.get(at, ()))


def _text(words: Sequence[Word]) -> str:
    text = ""
    for word in filter(None, (clean(one[4]).strip() for one in words)):
        parted = text and not (is_ideograph(text[-1]) and is_ideograph(word[0]))
        text += f" {word}" if parted else word
    return " ".join(text.split())


def _rounded(*edges: float) -> Rectangle:
    x0, y0, x1, y1 = (round(edge, 2) for edge in edges)
    return (x0, y0, x1, y1)


def is_outside(boxes: Sequence[Rectangle], box: Rectangle) -> bool:
    """Whether a box has its middle in none of the others."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return not any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in boxes)


# ------------------------------------------------------------------------------------------ without ruled columns

_FEWEST_ROWS = 3
_COLUMN_GAP = 0.8  # line heights between columns
_ROW_PITCH = 2.6  # line heights from row to row
_SAME_ROW = 0.5  # of the height
_WORDS_PER_CELL = 2.5  # on average at most; prose has more
_FILLED_SHARE = 0.4  # of the cells; a form's are empty
_RULE_SHARE = 0.5  # of a table's width: a rule that belongs to it is that wide
_MOST_LINES = 2_000
_FIGURED_SHARE = 0.6  # of the rows of a scanned table with two columns

_Row = list[Line]


def with_unruled_tables(runs: Runs, drawn: Sequence[Rectangle], page: int) -> Runs:
    """The page's runs of lines, the rows of each table without column rules replaced by one line with the table.

    Tables of books and papers look so. Lists, formulas and two columns of prose have gaps between words as well; a
    table has several rows in the same columns, and rules above and below.

    Args:
        drawn: The boxes of lines and rectangles on the page.
    """
    lines = [line for run in runs for line in run if not line.table]
    rules = [edge for box in drawn for edge in _rules_across(box)]
    if len(rules) < 2 or not 2 * _FEWEST_ROWS <= len(lines) <= _MOST_LINES:
        return runs
    for band in _bands(_rows(lines)):
        # A first row across columns is a title.
        table = _unruled_table(band, page) or (_unruled_table(band[1:], page) if len(band) > _FEWEST_ROWS else None)
        if table and table.rectangle and _has_rules(table.rectangle, rules, _height(band[0])):
            runs = _with_table(runs, {id(line) for row in band[-len(table.cells) :] for line in row}, table)
    return runs


def aligned_tables(lines: Sequence[Line], page: int) -> list[tuple[Block, list[Line]]]:
    """Tables without rules among the recognised lines of a scan, each with the lines in it.

    Nothing is drawn around them, so that they must look more like tables: with three columns or more, or with figures
    in most rows.
    """
    found: list[tuple[Block, list[Line]]] = []
    for band in _bands(_rows(lines)) if len(lines) <= _MOST_LINES else ():
        table = _unruled_table(band, page)
        rows = band
        if table is None and len(band) > _FEWEST_ROWS:
            rows = band[1:]
            table = _unruled_table(rows, page)
        if table is not None and (len(table.cells[0]) > 2 or _with_figures(table) >= _FIGURED_SHARE):
            found.append((table, [line for row in rows for line in row]))
    return found


def _with_figures(table: Block) -> float:
    """How many rows of a table have figures in a column behind the first, from 0 to 1."""
    rows = table.cells[1:]
    figured = sum(any(any(map(str.isdigit, cell)) for cell in row[1:]) for row in rows)
    return figured / len(rows) if rows else 0.0


def _rules_across(box: Rectangle) -> tuple[Rectangle, ...]:
    """The horizontal lines of a box: itself, or its upper and lower side."""
    x0, y0, x1, y1 = box
    if y1 - y0 <= _THIN:
        return (box,)
    return ((x0, y0, x1, y0), (x0, y1, x1, y1)) if x1 - x0 > _THIN else ()


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
    """Rows of several cells that follow each other closely."""
    bands: list[list[_Row]] = []
    before: _Row | None = None
    for row in rows:
        if not _has_columns(row):
            before = None
            continue
        if before and row[0].rectangle[1] - before[0].rectangle[1] < _ROW_PITCH * _height(row):
            bands[-1].append(row)
        else:
            bands.append([row])
        before = row
    return [band for band in bands if len(band) >= _FEWEST_ROWS]


def _has_columns(row: _Row) -> bool:
    far = _COLUMN_GAP * _height(row)
    return len(row) > 1 and all(other.rectangle[0] - one.rectangle[2] >= far for one, other in pairwise(row))


def _height(row: _Row) -> float:
    return max(line.rectangle[3] - line.rectangle[1] for line in row)


def _unruled_table(band: Sequence[_Row], page: int) -> Block | None:
    columns = _columns(band)
    fields = [line.text for row in band for line in row]
    words = mean(len(field.split()) + ideographs(field) / 2 for field in fields)
    if len(columns) < 2 or words > _WORDS_PER_CELL or any(len(row) > len(columns) for row in band):
        return None
    cells = tuple(_cells(row, columns) for row in band)
    filled = sum(bool(cell) for row in cells for cell in row)
    if filled < _FILLED_SHARE * len(cells) * len(columns) or any(sum(map(bool, row)) < 2 for row in cells):
        return None
    left, right = columns[0][0], columns[-1][1]
    places: list[tuple[int, Rectangle]] = []
    start = 0
    for row, texts in zip(band, cells, strict=True):
        box = union(tuple(line.rectangle for line in row)) or (0.0, 0.0, 0.0, 0.0)
        places.append((start, (left, box[1], right, box[3])))
        start += len(row_text(texts)) + 1
    return Block("table", "\n".join(map(row_text, cells)), page, tuple(places), cells=cells, columns=tuple(columns))


def _columns(band: Sequence[_Row]) -> list[tuple[float, float]]:
    """Start and end of each column: what overlaps in any two rows is one column."""
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


def _has_rules(table: Rectangle, rules: Sequence[Rectangle], height: float) -> bool:
    """Whether at least two rules run along a table, inside or close to it."""
    left, top, right, bottom = table
    levels = {
        round(y0 / height)
        for x0, y0, x1, _ in rules
        if min(x1, right) - max(x0, left) > _RULE_SHARE * (right - left)
        and top - 1.5 * height < y0 < bottom + 1.5 * height
    }
    return len(levels) > 1


def _with_table(runs: Runs, taken: set[int], table: Block) -> Runs:
    """The runs with a table in the place of the first of its lines."""
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
