"""The tables of one document in a SQLite file of their own, each row with its number and its place."""

from __future__ import annotations

import json
import secrets
import sqlite3
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError, NoSpaceError
from core.rag.document import row_text
from core.rag.row_numbers import column_letters
from core.rag.tables.shape import column_names, header_rows, is_total
from core.rag.tables.values import readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from core.rag.document import Block, Rectangle
    from core.rag.tables.values import Kind, Reading

VERSION = 1
MOST_CELLS = 16_000_000  # of a document: a sheet of a million rows has room, a made-up one ends there
_MOST_COLUMNS = 200
_MOST_TABLES = 100
_LONGEST_CELL = 2_000
_LOOKED_AT = 2_000  # rows of a table by which its header and its types are told
_AT_ONCE = 5_000
_SAMPLES = 3
_LONGEST_SAMPLE = 24
_WRONG = 0.1  # of the filled cells of a column that may be no numbers


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        unit: A currency or "%" that its numbers are written with; several are parted by "/".
        letter: Its letter in a sheet, else "".
        strays: Cells with other text among numbers or dates, which count as empty.
        samples: Some of its values.
        key: Its name in the file.
    """

    name: str
    kind: Kind
    unit: str = ""
    letter: str = ""
    strays: int = 0
    samples: tuple[str, ...] = ()
    key: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a document.

    Args:
        number: From 1, in the order of the document.
        title: The words right above it, or the name of its sheet.
        page: Where it begins.
        rows: Below its header.
        totals: Rows that say of themselves that they add up others.
        whole: Whether all of its rows are there.
        sheet: Whether its rows have the numbers of a sheet's rows; else they are counted from 1 below the header.
        header: Its header as a line.
    """

    number: int
    title: str
    page: int | None
    rows: int
    columns: tuple[Column, ...]
    totals: int = 0
    whole: bool = True
    sheet: bool = False
    header: str = ""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Table:
        """The table that `dataclasses.asdict` wrote."""
        listed: list[dict[str, Any]] = [{**one, "samples": tuple(one["samples"])} for one in values["columns"]]
        columns = tuple(Column(**one) for one in listed)
        known: dict[str, Any] = {**values, "columns": columns}
        return cls(**known)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table as it stands in the document.

    Args:
        columns: Where each of its cells begins and ends, in points from the left; none where that is not known.
    """

    number: int
    page: int | None
    cells: tuple[str, ...]
    place: Rectangle | None = None
    columns: tuple[tuple[float, float], ...] = ()

    @property
    def placed(self) -> str | None:
        """Its place as it is kept: its edges, then where each cell begins and ends; `None` where that is not known."""
        if self.place is None:
            return None
        return json.dumps([*self.place, *(edge for column in self.columns for edge in column)])


def saved(path: Path) -> tuple[Table, ...]:
    """The tables of a file that `write` made.

    Raises:
        OSError, ValueError, KeyError, TypeError: There is none, or it is damaged.
    """
    if not path.is_file():
        raise FileNotFoundError(path.name)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            (text,) = db.execute("SELECT value FROM meta").fetchone()
    except sqlite3.Error as error:
        raise ValueError("The tables that were kept are damaged.") from error
    return tuple(Table.from_dict(one) for one in json.loads(text))


def write(path: Path, blocks: Iterable[Block], *, sheet: bool, cut: int = 0) -> tuple[Table, ...]:
    """Write the tables among `blocks` to a new file at `path`.

    Args:
        sheet: Whether rows begin with their numbers, as `TableRowsParser` gives them.
        cut: Rows of a block after which a long table goes on in another one without its header; 0 where none does.

    Raises:
        NoSpaceError: The disk is full.
        BrokenDocumentError: It cannot be written.
        DocumentError: What the blocks come from cannot be read.
    """
    waiting = path.with_name(f".{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with closing(sqlite3.connect(waiting, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = OFF")
            db.execute("PRAGMA synchronous = OFF")
            db.execute("BEGIN")
            writer = _Writer(db)
            for begins, found in _of_sheets(blocks) if sheet else _of_pages(blocks, cut):
                writer.take(found, begins=begins)
                if writer.is_full:
                    break
            tables = writer.finish()
            db.execute("CREATE TABLE meta (value TEXT)")
            db.execute("INSERT INTO meta VALUES (?)", (json.dumps([asdict(one) for one in tables]),))
            db.execute("COMMIT")
        waiting.replace(path)
    except (sqlite3.Error, OSError) as error:
        if "full" in str(error) or getattr(error, "errno", None) == 28:
            raise NoSpaceError("The disk is full.") from error
        raise BrokenDocumentError("The tables of the document cannot be kept.") from error
    finally:
        with suppress(OSError):
            waiting.unlink(missing_ok=True)
    return tables


@dataclass(slots=True)
class _Found:
    """Rows of a table that belong together.

    Args:
        key: Tells it from others that are open at the same time.
    """

    key: tuple[Any, ...]
    title: str
    page: int | None
    left: int | None
    rows: list[Row]


def _of_sheets(blocks: Iterable[Block]) -> Iterator[tuple[bool, _Found]]:
    """Rows of sheets; the title of a table is the words above it, else its sheet's name."""
    name = above = ""
    for block in blocks:
        if block.kind == "heading":
            name, above = block.text, ""
        elif block.kind == "paragraph":
            above = block.text
        elif block.cells:
            left = int(block.columns[0][0]) if block.columns else 0
            rows = [Row(int(cells[0]), block.page, cells[1:]) for cells in block.cells]
            title = f"{name}: {above}" if name and above else name or above
            yield block.level > 0, _Found((block.page, block.columns), title, block.page, left, rows)
            above = ""


