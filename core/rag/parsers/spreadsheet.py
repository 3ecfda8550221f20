"""Spreadsheets (XLSX, XLSM, XLSB, XLS, ODS) through python-calamine, and tables in text files (CSV, TSV)."""

from __future__ import annotations

import csv
import io
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.document import About, Block, table
from core.rag.parsers import office_encryption
from core.rag.parsers.archives import check_zip, is_encrypted_package, zip_kind
from core.rag.parsers.base import LONG_SHEET, PLAIN, AtRow, Found, ParseOptions, clean, ending
from core.rag.parsers.compound import SIGNATURE
from core.rag.parsers.text import decode, looks_like_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from pathlib import Path

_MEDIA_TYPES = {
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".xls": "application/vnd.ms-excel",
}
_ROWS = 500  # in one block, so that a long sheet needs little memory at a time
_LONGEST_CELL = 1_000_000  # letters, of a text file
_LOOKED_AT = 5_000  # rows from which the columns of tables are told

Cell: TypeAlias = str | float | bool | date | time | timedelta
Row: TypeAlias = list[Cell]


class WorkbookParser:
    """Reads sheet by sheet; blank rows and columns separate tables."""

    def accepts(self, name: str, head: bytes) -> str:
        """A zip with sheets, or an Excel 97 file by its name: its content looks like that of old Word files."""
        if head.startswith(SIGNATURE):
            return _MEDIA_TYPES[".xls"] if ending(name) in {".xls", ".xlt"} else ""
        return _MEDIA_TYPES.get(zip_kind(name, head), "")

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """A sheet is a page, its name a heading.

        Raises:
            BrokenDocumentError: It is damaged, or too large inside.
            LockedDocumentError: It is encrypted; the detail `asks` says that a password can be given (not for ODS).
        """
        with _workbook(path) as (book, titles):
            yield About(pages=len(titles))
            for number, title in enumerate(titles, 1):
                yield from _sheet(book.get_sheet_by_name(title), title, number)


@contextmanager
def _workbook(path: Path) -> Generator[tuple[Any, list[str]]]:
    """A workbook that is open, and the names of its sheets.

    Raises:
        BrokenDocumentError: It is damaged, or too large inside; also while it is read.
        LockedDocumentError: It is encrypted.
    """
    calamine = cast("Any", import_module("python_calamine"))
    with path.open("rb") as file:
        is_old = file.read(len(SIGNATURE)) == SIGNATURE
    if not is_old:
        check_zip(path)
    try:
        with calamine.CalamineWorkbook.from_path(str(path)) as book:
            yield book, [one.name for one in book.sheets_metadata if one.typ == calamine.SheetTypeEnum.WorkSheet]
    except calamine.PasswordError as error:
        raise locked_error(asks=is_old) from error
    except BaseException as error:
        if not isinstance(error, (calamine.CalamineError, OSError, ValueError)) and not is_panic(error):
            raise
        # calamine recognises encryption only in files named .xls or .ods.
        if office_encryption.is_encrypted(path) if is_old else is_encrypted_package(path):
            raise locked_error(asks=is_old) from error
        raise BrokenDocumentError("The workbook is damaged.") from error


@dataclass(frozen=True, slots=True)
class OpenSheet:
    """A sheet of a file that is open.

    Args:
        title: "" in a text file, which has one sheet.
        page: Its number, from 1; `None` in a text file.
        left: The column that the first cell of each row stands in, from 0.
        rows: As they are written, blank ones too, up to the last that has something in it.
    """

    title: str
    page: int | None
    left: int
    rows: Iterable[Row]


@contextmanager
def open_sheets(path: Path, name: str, *, numbers: bool = True) -> Generator[tuple[About, Iterable[OpenSheet]]]:
    """The sheets of a workbook or of a text file, one after the other; for who reads them row by row.

    Args:
        numbers: As of `filled_down`.

    Raises:
        BrokenDocumentError: It is damaged, or too large inside; also while it is read.
        LockedDocumentError: It is encrypted.
    """
    with path.open("rb") as file:
        head = file.read(len(SIGNATURE))
    if not head.startswith((b"PK", SIGNATURE)):
        csv.field_size_limit(_LONGEST_CELL)
        text = decode(path.read_bytes())
        read = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(text, ending(name)))
        yield About(), [OpenSheet("", None, 0, (cast("Row", list(row)) for row in read))]
        return
    with _workbook(path) as (book, titles):
        each = enumerate(titles, 1)
        sheets = (_opened(book.get_sheet_by_name(one), one, at, numbers=numbers) for at, one in each)
        yield About(pages=len(titles)), sheets


