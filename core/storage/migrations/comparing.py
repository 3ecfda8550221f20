"""Whether a database still holds all that it held before its steps: counted, and row by row."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence

_NOT_COMPARED: Final = frozenset({"alembic_version"})
_MADE_ANEW: Final = "message_index"
"""The tables of an index begin so: what is in them can be made from the others, and damage there is no loss."""
_SIZE = 16  # bytes of a row's print: 2^128 prints, so two rows never share one


@dataclass(frozen=True, slots=True)
class TablePrint:
    """What a table holds: its columns, how many rows, and a print of their content that no order changes."""

    columns: tuple[str, ...]
    rows: int
    content: int


def tables_of(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """The columns of each table. Raises sqlite3.Error."""
    every = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    names = [one for one in connection.execute(every).fetchall() if not str(one[0]).startswith(_MADE_ANEW)]
    found = {
        str(name): tuple(str(row[1]) for row in connection.execute(f"PRAGMA table_info({name})")) for (name,) in names
    }
    return {name: columns for name, columns in found.items() if name not in _NOT_COMPARED}


def wrong_with(connection: sqlite3.Connection, check: str) -> str:
    """What SQLite finds wrong with a database, in its own words; "" where nothing is, or only what can be made anew.

    Args:
        connection: To the database.
        check: `quick_check` or `integrity_check`.

    Raises:
        sqlite3.Error: It cannot be read.
    """
    found = (str(line) for (said,) in connection.execute(f"PRAGMA {check}(20)") for line in str(said).splitlines())
    wrong = (line for line in found if line != "ok" and not line.startswith("***"))
    return next((line for line in wrong if f"main.{_MADE_ANEW}" not in line), "")


def prints_of(connection: sqlite3.Connection, tables: Mapping[str, Sequence[str]]) -> dict[str, TablePrint]:
    """A print of these columns of each of these tables. Raises sqlite3.Error."""
    return {name: _print_of(connection, name, columns) for name, columns in tables.items()}


def differences(before: sqlite3.Connection, after: sqlite3.Connection, on_purpose: Collection[str] = ()) -> list[str]:
    """What is no longer as it was, in words for a log; empty where everything is.

    Args:
        before: The database before its steps.
        after: The same after them; what is new there does not count.
        on_purpose: What the steps change: `table`, or `table.column`.

    Raises:
        sqlite3.Error: One of the two cannot be read.
    """
    old, new = tables_of(before), tables_of(after)
    wanted = {name: columns for name, columns in old.items() if name not in on_purpose}
    lost = [f"the table {name} is gone" for name in wanted if name not in new]
    both: dict[str, tuple[str, ...]] = {}
    for name, columns in wanted.items():
        if name not in new:
            continue
        compared = tuple(one for one in columns if f"{name}.{one}" not in on_purpose)
        lost += [f"the column {name}.{one} is gone" for one in compared if one not in new[name]]
        both[name] = tuple(one for one in compared if one in new[name])
    first, second = prints_of(before, both), prints_of(after, both)
    for name, was in first.items():
        now = second[name]
        if was.rows != now.rows:
            lost.append(f"the table {name} had {was.rows} rows and has {now.rows}")
        elif was.content != now.content:
            lost.append(f"rows of the table {name} differ")
    return lost


def _print_of(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> TablePrint:
    named = ", ".join(f'"{column}"' for column in columns) or "NULL"
    rows = content = 0
    for row in connection.execute(f'SELECT {named} FROM "{table}"'):  # noqa: S608 - names from the schema
        rows += 1
        digest = hashlib.blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()
        content = (content + int.from_bytes(digest, "big")) % (1 << 8 * _SIZE)
    return TablePrint(tuple(columns), rows, content)
