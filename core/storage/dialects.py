"""What SQLite and PostgreSQL say in different ways, as expressions that hold for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import ColumnElement, Float, Integer, func
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table


def upsert(table: Table) -> Insert:
    """An insertion that may go on with `on_conflict_do_nothing` or `on_conflict_do_update`.

    The clause is PostgreSQL's, which SQLite took over: each of the two dialects writes it in its own way.
    """
    return Insert(table)


def begins(column: ColumnElement[str], beginning: str) -> ColumnElement[bool]:
    """Whether a text begins so, to the letter: for `LIKE`, capitals are small letters in one database alone."""
    return func.substr(column, 1, len(beginning)) == beginning


CHANNEL: Final = "parlour_runs"


def notify(connection: Connection, what: Literal["queued", "asked", "document"]) -> None:
    """Tell all processes on the database that there is something to be taken up, once the transaction is stored.

    With SQLite nobody is told: each looks.

    Args:
        what: A run that nobody writes yet, something that is asked of a run, or a document that nobody reads yet.
    """
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(f"NOTIFY {CHANNEL}, '{what}'")


class octets(GenericFunction[int]):  # noqa: N801 - a function of SQL
    """How many bytes the text of a column takes."""

    type = Integer()
    inherit_cache = True


@compiles(octets)
def _octets(element: octets, compiler: Any, **more: Any) -> str:
    return f"octet_length(CAST({compiler.process(element.clauses, **more)} AS TEXT))"


@compiles(octets, "sqlite")
def _octets_of_sqlite(element: octets, compiler: Any, **more: Any) -> str:
    return f"length(CAST({compiler.process(element.clauses, **more)} AS BLOB))"


class clock(GenericFunction[float]):  # noqa: N801 - a function of SQL
    """What time it is where the rows are, in Unix seconds: the same for all processes, whatever their clocks say."""

    type = Float()
    inherit_cache = True


@compiles(clock)
def _clock(element: clock, compiler: Any, **more: Any) -> str:
    del element, compiler, more
    return "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"


@compiles(clock, "sqlite")
def _clock_of_sqlite(element: clock, compiler: Any, **more: Any) -> str:
    del element, compiler, more
    return "((julianday('now') - 2440587.5) * 86400.0)"