def _opened(sheet: Any, title: str, page: int, *, numbers: bool) -> OpenSheet:
    _, left = sheet.start or (0, 0)
    rows = filled_down(sheet, numbers=numbers) if sheet.height else ()
    return OpenSheet(clean(title).strip() or str(page), page, left, rows)


def is_panic(error: BaseException) -> bool:
    """Whether calamine panicked, as at some damage: that is no `Exception`, and its class is not exported."""
    return type(error).__name__ == "PanicException"


def locked_error(*, asks: bool) -> LockedDocumentError:
    """The error for an encrypted workbook; passwords of OpenDocument files are not supported, so none is asked for."""
    if not asks:
        return LockedDocumentError("The workbook is protected by a password.", hint="Save a copy without a password.")
    return LockedDocumentError(
        "The workbook asks for a password.", hint="Give its password, or save a copy without one.", asks=True
    )


def _sheet(sheet: Any, title: str, number: int) -> Iterator[Found]:
    if not sheet.height:
        return
    yield Block("heading", clean(title).strip() or str(number), number, level=1)
    header: _Header | None = None
    told = 0
    for band in bands(filled_down(sheet)):
        headers: list[_Header] = []
        reached = band.first + len(band.some) - 1
        for rows, columns in side_by_side(band.some):
            titles = titles_above(rows)
            for row in rows[:titles]:
                yield Block("paragraph", next(filter(None, map(cell_text, row))), number)
            if body := rows[titles:]:
                goes_on = header is not None and header.columns == columns and not titles and has_number(body[0])
                header = header if header and goes_on else _Header(tuple(map(cell_text, body[0])), columns)
                headers.append(header)
                yield from _tables(header, body if goes_on else body[1:], number)
        while more := list(islice(band.more, _ROWS)):
            for one in headers:
                if rows := [row[slice(*one.columns)] for row in more if not is_blank(row[slice(*one.columns)])]:
                    yield from _tables(one, rows, number)
            yield from _beside(more, headers, number)
            reached += len(more)
            if reached >= told + LONG_SHEET // 2:
                yield AtRow(reached, sheet.height)
                told = reached


@dataclass(frozen=True, slots=True)
class _Header:
    """The first row of a table, and the columns that it takes."""

    cells: tuple[str, ...]
    columns: tuple[int, int]


def _tables(header: _Header, rows: list[Row], page: int) -> Iterator[Block]:
    """A table in blocks of up to 500 rows, each with the header."""
    for start in range(0, max(1, len(rows)), _ROWS):
        yield table([header.cells, *(tuple(map(cell_text, row)) for row in rows[start : start + _ROWS])], page)


def _beside(rows: list[Row], headers: list[_Header], page: int) -> Iterator[Block]:
    """Cells beside the tables, below the rows that the columns of tables were detected in."""
    covered = {column for one in headers for column in range(*one.columns)}
    for row in rows:
        if texts := [text for at, cell in enumerate(row) if at not in covered and (text := cell_text(cell).strip())]:
            yield Block("paragraph", " | ".join(texts), page)


def titles_above(rows: list[Row]) -> int:
    """How many of the first rows are titles of the table: text in one cell, over several columns."""
    if len(rows[0]) == 1:
        return int(len(rows) == 1)
    count = 0
    while count < len(rows) and sum(not is_blank([cell]) for cell in rows[count]) == 1:
        count += 1
    return count if all(isinstance(cell, str) for row in rows[:count] for cell in row) else 0


def filled_down(sheet: Any, *, numbers: bool = True) -> Iterator[Row]:
    """The rows of a sheet, with the value of vertically merged cells in each row.

    Args:
        numbers: Whether numbers are repeated too; a sum would count them several times.
    """
    _, first_column = sheet.start or (0, 0)  # rows come from the top of the sheet, cells from its first column
    spans = {
        (top, left - first_column): bottom
        for (top, left), (bottom, _) in sheet.merged_cell_ranges or ()
        if bottom > top
    }
    starts: dict[int, list[tuple[int, int]]] = {}
    for (top, left), bottom in spans.items():
        starts.setdefault(top, []).append((left, bottom))
    open_spans: dict[int, tuple[int, Cell]] = {}
    for at, row in enumerate(sheet.iter_rows()):
        for column, (bottom, value) in list(open_spans.items()):
            if at > bottom:
                del open_spans[column]
            elif row[column] == "":
                row[column] = value
        for column, bottom in starts.get(at, ()):
            if column < len(row) and row[column] != "" and (numbers or isinstance(row[column], str)):
                open_spans[column] = (bottom, row[column])
        yield row


