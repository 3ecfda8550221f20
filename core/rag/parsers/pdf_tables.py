"""Tables on a page, found by their ruling lines: cheap enough to look for them on every page that has such lines.

Lines that cross make a grid; words fall into its fields; a border that is missing joins two fields.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from core.rag.document import Block, row_text
from core.rag.parsers.base import clean, is_ideograph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from core.rag.document import Rectangle

THIN = 3.5  # points: a rectangle that is no thicker is a line
_NEAR = 3.0  # points between lines that are one
_SHORTEST = 5.0
_MOST_CROSSINGS = 400_000  # a map has more, and no tables
_MOST_FIELDS = 5_000
_FEWEST_FILLED = 0.6  # of the rows have several filled fields; a drawing's or a form's have not

Word: TypeAlias = tuple[float, float, float, float, str]


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line: where it is, from where to where it goes."""

    at: float
    start: float
    end: float


def tables(drawn: Iterable[Rectangle], words: Callable[[], Sequence[Word]], page: int) -> list[tuple[Rectangle, Block]]:
    """The tables of a page, each with its place.

    Args:
        drawn: The boxes of lines and rectangles, as displayed.
        words: Gives the words with their boxes, in reading order; asked for only where lines cross.
        page: Its number.
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
        if height <= THIN and width >= _SHORTEST:
            across.append(_Rule((y0 + y1) / 2, x0, x1))
        elif width <= THIN and height >= _SHORTEST:
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
    """The lines in groups that hang together by crossings."""
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
    """The fields between crossing lines."""

    def __init__(self, rows: Sequence[_Rule], columns: Sequence[_Rule]) -> None:
        self._rows, self._columns = rows, columns
        self._ys, self._xs = _edges(rows, columns), _edges(columns, rows)

    @property
    def fits(self) -> bool:
        """Whether it has the fields of a table: not a frame's, nor a map's."""
        high, wide = len(self._ys) - 1, len(self._xs) - 1
        return high >= 2 and wide >= 2 and high * wide <= _MOST_FIELDS

    def filled(self, words: Sequence[Word], page: int) -> Block | None:
        """The table of the words in the grid; `None` where it is a drawing or a form rather than a table."""
        high, wide = len(self._ys) - 1, len(self._xs) - 1
        homes = self._homes(high, wide)
        texts: dict[tuple[int, int], list[Word]] = {}
        for word in words:
            row = bisect_right(self._ys, (word[1] + word[3]) / 2) - 1
            column = bisect_right(self._xs, (word[0] + word[2]) / 2) - 1
            if 0 <= row < high and 0 <= column < wide:
                texts.setdefault(homes[row][column], []).append(word)
        return self._block(texts, page)

    def _homes(self, high: int, wide: int) -> list[list[tuple[int, int]]]:
        """For each field the first of those that it is joined with."""
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
        return Block("table", "\n".join(map(row_text, cells)), page, tuple(places), cells=cells)


def _edges(rules: Sequence[_Rule], crossing: Sequence[_Rule]) -> list[float]:
    """Where the fields begin and end; many tables have no lines at their sides, but those that cross reach so far."""
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


def outside(boxes: Sequence[Rectangle], box: Rectangle) -> bool:
    """Whether a box has its middle in none of the others."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return not any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in boxes)
