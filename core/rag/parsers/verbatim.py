"""Files as written, to be shown: numbered lines of a text, numbered rows of a sheet; nothing joined or left out."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from core.rag.document import About, Block
from core.rag.parsers.base import PLAIN, Found, ParseOptions
from core.rag.parsers.spreadsheet import cell_text, open_sheets
from core.rag.parsers.text import decode
from core.rag.row_numbers import column_letters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from core.rag.document import BlockKind

_AT_ONCE = 100  # lines or rows in a block
_LONGEST = 2_000  # characters of a line; the rest follows in lines without a number
_CELL = 2_000
_COLUMNS = 100
_CELLS, _FEWEST = 2_500, 20  # cells in a block, but never fewer rows than these


class LinesParser:
    """A text as tables of lines: the first cell of each row is the line's number, the second its text."""

    def accepts(self, name: str, head: bytes) -> str:  # noqa: ARG002 - it is asked for by name alone
        """Never: this parser is chosen by name, not for indexing."""
        return ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Blocks of lines."""
        yield About()
        lines = decode(path.read_bytes()).rstrip("\n").split("\n")
        numbered = (piece for number, line in enumerate(lines, 1) for piece in _pieces(number, line))
        yield from _blocks(numbered, "code")


class GridParser:
    """A workbook or a CSV file as grids: the first row of each has the column letters."""

    def accepts(self, name: str, head: bytes) -> str:  # noqa: ARG002 - it is asked for by name alone
        """Never: this parser is chosen by name, not for indexing."""
        return ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """The name of each sheet, then blocks of rows.

        Raises:
            BrokenDocumentError: It is damaged, or too large inside.
        """
        with open_sheets(path, name) as (about, sheets):
            yield about
            for sheet in sheets:
                if sheet.page is not None:
                    yield Block("heading", sheet.title, sheet.page, level=1)
                rows = (list(map(cell_text, row)) for row in sheet.rows)
                yield from _grid(enumerate(rows, 1), sheet.left, sheet.page)


def _grid(rows: Iterable[tuple[int, list[str]]], left: int, page: int | None) -> Iterator[Block]:
    """Blocks of numbered rows below their column letters; blank rows are skipped."""
    filled = ((number, row) for number, row in rows if any(cell.strip() for cell in row))
    wide = 1
    while some := list(islice(filled, max(_FEWEST, min(_AT_ONCE, _CELLS // wide)))):
        wide = columns = min(max(len(row) for _, row in some), _COLUMNS)
        letters = ("", *(column_letters(left + at) for at in range(columns)))
        cells = tuple((str(number), *(_cell(cell) for cell in row[:columns])) for number, row in some)
        yield Block("table", "", page, cells=(letters, *cells))


def _cell(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CELL else line[: _CELL - 1] + "…"


def _pieces(number: int, line: str) -> Iterator[tuple[str, str]]:
    yield str(number), line[:_LONGEST]
    for start in range(_LONGEST, len(line), _LONGEST):
        yield "", line[start : start + _LONGEST]


def _blocks(rows: Iterator[tuple[str, ...]], kind: BlockKind) -> Iterator[Block]:
    while some := tuple(islice(rows, _AT_ONCE)):
        yield Block(kind, "", cells=some)
