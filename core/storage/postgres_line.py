"""Several statements at a time, to a PostgreSQL server: prepared there once, and answered together."""

from __future__ import annotations

from collections import namedtuple
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.waiting import Ready, Wait
from sqlalchemy import Insert, SelectBase
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.exc import StatementError

from core.storage.postgres_engine import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn, PGresult
    from sqlalchemy import Executable

_DIALECT: Final = PGDialect(paramstyle="numeric_dollar", json_serializer=to_json)
_FINE: Final = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK})
_FORBIDDEN: Final = "23"  # how the codes begin that say so
_NUMBERS: Final = count()


@dataclass(frozen=True, slots=True)
class _Value:
    """One value that a statement asks for."""

    key: str
    usual: Any
    processed: Callable[[Any], Any] | None


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    """A statement as the server gets it."""

    name: bytes
    said: bytes
    values: Sequence[_Value]
    row: Callable[[Sequence[Any]], Any]

    def given(self, values: Mapping[str, Any]) -> list[bytes | None]:
        """The values in its order. Raises StatementError where one is no JSON."""
        try:
            return [
                _encoded(given if one.processed is None else one.processed(given))
                for one in self.values
                for given in (values.get(one.key, one.usual),)
            ]
        except (TypeError, RecursionError) as error:
            raise StatementError(str(error), None, None, error) from error


@dataclass(frozen=True, slots=True)
class _Waiting:
    made: _Made
    values: list[bytes | None]
    refused: Callable[[], Exception] | None


_MADE: Final = dict[tuple[int, frozenset[str]], tuple["Executable", _Made]]()
"""By the statement, which is kept so that no other one gets its number, and what it is given."""


class PostgresLine:
    """The way to the server of one connection, as `Line` in `database.py` says; it is inside a transaction already."""

    def __init__(self, plain: psycopg.Connection[Any]) -> None:
        self._plain = plain
        self._known: set[bytes] = set()
        self._waiting: list[_Waiting] = []

    def send(
        self, statement: Executable, values: Mapping[str, Any], refused: Callable[[], Exception] | None = None
    ) -> None:
        """As of `Line`."""
        made = _made(statement, values)
        self._waiting.append(_Waiting(made, made.given(values), refused))

    def rows(self, statement: Executable, values: Mapping[str, Any]) -> Sequence[Any]:
        """As of `Line`."""
        made = _made(statement, values)
        self._waiting.append(_Waiting(made, made.given(values), None))
        result = self._exchanged()[-1]
        loading = Transformer(self._plain)
        loading.set_pgresult(result)
        return loading.load_rows(0, result.ntuples, made.row)

    def flush(self) -> None:
        """As of `Line`."""
        if self._waiting:
            self._exchanged()

    def forget(self) -> None:
        """Send nothing of what waits: its transaction is over."""
        self._waiting.clear()

    def _exchanged(self) -> list[PGresult]:
        """What the server says to all that waits. Raises psycopg.Error, or what a statement names for it."""
        sent, self._waiting = self._waiting, []
        pg, fresh = self._plain.pgconn, dict[bytes, bytes]()
        for one in sent:
            if one.made.name not in self._known:
                fresh[one.made.name] = one.made.said
        pg.enter_pipeline_mode()
        try:
            for name, said in fresh.items():
                pg.send_prepare(name, said)
            for one in sent:
                pg.send_query_prepared(one.made.name, one.values)
            pg.pipeline_sync()
            answers: list[PGresult] = self._plain.wait(_answers(pg, len(fresh) + len(sent)))
        finally:
            with suppress(psycopg.Error):  # the connection is lost
                pg.exit_pipeline_mode()
        learned, answered = answers[: len(fresh)], answers[len(fresh) :]
        self._known.update(name for name, answer in zip(fresh, learned, strict=True) if answer.status in _FINE)
        for answer, one in zip(answers, [*(None for _ in fresh), *sent], strict=True):
            if answer.status not in _FINE:
                raise _error(answer, one)
        return answered


def _answers(pg: PGconn, wanted: int) -> PQGen[list[PGresult]]:
    """The answers to so many commands. Raises psycopg.OperationalError where the connection is lost."""
    while pg.flush():
        ready = yield Wait.RW
        if ready & Ready.R:
            pg.consume_input()
    answers: list[PGresult] = []
    for _ in range(wanted):
        answer = yield from _next(pg)
        if answer is None or pg.status != ConnStatus.OK:
            raise psycopg.OperationalError("the connection is closed")
        answers.append(answer)
        yield from _next(pg)  # nothing: the end of what is said to this command
    yield from _next(pg)  # the end of all
    return answers


def _next(pg: PGconn) -> PQGen[PGresult | None]:
    while pg.is_busy():
        yield Wait.R
        pg.consume_input()
    return pg.get_result()


def _error(answer: PGresult, waiting: _Waiting | None) -> Exception:
    error = psycopg.errors.error_from_result(answer)
    if waiting is None or waiting.refused is None or not (error.sqlstate or "").startswith(_FORBIDDEN):
        return error
    refused = waiting.refused()
    refused.__cause__ = error
    return refused


def _made(statement: Executable, values: Mapping[str, Any]) -> _Made:
    key = id(statement), frozenset(values)
    known = _MADE.get(key)
    if known is None:
        known = _MADE[key] = statement, _compiled(statement, [*values])
    return known[1]


def _compiled(statement: Any, keys: list[str]) -> _Made:
    plain = statement.inline() if isinstance(statement, Insert) else statement  # so that it gives nothing back
    compiled = plain.compile(dialect=_DIALECT, column_keys=keys)
    if compiled.insert_prefetch or compiled.update_prefetch:
        raise TypeError("A column has a value of which only SQLAlchemy knows.")
    binds = [compiled.binds[name] for name in compiled.positiontup or ()]
    if missing := [one.key for one in binds if one.required and one.key not in keys]:
        raise TypeError(f"The statement needs a value for {missing[0]}.")  # else the server would be sent NULL
    values = [
        _Value(one.key, one.effective_value, one.type.dialect_impl(_DIALECT).bind_processor(_DIALECT)) for one in binds
    ]
    names = statement.selected_columns.keys() if isinstance(statement, SelectBase) else ()
    row = namedtuple("Row", names, rename=True) if names else None  # pyright: ignore[reportUntypedNamedTuple]
    return _Made(b"parlour_%d" % next(_NUMBERS), str(compiled).encode(), values, row._make if row else tuple)


def _encoded(value: Any) -> bytes | None:
    """A value as text, as the server reads it; without NUL, which it cannot hold."""
    if value is None:
        return None
    if isinstance(value, str):
        return (value.replace("\0", "") if "\0" in value else value).encode()
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, int | float):
        return repr(value).encode()
    if isinstance(value, list):
        return _encoded_list(cast("list[str]", value))
    raise TypeError(f"A value of the kind {type(value).__name__} cannot be stored.")


def _encoded_list(texts: Sequence[str]) -> bytes:
    """Texts as an array."""
    said = (one.replace("\0", "").replace("\\", r"\\").replace('"', r"\"") for one in texts)
    return "{{{}}}".format(",".join([f'"{one}"' for one in said])).encode()
