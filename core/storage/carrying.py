"""Carries all rows of an embedded installation over into a PostgreSQL database, and compares the two."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg
from sqlalchemy import case, create_engine, func, insert, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from core.errors import ConflictError, StorageError
from core.storage import data_folder
from core.storage.message_texts import words_in
from core.storage.migrations import postgres, upgrade
from core.storage.migrations.updating import PATIENCE, alone_with
from core.storage.notes import GENERATION, MOVE, SECRET, forget_notes, keep_note, note_of, print_of, unfinished
from core.storage.postgres_engine import engine_of, finite, named, to_json
from core.storage.postgres_errors import translated
from core.storage.tables import Searched, message_agent_thoughts, message_texts, messages, metadata, without_halves

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from pathlib import Path

    from sqlalchemy import Connection, Row, Table

_AT_ONCE: Final = 500  # rows
_SIZE: Final = 16  # bytes of a row's print
_LOCK: Final = 7_265_700_175_711_218


@dataclass(frozen=True, slots=True)
class _Print:
    """What a table holds: how many rows, and a print of their content that no order changes."""

    rows: int = 0
    content: int = 0

    def with_row(self, values: Mapping[str, Any]) -> _Print:
        said = json.dumps([values[name] for name in sorted(values)], separators=(",", ":")).encode()
        number = int.from_bytes(hashlib.blake2b(said, digest_size=_SIZE).digest())
        return _Print(self.rows + 1, (self.content + number) % (1 << 8 * _SIZE))

    def __str__(self) -> str:
        return f"{self.rows}:{self.content:x}"


def carry(path: Path, address: str, secret: str, told: Callable[[str, int], None]) -> int:
    """Carry all rows over, table by table; cut short, the next call goes on after the last table that is whole.

    Args:
        path: The database of the data folder; no Parlour may run on it. It stays as it is.
        address: Of a database in which nothing is, or what this installation has carried so far.
        secret: The installation's, which all its Parlours have to have from then on.
        told: Gets each table and how many rows it has, once they are there and were held against the old ones.

    Returns:
        How many rows there are.

    Raises:
        ConflictError: key `storage_in_use`: a Parlour runs on the data folder; `move_running`: another move goes on;
            `move_not_empty`: the target holds something else.
        SettingsError: The address is wrong, or nobody is let in by it.
        StorageError: One of the two failed; key `move_differs`: what arrived is not what was sent.
    """
    name = named(address)
    upgrade.bring_up_to_date(path)
    postgres.bring_up_to_date(address)
    engine = engine_of(address, 1)
    try:
        with _snapshot(path) as source, engine.connect() as target:
            return _Carrying(source, target, name, print_of(secret)).carry(told)
    except (DBAPIError, psycopg.Error) as error:
        if isinstance(getattr(error, "orig", None), sqlite3.Error):
            raise data_folder.translated(error, path) from error  # pyright: ignore[reportArgumentType]
        raise translated(error, name) from error
    except (sqlite3.Error, OSError) as error:
        raise data_folder.translated(error, path) from error
    finally:
        engine.dispose()


def copy_grown(address: str, target: Path) -> None:
    """All rows of a PostgreSQL database, as they are at one moment, in a new database file; Parlours may run on it.

    Args:
        address: Of the database.
        target: The file, which is made anew.

    Raises:
        ConflictError: key `move_unfinished`: not all that is carried there has arrived.
        SettingsError: The address is wrong, or nobody is let in by it.
        StorageError: One of the two failed.
    """
    name = named(address)
    postgres.bring_up_to_date(address)
    target.unlink(missing_ok=True)
    upgrade.bring_up_to_date(target)
    engine, file = (
        engine_of(address, 1),
        create_engine(f"sqlite:///{target}", poolclass=StaticPool, json_serializer=to_json, hide_parameters=True),
    )
    try:
        with engine.connect() as source, file.begin() as copy:
            source.execute(text("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            if note_of(source, MOVE) is not None:
                raise unfinished(name)
            for table in metadata.sorted_tables:
                order = [table.c.message_id, table.c.position] if table is message_agent_thoughts else table.primary_key
                rows = source.execute(select(table).order_by(*order), execution_options={"yield_per": _AT_ONCE})
                for some in rows.partitions():
                    copy.execute(insert(table), [dict(zip(table.c.keys(), row, strict=True)) for row in some])
            source.execute(text("COMMIT"))
        with file.connect() as closing_:
            closing_.exec_driver_sql("PRAGMA journal_mode=DELETE")
    except (DBAPIError, psycopg.Error) as error:
        if isinstance(getattr(error, "orig", None), sqlite3.Error):
            raise data_folder.translated(error, target) from error  # pyright: ignore[reportArgumentType]
        raise translated(error, name) from error
    finally:
        engine.dispose()
        file.dispose()


@contextmanager
def _snapshot(path: Path) -> Generator[Connection]:
    """All rows as they are now, while no Parlour has them open."""
    with alone_with(path, PATIENCE) as live:
        engine = create_engine("sqlite://", creator=lambda: live, poolclass=StaticPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            yield connection


class _Carrying:
    """One move, from a snapshot to a connection in autocommit."""

    def __init__(self, source: Connection, target: Connection, name: str, mine: str) -> None:
        self._source, self._target, self._name, self._mine = source, target, name, mine
        self._tables = metadata.sorted_tables

    def carry(self, told: Callable[[str, int], None]) -> int:
        self._begin()
        if not self._goes_on():
            self._empty()
        total = 0
        for table in self._tables:
            there = note_of(self._target, _note(table))
            total += (rows := int(there.partition(":")[0]) if there else self._table(table))
            told(table.name, rows)
        self._target.execute(text("BEGIN"))
        for table in (message_texts, metadata.tables["audit"]):
            newest = f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), max(id)) FROM {table.name}"  # noqa: S608
            self._target.execute(text(newest))
        opened = self._source.exec_driver_sql("PRAGMA user_version").scalar_one()
        keep_note(self._target, GENERATION, str(opened))  # as it is noted in the data folder, which may be used on
        forget_notes(self._target, MOVE)
        self._target.execute(text("COMMIT"))
        return total

    def _begin(self) -> None:
        """Take the target, where it is empty or ours."""
        if not self._target.execute(text(f"SELECT pg_try_advisory_lock({_LOCK})")).scalar_one():
            sentence = f"Another move into {self._name} goes on."
            raise ConflictError(sentence, hint="Wait for its end.", key="move_running", place=self._name)
        if note_of(self._target, MOVE) == self._mine:
            return
        holds = any(self._target.execute(select(func.count()).select_from(one)).scalar_one() for one in self._tables)
        if holds or note_of(self._target, SECRET) not in {None, self._mine}:
            sentence = f"There is something in {self._name} already, and this move did not bring it."
            hint = "Name a database in which nothing is; nothing was changed."
            raise ConflictError(sentence, hint=hint, key="move_not_empty", place=self._name)
        self._target.execute(text("BEGIN"))
        keep_note(self._target, MOVE, self._mine)
        keep_note(self._target, SECRET, self._mine)
        self._target.execute(text("COMMIT"))

    def _goes_on(self) -> bool:
        """Whether what was carried before is still what there is."""
        for table in self._tables:
            there = note_of(self._target, _note(table))
            if there is not None and there != str(_of(self._rows(table))):
                return False
        return True

    def _empty(self) -> None:
        """Begin anew: the data folder has changed since."""
        self._target.execute(text("BEGIN"))
        self._target.execute(text("TRUNCATE " + ", ".join(f'"{one.name}"' for one in self._tables)))
        forget_notes(self._target, f"{MOVE}:")
        self._target.execute(text("COMMIT"))

    def _table(self, table: Table) -> int:
        """Carry a table, as one transaction; how many rows it has."""
        sent = _Print()
        batch: list[dict[str, Any]] = []
        self._target.execute(text("BEGIN"))
        try:
            for row in self._rows(table):
                sent = sent.with_row(row)
                batch.append(row)
                if len(batch) == _AT_ONCE:
                    self._target.execute(insert(table), batch)
                    batch = []
            if batch:
                self._target.execute(insert(table), batch)
            there = self._target.execute(select(table), execution_options={"yield_per": _AT_ONCE})
            arrived = _of(_sent(table, row) for row in there)
            if arrived != sent:
                sentence = f"What arrived in the table {table.name} of {self._name} is not what was sent."
                raise StorageError(sentence, hint="Report this.", key="move_differs", table=table.name)
            keep_note(self._target, _note(table), str(sent))
            self._target.execute(text("COMMIT"))
        except BaseException:
            if not self._target.invalidated:
                self._target.execute(text("ROLLBACK"))
            raise
        return sent.rows

    def _rows(self, table: Table) -> Iterator[dict[str, Any]]:
        """The rows of the snapshot, those that others point to first."""
        if table is messages:
            for some in _chunks(_parents_first(self._source)):
                for row in self._source.execute(select(messages).where(messages.c.id.in_(some)).order_by(_place(some))):
                    yield _sent(table, row)
            return
        order = [table.c.message_id, table.c.position] if table is message_agent_thoughts else table.primary_key
        for row in self._source.execute(select(table).order_by(*order)):
            yield _sent(table, row)


def _sent(table: Table, row: Row[Any]) -> dict[str, Any]:
    """A row as PostgreSQL can hold it."""
    values: dict[str, Any] = {column.name: value for column, value in zip(table.c, row, strict=True)}
    for column in table.c:
        value = values[column.name]
        if isinstance(value, str):
            values[column.name] = value.replace("\0", "")
        elif isinstance(column.type, Searched):
            values[column.name] = finite(without_halves(value))
        elif isinstance(value, dict | list | float):
            values[column.name] = finite(value)
    if table is message_texts:  # of an older Parlour, with what is between the words
        values |= {name: " ".join(words_in(values[name])) for name in ("title", "words")}
    return values


def _of(rows: Iterator[dict[str, Any]]) -> _Print:
    found = _Print()
    for row in rows:
        found = found.with_row(row)
    return found


def _parents_first(source: Connection) -> list[str]:
    """The ids of all messages, each after the one that it answers."""
    answers: dict[str | None, list[str]] = defaultdict(list)
    for id_, parent in source.execute(select(messages.c.id, messages.c.parent_id).order_by(messages.c.id)):
        answers[parent].append(id_)
    ordered = answers.pop(None, [])
    for one in ordered:  # which grows meanwhile
        ordered += answers.pop(one, ())
    return ordered + [one for some in answers.values() for one in some]  # what they answer is gone: that is told


def _chunks(ids: list[str]) -> Iterator[list[str]]:
    return (ids[at : at + _AT_ONCE] for at in range(0, len(ids), _AT_ONCE))


def _place(some: list[str]) -> Any:
    return case({one: number for number, one in enumerate(some)}, value=messages.c.id)


def _note(table: Table) -> str:
    return f"{MOVE}:{table.name}"
