"""One SELECT over tables: nothing is written, nothing else is read, and it ends in time."""

from __future__ import annotations

import json
import re
import sqlite3
import statistics
import time
import unicodedata
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from core.errors import BadArgumentsError, ToolError
from core.rag.row_numbers import has, joined
from core.rag.tables.statement import names_in, quoted_names, taken_apart
from core.rag.tables.store import places_of, quoted, select_list

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from core.rag.document import Rectangle
    from core.rag.row_numbers import Runs
    from core.rag.tables.statement import Statement
    from core.rag.tables.store import Table

SECONDS = 5.0  # that a query may take
MOST_ROWS = 50  # that are given of a result
LONGEST = 4_000  # letters of a query
LIST = "_tables"
_COUNTED = 200_000  # rows of a result that are counted
_MOST_FILES = 9  # that SQLite attaches
_STEPS = 5_000  # of SQLite's between two looks at the clock
_VALUE = 1_000_000  # bytes of one value
_GATHERED = 5_000  # runs of rows that are kept for a row of the result
_SHOWN = 80  # rows whose text is kept
_OF_SQLITE = (
    "abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count "
    "cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor "
    "format glob group_concat hex ifnull iif instr julianday lag last_value lead length like ln log log10 log2 "
    "lower ltrim max median min mod nth_value ntile nullif octet_length percent_rank pi pow power printf quote "
    "radians rank replace round row_number rtrim sign sin sinh sqrt stddev strftime string_agg substr substring "
    "sum tan tanh time timediff total trim trunc typeof unicode unixepoch upper"
)
_FUNCTIONS = frozenset(_OF_SQLITE.split())
_GATHER = "_rows_that_went_in"
FOLD = "_folded"  # `folded` as a function in queries: SQLite's lower knows the letters of ASCII alone
_BEGINS = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*+(?:select|with|values)\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Named:
    """A table as queries name it.

    Args:
        name: In lower case, without need of quotation marks.
        document: The name of its document.
        path: The file that holds it.
    """

    name: str
    document: str
    document_id: str
    path: Path
    table: Table


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row that went into a result.

    Args:
        places: Of the cells that were read, where that is known; else of the row.
    """

    number: int
    page: int | None
    text: str
    total: bool
    places: tuple[Rectangle, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """What went into a row of a result, of one table.

    Args:
        runs: The rows.
        rows: The first of them.
        totals: Those of them that add up others, where others are among them too.
        left_out: Rows beyond those of `runs`, where there were too many runs to be kept.
    """

    table: Named
    runs: Runs
    rows: tuple[SourceRow, ...]
    totals: tuple[int, ...] = ()
    left_out: int = 0

    @property
    def count(self) -> int:
        """How many rows they are."""
        return self.left_out + sum(last - first + 1 for first, last in self.runs)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gives.

    Args:
        columns: Names of the columns of the result.
        rows: The first rows of the result.
        total: How many rows it has, up to 200,000.
        sources: For each of `rows`, what went into it; empty where that cannot be told row by row.
        tables: The tables that were read.
        read: For each of these, how many rows it has.
        used: For each of these, the names of the columns that were read.
        in_totals: Rows that add up others and went into an aggregate beside such others.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int
    sources: tuple[tuple[Source, ...], ...]
    tables: tuple[Named, ...]
    read: tuple[int, ...]
    used: tuple[tuple[str, ...], ...]
    in_totals: tuple[int, ...] = ()


def folded(text: Any) -> Any:
    """A text as texts are compared, in lower case of all scripts and with single spaces; what is no text as it is."""
    if not isinstance(text, str):
        return text
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.casefold().split())


class _Gather:
    """An aggregate: the numbers of rows in runs, as JSON; a million of them need little memory."""

    def __init__(self) -> None:
        self._runs: list[list[int]] = []
        self._left_out = 0

    def step(self, row: Any, /) -> None:
        if row is None:
            return
        if self._runs and row == self._runs[-1][1] + 1:
            self._runs[-1][1] = row
        elif len(self._runs) < _GATHERED:
            self._runs.append([row, row])
        else:
            self._left_out += 1

    def finalize(self) -> str:
        return json.dumps([self._left_out, self._runs])


class _Numbers:
    """An aggregate over numbers."""

    fewest = 1

    def __init__(self) -> None:
        self._found: list[float] = []

    def step(self, value: Any, /) -> None:
        if isinstance(value, int | float):
            self._found.append(value)

    def finalize(self) -> int | float | None:
        return self.of(self._found) if len(self._found) >= self.fewest else None

    @staticmethod
    def of(values: list[float]) -> float:
        raise NotImplementedError


class _Median(_Numbers):
    @staticmethod
    def of(values: list[float]) -> float:
        return statistics.median(values)


class _Deviation(_Numbers):
    fewest = 2

    @staticmethod
    def of(values: list[float]) -> float:
        return statistics.stdev(values)


def ask(tables: Sequence[Named], query: str, *, seconds: float = SECONDS, most: int = MOST_ROWS) -> Answer:
    """Ask tables with one SELECT in SQLite's words. Blocks for `seconds` at most.

    Beside what SQLite has there are the aggregates `median` and `stddev`, and the table `_tables`, which lists all.

    Raises:
        BadArgumentsError: It is no SELECT over these tables, or wrong; the sentence says what is.
        ToolError: It takes too long, or a file cannot be read.
    """
    query = query.strip().rstrip(";").rstrip()
    if len(query) > LONGEST:
        raise BadArgumentsError(f"The query is longer than {LONGEST} characters.", hint="Write a shorter one.")
    if not _BEGINS.match(query):
        raise BadArgumentsError("Only one SELECT over the listed tables is possible.", hint="Write a SELECT.")
    words = names_in(query)
    wanted = [one for one in tables if one.name in words]
    files = list(dict.fromkeys(one.path for one in wanted))
    if len(files) > _MOST_FILES:
        raise BadArgumentsError(f"One query reads the tables of {_MOST_FILES} documents at most.", hint="Ask in parts.")
    with closing(sqlite3.connect("file::memory:", isolation_level=None, uri=True)) as db:
        database = _Database(db, tables, wanted, files, time.monotonic() + seconds)
        return database.answer(query, most)


class _Database:
    """A connection to the tables that a query names, behind a guard.

    Args:
        wanted: The tables that it may read.
        files: Where these stand.
        deadline: When it is interrupted, by the monotonic clock.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        tables: Sequence[Named],
        wanted: Sequence[Named],
        files: Sequence[Path],
        deadline: float,
    ) -> None:
        self._db, self._all, self._wanted = db, tables, wanted
        self._late = False
        self._read: set[tuple[int, str]] = set()
        self._named: dict[str, set[str]] = {}  # columns that the query itself names; a view names all of its table
        self._places = {path: at for at, path in enumerate(files)}
        self._keys = {(self._places[one.path], f"t{one.table.number}"): one for one in wanted}
        self._names = {one.name for one in wanted} | {LIST}
        try:
            for at, path in enumerate(files):
                db.execute(f"ATTACH ? AS d{at}", (f"{path.absolute().as_uri()}?mode=ro&immutable=1",))
            for one in wanted:
                source = f"d{self._places[one.path]}.t{one.table.number}"
                columns = select_list(one.table)
                view = f"CREATE TEMP VIEW {quoted(one.name)} AS"
                db.execute(f"{view} SELECT {columns} FROM {source}")  # noqa: S608 - all names are quoted
            self._list(tables)
        except sqlite3.Error as error:
            raise ToolError("The tables cannot be read now.", hint="Ask again.") from error
        self._guard(deadline)

    def _list(self, tables: Sequence[Named]) -> None:
        self._db.execute(f"CREATE TEMP TABLE {LIST} (name, document, page, title, rows, columns)")
        self._db.executemany(
            f"INSERT INTO {LIST} VALUES (?, ?, ?, ?, ?, ?)",  # noqa: S608 - our own name
            [(*_place(one), one.table.rows, ", ".join(column.name for column in one.table.columns)) for one in tables],
        )

    def _guard(self, deadline: float) -> None:
        db = self._db
        kinds: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("median", _Median),
            ("stddev", _Deviation),
            (_GATHER, _Gather),
        )
        for name, kind in kinds:
            db.create_aggregate(name, 1, cast("Any", kind))
        db.create_function(FOLD, 1, folded, deterministic=True)
        for limit, most in (
            (sqlite3.SQLITE_LIMIT_LENGTH, _VALUE),
            (sqlite3.SQLITE_LIMIT_ATTACHED, len(self._places)),
            (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 100),
            (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 20),
        ):
            db.setlimit(limit, most)
        db.execute("PRAGMA query_only = 1")

        def interrupts() -> bool:
            self._late = time.monotonic() > deadline
            return self._late

        db.set_progress_handler(interrupts, _STEPS)
        db.set_authorizer(self._allows)

    def _allows(self, action: int, one: str | None, two: str | None, database: str | None, _: str | None) -> int:
        """SQLite asks before each step of a statement that it prepares."""
        match action:
            case sqlite3.SQLITE_SELECT | sqlite3.SQLITE_RECURSIVE:
                return sqlite3.SQLITE_OK
            case sqlite3.SQLITE_FUNCTION:
                known = (two or "").casefold() in _FUNCTIONS or two in {_GATHER, FOLD}
                return sqlite3.SQLITE_OK if known else sqlite3.SQLITE_DENY
            case sqlite3.SQLITE_READ:
                return self._allows_reading(one or "", two or "", database)
            case _:
                return sqlite3.SQLITE_DENY

    def _allows_reading(self, table: str, column: str, database: str | None) -> int:
        if database is not None and database.startswith("d") and (at := database[1:]).isdecimal():
            if (int(at), table) in self._keys:
                self._read.add((int(at), table))
                return sqlite3.SQLITE_OK
            return sqlite3.SQLITE_DENY
        if table in self._names:
            self._named.setdefault(table, set()).add(column)
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_OK if database is None else sqlite3.SQLITE_DENY

    def answer(self, query: str, most: int) -> Answer:
        """What a query gives. Raises BadArgumentsError, ToolError."""
        self._check_names(query)
        self._read.clear()
        self._named.clear()
        columns, rows, total = self._run(query, most)
        tables = [named for key, named in self._keys.items() if key in self._read]
        used = [self._used(named) for named in tables]
        read = tuple(one.table.rows for one in tables)
        sources: tuple[tuple[Source, ...], ...] = ()
        statement = taken_apart(query)
        if statement is not None and tables and rows:
            with suppress(ToolError):
                sources = self._sources(statement, columns, rows, most)
        in_totals: tuple[int, ...] = ()
        if statement is not None and statement.extreme:
            in_totals = tuple(row.number for each in sources for one in each for row in one.rows if row.total)
        elif statement is not None and statement.aggregated:
            in_totals = tuple(dict.fromkeys(row for each in sources for one in each for row in one.totals))
        return Answer(columns, rows, total, sources, tuple(tables), read, tuple(used), in_totals)

    def _check_names(self, query: str) -> None:
        """SQLite takes a quoted name that it does not know for a text: a sum over a misspelt column would be 0."""
        known = {*self._names, "_row", "_page", "_total", "name", "document", "page", "title", "rows", "columns"}
        known |= {column.name.casefold() for one in self._wanted for column in one.table.columns}
        if unknown := quoted_names(query) - {name.casefold() for name in known}:
            raise self._no_column(f"no column {quoted(min(unknown))}")

    def _no_column(self, said: str) -> BadArgumentsError:
        there = "; ".join(
            f"{one.name}: {', '.join(quoted(column.name) for column in one.table.columns)}" for one in self._wanted
        )
        hint = f"The columns are: {there[:1500]}. Texts stand in single quotation marks."
        return BadArgumentsError(f"There is {said}.", hint=hint)

    def _used(self, named: Named) -> tuple[str, ...]:
        found = self._named.get(named.name, set())
        return tuple(column.name for column in named.table.columns if column.name in found)

    def _run(self, query: str, most: int) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...], int]:
        """Names of columns, the first rows, and how many there are."""
        try:
            cursor = self._db.execute(query)
            if cursor.description is None:
                raise BadArgumentsError("This is no SELECT.", hint="Write one SELECT.")
            rows = cursor.fetchmany(most)
            total = len(rows)
            while total < _COUNTED and (more := cursor.fetchmany(1_000)):
                total += len(more)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
            raise self._error(error) from error
        return tuple(one[0] for one in cursor.description), tuple(rows), total

    def _error(self, error: Exception) -> ToolError:
        said = str(error)
        if self._late or "interrupted" in said:
            return ToolError("The query takes too long.", hint="Ask for less: fewer rows, no join of all with all.")
        if "not authorized" in said or "prohibited" in said or "readonly" in said or "one statement" in said:
            return BadArgumentsError("Only one SELECT over the listed tables is possible.", hint="Write a SELECT.")
        if "no such table" in said:
            names = ", ".join(one.name for one in self._all[:40])
            return BadArgumentsError(f"There is {said.replace('no such', 'no')}.", hint=f"There are: {names}.")
        if "no such column" in said:
            return self._no_column(said.replace("no such", "no"))
        return BadArgumentsError(f"The query is wrong: {said[:300]}.", hint="Write it in the SQL of SQLite.")

    # ---- what went in

    def _sources(
        self, statement: Statement, columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...], most: int
    ) -> tuple[tuple[Source, ...], ...]:
        """For each row of a result, the rows that went into it; nothing where asking for them changes the result."""
        width = len(columns)
        _, traced, _ = self._run(statement.traced(width, _GATHER), most)
        if not _same(rows, [row[:width] for row in traced]):
            return ()
        by_name = {one.name: one for one in self._wanted}
        named = [by_name.get(name.casefold()) for _, name in statement.tables]
        if any(one is None for one in named):
            return ()
        found: list[tuple[Source, ...]] = []
        for row in traced:
            each: dict[str, tuple[Named, list[tuple[int, int]]]] = {}
            left_out: dict[str, int] = {}
            for one, given in zip(named, row[width:], strict=True):
                if one is not None:
                    more, runs = _runs(given)
                    left_out[one.name] = left_out.get(one.name, 0) + more
                    each.setdefault(one.name, (one, []))[1].extend(runs)
            found.append(
                tuple(self._source(one, joined(there), left_out[one.name]) for one, there in each.values() if there)
            )
        return tuple(found)

    def _source(self, named: Named, runs: Runs, left_out: int) -> Source:
        table = f"d{self._places[named.path]}.t{named.table.number}"
        among = " OR ".join(f"_row BETWEEN {first} AND {last}" for first, last in runs[:_SHOWN])
        rows = self._db.execute(
            f"SELECT _row, _page, _text, _total, _place FROM {table} "  # noqa: S608 - a name of our own
            f"WHERE {among} ORDER BY _row LIMIT {_SHOWN}"
        )
        used = self._used(named)
        cells = [int(one.key[1:]) for one in named.table.columns if one.name in used]
        found = tuple(
            SourceRow(number, page, text, bool(total), places_of(json.loads(place), cells) if place else ())
            for number, page, text, total, place in rows
        )
        totals: list[int] = []
        if named.table.totals and len(found) > 1:
            every = self._db.execute(f"SELECT _row FROM {table} WHERE _total ORDER BY _row LIMIT 1000")  # noqa: S608
            totals = [row for (row,) in every if has(runs, row)]
        count = sum(last - first + 1 for first, last in runs)
        return Source(named, runs, found, tuple(totals) if len(totals) < count else (), left_out)


def _place(named: Named) -> tuple[str, str, int | None, str]:
    return named.name, named.document, named.table.page, named.table.title


def _runs(given: object) -> tuple[int, list[tuple[int, int]]]:
    """How many rows are not among the runs, and the runs."""
    if isinstance(given, int):
        return 0, [(given, given)]
    if not isinstance(given, str):
        return 0, []
    left_out, runs = json.loads(given)
    return left_out, [(first, last) for first, last in runs]


def _same(rows: Sequence[tuple[Any, ...]], traced: Sequence[tuple[Any, ...]]) -> bool:
    return list(map(repr, rows)) == list(map(repr, traced))
