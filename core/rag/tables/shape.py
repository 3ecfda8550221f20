"""What a table in a document looks like: its header, the names of its columns, and the rows that add up others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.rag.row_numbers import column_letters
from core.rag.tables.values import is_empty, is_figure, read_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HEADER_ROWS = 4  # that a header has at most
_LONGEST_NAME = 60
_OWN = frozenset({"_row", "_page", "_total", "rowid", "oid", "_rowid_"})
_YEARS = (1900, 2100)
_OF_ROWS = 50  # of the body, by which the columns of numbers are told
_SHARE = 0.6
_TOTAL = re.compile(
    r"\W*(?:(?:grand|sub|net|overall|running)[ -]?)?totals?\b(?:(?: (?:of|for|per|in|all)\b| ?[(:：]).{0,40})?\W*"
    r"|\W*(?:sub|zwischen|gesamt|end|teil)?summen?\b(?:(?: (?:der|aller|für|je)\b| ?[(:：]).{0,40})?\W*"
    r"|\W*(?:insgesamt|gesamt(?:betrag|ergebnis)?|total|sum|summe)\W*"
    r"|\W*(?:合计|总计|小计|总和|共计|累计|總計|合計|小計|总额|全部合计)\W*(?:[（(].{0,20}[)）])?",
    re.IGNORECASE,
)


def is_total(cells: Sequence[str]) -> bool:
    """Whether a row says of itself that it adds up others: "Total", "Zwischensumme", "合计"."""
    label = next((cell for cell in cells if not is_empty(cell)), "")
    return 0 < len(label) <= _LONGEST_NAME and _TOTAL.fullmatch(label) is not None


def header_rows(rows: Sequence[Sequence[str]]) -> int:
    """How many of the first rows are the header: 0 where figures begin at once, several where names stand in levels."""
    if len(rows) < 2:
        return len(rows)
    first = rows[0]
    columns = _columns_of_numbers(rows)
    figures = [at for at in columns if at < len(first) and _is_body_figure(first[at])]
    if columns and len(figures) * 2 > len(columns) and not _counts_up([first[at] for at in figures]):
        return 0
    count = 1
    while count < min(_HEADER_ROWS, len(rows) - 1) and _goes_below(rows[count - 1], rows[count], columns):
        count += 1
    return count


def _columns_of_numbers(rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns in which most cells of the body are figures."""
    body = rows[1 : 1 + _OF_ROWS]
    found: list[int] = []
    for at in range(max(map(len, rows[: 1 + _OF_ROWS]))):
        filled = [row[at] for row in body if at < len(row) and not is_empty(row[at])]
        if filled and sum(map(is_figure, filled)) >= _SHARE * len(filled):
            found.append(at)
    return found


def _is_body_figure(cell: str) -> bool:
    if not is_figure(cell):
        return False
    found = read_number(cell)
    is_year = isinstance(found, int) and _YEARS[0] <= found <= _YEARS[1] and len(cell.strip()) == len("2024")
    return not is_year


def _counts_up(cells: Sequence[str]) -> bool:
    """Whether a header numbers its columns: 1, 2, 3."""
    found = [read_number(cell) for cell in cells]
    return len(found) > 2 and all(isinstance(one, int) for one in found) and found == list(range(1, len(found) + 1))


def _goes_below(above: Sequence[str], row: Sequence[str], columns: Sequence[int]) -> bool:
    """Whether a row is a further level of the header above it: it names what that leaves open or spans."""
    if any(_is_body_figure(cell) for cell in row) or not columns:
        return False
    named = [cell.strip() for cell in above]
    open_ = [at for at, cell in enumerate(named) if not cell or (at and cell == named[at - 1])]
    below = [at for at, cell in enumerate(row) if not is_empty(cell)]
    return bool(set(open_) & set(below))


def column_names(header: Sequence[Sequence[str]], width: int, left: int | None) -> list[str]:
    """The names of columns, each once whatever its case; one without a name is called by its letter or number.

    Args:
        header: The rows of the header, from the top.
        width: How many columns there are.
        left: The column of the sheet in which the first stands, from 0; `None` where columns have no letters.
    """
    levels: list[list[str]] = []
    for at, row in enumerate(header):
        cells = [" ".join(row[column].split()) if column < len(row) else "" for column in range(width)]
        levels.append(_spread(cells) if at < len(header) - 1 else cells)
    names: list[str] = []
    taken: set[str] = set()
    for column in range(width):
        parts = dict.fromkeys(level[column] for level in levels if level[column])
        name = " / ".join(parts)[:_LONGEST_NAME].strip().replace('"', "'")
        if not name:
            name = f"column_{column_letters(left + column) if left is not None else column + 1}"
        names.append(_once(name, taken))
    return names


def _spread(cells: list[str]) -> list[str]:
    """An upper level of a header: a name stands over all columns up to the next."""
    last = ""
    spread: list[str] = []
    for cell in cells:
        last = cell or last
        spread.append(last)
    return spread


def _once(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found.casefold() in taken or found.casefold() in _OWN:
        number += 1
        found = f"{name}_{number}"
    taken.add(found.casefold())
    return found


def called(document: str, title: str, taken: Iterable[str]) -> str:
    """A short name for a table that needs no quotation marks, of its document's name or its own title."""
    words = re.sub(r"\W+", "_", title or document.rpartition(".")[0] or document).strip("_").casefold()[:40].strip("_")
    name = words if words and not words[0].isdigit() and words not in _RESERVED else f"t_{words}".rstrip("_")
    there, number, found = set(taken), 1, name
    while found in there:
        number += 1
        found = f"{name}_{number}"
    return found


_OF_SQL = (
    "abort action add after all alter always analyze and as asc attach autoincrement before begin between by "
    "cascade case cast check collate column commit conflict constraint create cross current current_date "
    "current_time current_timestamp database default deferrable deferred delete desc detach distinct do drop each "
    "else end escape except exclude exclusive exists explain fail filter first following for foreign from full "
    "generated glob group groups having if ignore immediate in index indexed initially inner insert instead "
    "intersect into is isnull join key last left like limit match materialized natural no not nothing notnull "
    "null nulls of offset on or order others outer over partition plan pragma preceding primary query raise range "
    "recursive references regexp reindex release rename replace restrict returning right rollback row rows "
    "savepoint select set table temp temporary then ties to transaction trigger unbounded union unique update "
    "using vacuum values view virtual when where window with without _tables"
)
_RESERVED = frozenset(_OF_SQL.split())
