"""Tables of workbooks and of CSV files row by row, each with its number in the file: what queries are made over."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from core.rag.document import Block
from core.rag.parsers.base import PLAIN, Found, ParseOptions
from core.rag.parsers.spreadsheet import (
    bands,
    cell_text,
    has_number,
    is_blank,
    open_sheets,
    side_by_side,
    titles_above,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from core.rag.parsers.spreadsheet import Band, Row

_AT_ONCE = 1_000  # rows in a block, so that a long sheet needs little memory at a time
_FIGURE = re.compile(r"\s*[-+€$£¥]?\s?\d[\d.,']{0,20}\s?[%€]?\s*")
BEGINS, GOES_ON = 1, 0  # the level of a block: whether a table begins with it


class TableRowsParser:
    """The tables of a sheet, each in blocks of rows.

    The first cell of a row is its number in the sheet; `level` is 1 where a table begins, and `columns` says which
    columns of the sheet it takes, from 0.
    """

    def accepts(self, name: str, head: bytes) -> str:  # noqa: ARG002 - it is asked for by name alone
        """Never: this parser is chosen by name, not for indexing."""
        return ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """The name of each sheet as a heading, then its tables, each below the titles that stand over it.

        Raises:
            BrokenDocumentError: It is damaged, or too large inside.
        """
        with open_sheets(path, name, numbers=False) as (about, sheets):
            yield about
            for sheet in sheets:
                if sheet.page is not None:
                    yield Block("heading", sheet.title, sheet.page, level=1)
                yield from _tables(sheet.rows, sheet.left, sheet.page)


def _tables(rows: Iterable[Row], left: int, page: int | None) -> Iterator[Block]:
    """The tables among the rows of a sheet.

    Args:
        left: The sheet's column that the first cell of each row stands in, from 0.
    """
    before: tuple[int, int] | None = None
    for band in bands(rows):
        there: list[tuple[int, int]] = []
        for ragged, columns in side_by_side(band.some):
            lines = [_padded(line, columns[1] - columns[0]) for line in ragged]
            first = band.first + _above(band, lines, columns)
            titles = titles_above(lines)
            for line in lines[:titles]:
                yield Block("paragraph", next(filter(None, map(cell_text, line))), page)
            if body := lines[titles:]:
                goes_on = before == columns and not titles and _is_body(body[0])
                there.append(columns)
                yield from _blocks(body, first + titles, columns, left, page, begins=not goes_on)
        at = band.first + len(band.some)
        while more := list(islice(band.more, _AT_ONCE)):
            for columns in there:
                yield from _blocks([row[slice(*columns)] for row in more], at, columns, left, page, begins=False)
            at += len(more)
        before = there[-1] if there else None


def _is_body(row: Row) -> bool:
    """Whether a row looks like one below a header: one of its cells is a number, or is written like one."""
    return has_number(row) or any(isinstance(cell, str) and _FIGURE.fullmatch(cell) for cell in row)


def _padded(row: Row, width: int) -> Row:
    """A row as wide as its table: lines of a CSV file may end early."""
    return row if len(row) >= width else [*row, *[""] * (width - len(row))]


def _above(band: Band, lines: list[Row], columns: tuple[int, int]) -> int:
    """How many rows of a band stand above a table in it."""
    return next(
        (
            at
            for at, row in enumerate(band.some)
            if not is_blank(row[slice(*columns)]) and row[slice(*columns)] == lines[0]
        ),
        0,
    )


def _blocks(
    rows: list[Row], first: int, columns: tuple[int, int], left: int, page: int | None, *, begins: bool
) -> Iterator[Block]:
    place = ((float(left + columns[0]), float(left + columns[1])),)
    level = BEGINS if begins else GOES_ON
    for start in range(0, len(rows), _AT_ONCE):
        cells = tuple(
            (str(number), *(" ".join(cell_text(cell).split()) for cell in row))
            for number, row in enumerate(rows[start : start + _AT_ONCE], first + start)
            if not is_blank(row)
        )
        if cells:
            yield Block("table", "", page, level=level, cells=cells, columns=place)
            level = GOES_ON