def _of_pages(blocks: Iterable[Block], cut: int) -> Iterator[tuple[bool, _Found]]:
    """Rows of tables on pages; one that goes on with the same header on the next page is one table."""
    last: _Found | None = None
    header: tuple[str, ...] = ()
    heading, number, key, skipped = "", 0, 0, 0
    for block in blocks:
        if block.kind == "heading":
            heading = " ".join(block.text.split())
        if block.kind != "table" or not block.cells:
            continue
        page = block.page
        rows_of = list(block.cells)
        repeats = rows_of[:1] == [header] and len(rows_of) > 1
        is_piece = last is not None and 0 < cut == len(last.rows) + skipped and len(rows_of[0]) == len(header)
        goes_on = last is not None and (is_piece or repeats) and _follows(last.page, page)
        if not goes_on:
            number, key = 0, key + 1
        skipped = int(goes_on and repeats)
        body = list(_placed(block))[skipped:]
        rows = [replace(row, number=number + at) for at, row in enumerate(body, 1)]
        number += len(rows)
        last = _Found((key,), heading, page, None, rows)
        header = header if goes_on else rows_of[0]
        yield not goes_on, last


def _follows(page: int | None, then: int | None) -> bool:
    return page is None or then is None or then - page <= 1


def _placed(block: Block) -> Iterator[Row]:
    start = 0
    for cells in block.cells:
        text = row_text(cells)
        places = block.rectangles_of(start, start + max(1, len(text))) if len(block.lines) > 1 else ()
        place = None
        if places:
            place = (
                min(one[0] for one in places),
                min(one[1] for one in places),
                max(one[2] for one in places),
                max(one[3] for one in places),
            )
        yield Row(0, block.page, cells, place, _reached(cells, block.columns))
        start += len(text) + 1