class Band:
    """Consecutive rows without a blank one: the first of them, and the rest.

    Args:
        first: The number of its first row, from 1.
    """

    def __init__(self, rows: Iterator[Row], first: int) -> None:
        self.first = first
        self.some = list(islice(rows, _LOOKED_AT))
        self.more = rows


class _Counted:
    """Rows, and how many of them were given out."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)
        self.given = 0

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = next(self._rows)
        self.given += 1
        return row


def bands(given: Iterable[Row]) -> Iterator[Band]:
    """The rows of a sheet in runs that blank rows part."""
    rows = _Counted(given)
    for row in rows:
        if not is_blank(row):
            band = Band(_run(row, rows), rows.given)
            yield band
            for _ in band.more:  # the caller may have left rows unread
                pass


def _run(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    for row in rows:
        if is_blank(row):
            return
        yield row


def is_blank(row: Sequence[Cell]) -> bool:
    """Whether nothing stands in any of the cells."""
    return all(cell == "" or (isinstance(cell, str) and not cell.strip()) for cell in row)


def side_by_side(rows: list[Row]) -> Iterator[tuple[list[Row], tuple[int, int]]]:
    """Tables beside each other, with the columns that each takes.

    A blank column alone separates no tables: the cells on its two sides must also begin or end in different rows.
    """
    width = max(len(row) for row in rows)
    filled = [any(at < len(row) and not is_blank(row[at : at + 1]) for row in rows) for at in range(width)]
    starts = [at for at in range(width) if filled[at] and not (at and filled[at - 1])]
    ends = [at + 1 for at in range(width) if filled[at] and not (at + 1 < width and filled[at + 1])]
    tables: list[tuple[int, int, tuple[int, int]]] = []
    for start, end in zip(starts, ends, strict=True):
        at = [number for number, row in enumerate(rows) if not is_blank(row[start:end])]
        reach = (at[0], at[-1])
        if tables and tables[-1][2] == reach:
            tables[-1] = (tables[-1][0], end, reach)
        else:
            tables.append((start, end, reach))
    for start, end, (first, last) in tables:
        yield [row[start:end] for row in rows[first : last + 1]], (start, end)


def has_number(row: Row) -> bool:
    """Whether one of the cells is a number."""
    return any(isinstance(cell, float | int) for cell in row)


def cell_text(cell: Cell) -> str:
    """A cell as a spreadsheet program would show it, as far as that is known."""
    match cell:
        case str():
            return clean(cell)
        case bool():
            return str(cell).upper()
        case int() | float():
            return f"{cell:.15g}"
        case datetime():
            return cell.isoformat(" ").removesuffix(" 00:00:00")
        case date() | time():
            return cell.isoformat()
        case _:
            return str(cell)


_TEXT_TYPES = {".csv": "text/csv", ".tsv": "text/tab-separated-values", ".tab": "text/tab-separated-values"}
_SNIFFED = 20  # lines by which the delimiter is told
_CELL = 1_000_000  # letters; the library's own limit breaks honest files


class SheetParser:
    """Reads rows; the first is taken for the header."""

    def accepts(self, name: str, head: bytes) -> str:
        """Text whose name says that it holds rows; commas alone do not."""
        return _TEXT_TYPES.get(ending(name), "") if looks_like_text(head) else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Tables of up to 500 rows, each with the header as its first."""
        yield About()
        text = decode(path.read_bytes())
        csv.field_size_limit(_CELL)
        rows = _filled(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(text, ending(name))))
        header = next(rows, None)
        if header is None:
            return
        first, lines, reached = True, text.count("\n"), 1
        while (some := list(islice(rows, _ROWS))) or first:
            yield table([header, *some])
            first, reached = False, reached + len(some)
            if lines >= LONG_SHEET:  # a cell may have several lines
                yield AtRow(reached, max(lines, reached))


def _filled(rows: Iterator[list[str]]) -> Iterator[tuple[str, ...]]:
    return (tuple(row) for row in rows if any(cell.strip() for cell in row))


def delimiter(text: str, kind: str) -> str:
    """The delimiter of cells: in many countries, spreadsheet programs write semicolons into a file named .csv."""
    if kind != ".csv":
        return "\t"
    lines = [line for line in text.split("\n", _SNIFFED)[:_SNIFFED] if line.strip()]
    # Decimal commas are many in some lines and none in the header: what parts cells is as often in each.
    counts = {mark: [count for line in lines if (count := _outside_quotes(line).count(mark))] for mark in ",;\t|"}

    def even(mark: str) -> tuple[int, int]:
        usual = max(set(counts[mark]), key=counts[mark].count, default=0)
        return counts[mark].count(usual), usual

    return max(counts, key=even)


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])
