"""Statements of which many are made, sent with as little work for each as the database allows.

What SQLAlchemy and its driver do for one takes PostgreSQL's time for it several times over, and waits for each answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from sqlalchemy.exc import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Connection, Executable

LINE: Final = "line"
"""By what the way to the server is found in `Connection.info`, where it takes several statements at a time."""


class Line(Protocol):
    """The way to a server that takes several statements at a time."""

    def send(
        self, statement: Executable, values: Mapping[str, Any], refused: Callable[[], Exception] | None = None
    ) -> None:
        """Send it with the next ones, as `send` says."""
        ...

    def rows(self, statement: Executable, values: Mapping[str, Any]) -> Sequence[Any]:
        """Send it with what waits, and give its rows."""
        ...

    def flush(self) -> None:
        """Send what waits. Raises as the statements do."""
        ...


def send(
    connection: Connection,
    statement: Executable,
    *values: Mapping[str, Any],
    refused: Callable[[], Exception] | None = None,
) -> None:
    """Run a statement that gives nothing, once for each of some values, inside a transaction.

    It may wait for what comes after it, at the latest for the end of the transaction, and its error is raised there.

    Args:
        statement: One that lives as long as the program.
        refused: Makes the error to raise where a rule of the tables forbids it.
    """
    line: Line | None = connection.info.get(LINE)
    if line is not None:
        for one in values:
            line.send(statement, one, refused)
        return
    try:
        if values:
            connection.execute(statement, values[0] if len(values) == 1 else values)
    except IntegrityError as error:
        if refused is None:
            raise
        raise refused() from error


def rows_of(connection: Connection, statement: Executable, values: Mapping[str, Any]) -> Sequence[Any]:
    """The rows that a statement gives, inside a transaction; each has its columns by their names.

    Args:
        statement: One that lives as long as the program.
    """
    line: Line | None = connection.info.get(LINE)
    return line.rows(statement, values) if line is not None else connection.execute(statement, values).all()


def first_of(connection: Connection, statement: Executable, values: Mapping[str, Any]) -> Any:
    """The first of these rows; `None` where there is none."""
    return next(iter(rows_of(connection, statement, values)), None)