def _reached(cells: Sequence[str], columns: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Where the words of each cell of a row may stand: over the empty cells that follow, too, for some are joined."""
    if len(cells) != len(columns):
        return ()
    found: list[tuple[float, float]] = []
    for at, (begin, end) in enumerate(columns):
        last = next((other for other in range(at + 1, len(cells)) if cells[other]), len(cells)) - 1
        found.append((begin, columns[last][1] if cells[at] else end))
    return tuple(found)


def places_of(kept: Sequence[float], columns: Sequence[int]) -> tuple[Rectangle, ...]:
    """The places of some cells of a row, those beside each other as one; all of the row where cells have none.

    Args:
        kept: What `Row.placed` wrote.
        columns: Of the cells, from 0, in their order; none for all of the row.
    """
    left, top, right, bottom, *edges = kept
    found: list[Rectangle] = []
    before = -2
    for at in columns:
        if 2 * at + 1 >= len(edges):
            found = []
            break
        begin, end = edges[2 * at : 2 * at + 2]
        if at == before + 1:
            begin, _, reached, _ = found.pop()
            end = max(end, reached)  # the one before may reach over this one, where that is empty
        found.append((begin, top, end, bottom))
        before = at
    return tuple(found) or ((left, top, right, bottom),)


class _Writer:
    """Writes tables as their rows come.

    Args:
        db: The new file.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._open: dict[tuple[Any, ...], _Open] = {}
        self._all: list[_Open] = []
        self._cells = 0

    @property
    def is_full(self) -> bool:
        """Whether no more is taken in."""
        return self._cells > MOST_CELLS or len(self._all) > _MOST_TABLES

    def take(self, found: _Found, *, begins: bool) -> None:
        """More rows of a table."""
        table = None if begins else self._open.get(found.key)
        if table is None:
            table = _Open(len(self._all) + 1, found)
            self._all.append(table)
            self._open[found.key] = table
        self._cells += sum(len(row.cells) for row in found.rows)
        table.take(self._db, found.rows)

    def finish(self) -> tuple[Table, ...]:
        """All tables that have rows."""
        full = self.is_full
        last = self._all[-1] if self._all else None
        found = [(one, one.finish(self._db)) for one in self._all[:_MOST_TABLES]]
        return tuple(
            replace(table, whole=False) if full and one is last else table for one, table in found if table is not None
        )


@dataclass(slots=True)
class _Tally:
    """What a column held."""

    filled: int = 0
    strays: int = 0
    samples: dict[str, None] = field(default_factory=dict[str, None])


class _Open:
    """A table that is being written: its first rows wait until its header and its types can be told."""

    def __init__(self, number: int, found: _Found) -> None:
        self.number = number
        self._about = found
        self._waiting: list[Row] = []
        self._width = 0
        self._names: list[str] = []
        self._readings: list[Reading] = []
        self._tallies: list[_Tally] = []
        self._header = ""
        self._shift = 0
        self._rows = self._totals = 0

    def take(self, db: sqlite3.Connection, rows: Sequence[Row]) -> None:
        """More rows."""
        if self._names:
            self._insert(db, rows)
            return
        self._waiting += rows
        if len(self._waiting) >= _LOOKED_AT:
            self._begin(db)

    def _begin(self, db: sqlite3.Connection) -> None:
        rows, self._waiting = self._waiting, []
        cells = [row.cells for row in rows]
        count = header_rows(cells)
        self._width = min(_MOST_COLUMNS, max(map(len, cells), default=0))
        self._names = column_names(cells[:count], self._width, self._about.left)
        self._readings = readings([row for row in cells[count:] if not is_total(row)], self._width)
        self._tallies = [_Tally() for _ in range(self._width)]
        self._header = row_text(cells[count - 1]) if count else ""
        keys = "".join(f", c{at}" for at in range(self._width))
        db.execute(
            f"CREATE TABLE t{self.number} "
            f"(_row INTEGER PRIMARY KEY, _page INTEGER, _total INTEGER, _text TEXT, _place TEXT{keys})"
        )
        if self._about.left is None:  # rows are counted below the header
            rows = [replace(row, number=row.number - count) for row in rows]
        self._shift = count if self._about.left is None else 0
        self._insert(db, rows[count:], shifted=True)

    def _insert(self, db: sqlite3.Connection, rows: Sequence[Row], *, shifted: bool = False) -> None:
        marks = ", ".join("?" * (5 + self._width))
        shift = 0 if shifted else self._shift
        db.executemany(
            f"INSERT OR REPLACE INTO t{self.number} VALUES ({marks})",  # noqa: S608 - a number of our own
            (self._values(row, shift) for row in rows),
        )

    def _values(self, row: Row, shift: int) -> list[Any]:
        self._rows += 1
        total = is_total(row.cells)
        self._totals += total
        text = row_text(row.cells)[:_LONGEST_CELL]
        values: list[Any] = [row.number - shift, row.page, int(total), text, row.placed]
        cells = row.cells
        for at in range(self._width):
            cell = cells[at] if at < len(cells) else ""
            reading, tally = self._readings[at], self._tallies[at]
            value = reading.value(cell if len(cell) <= _LONGEST_CELL else cell[:_LONGEST_CELL])
            if value is not None:
                tally.filled += 1
                if reading.kind != "text" and value == cell and not _is_of(reading, cell):
                    tally.strays += not total  # its label is no number anywhere
                elif len(tally.samples) < _SAMPLES:
                    tally.samples[sample(value)] = None
            values.append(value)
        return values

    def finish(self, db: sqlite3.Connection) -> Table | None:
        """The table; `None` where it has no row below its header, or nothing in its columns."""
        if not self._names and len(self._waiting) > 1:
            self._begin(db)
        columns = tuple(self._column(at) for at in range(self._width) if self._tallies and self._tallies[at].filled)
        if not self._rows or not columns:
            return None
        about = self._about
        sheet = about.left is not None
        return Table(
            self.number, about.title, about.page, self._rows, columns, self._totals, sheet=sheet, header=self._header
        )

    def _column(self, at: int) -> Column:
        reading, tally = self._readings[at], self._tallies[at]
        kind = reading.kind
        if tally.strays > _WRONG * tally.filled:
            kind = "text"
        letter = column_letters(self._about.left + at) if self._about.left is not None else ""
        unit = reading.unit if kind == "number" else ""
        strays = tally.strays if kind != "text" else 0
        return Column(self._names[at], kind, unit, letter, strays, tuple(tally.samples), f"c{at}")


def _is_of(reading: Reading, cell: str) -> bool:
    """Whether a cell that was left as it is has the type of its column."""
    return reading.kind == "date" and cell[:4].isdecimal() and cell[4:5] == "-"


def sample(value: object) -> str:
    """A value as it is told, cut where it is long."""
    text = f"{value:.12g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _LONGEST_SAMPLE else f"{text[: _LONGEST_SAMPLE - 1]}…"


def select_list(table: Table) -> str:
    """The columns of a table for a view over it: other text among numbers or dates counts as nothing there."""
    parts = ["_row", "_page", "_total"]
    for column in table.columns:
        name = quoted(column.name)
        if column.kind == "number" and (column.strays or table.totals):
            parts.append(f"CASE WHEN typeof({column.key}) IN ('integer', 'real') THEN {column.key} END AS {name}")
        elif column.kind == "date" and (column.strays or table.totals):
            parts.append(f"CASE WHEN {column.key} GLOB '[0-9][0-9][0-9][0-9]-*' THEN {column.key} END AS {name}")
        elif column.kind == "text":
            parts.append(f"CAST({column.key} AS TEXT) AS {name}")
        else:
            parts.append(f"{column.key} AS {name}")
    return ", ".join(parts)


def quoted(name: str) -> str:
    """A name as SQL has it."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
