"""Connections to the PostgreSQL server that holds passages."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from core.errors import NoSpaceError, StorageError
from core.storage.postgres_engine import conninfo_of
from core.storage.postgres_errors import met_at_work, sqlstate
from core.storage.shelf_tables import HERE, vector_statements

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

_log = logging.getLogger(__name__)

Db = psycopg.Connection[tuple[Any, ...]]
_MOST = 16  # connections of one process
_MOST_LOCKS = 64  # documents that one process reads at the same time
_WAIT = 30.0  # seconds for a connection, or for another process to finish writing
_FULL = "53100"
_NEVER = frozenset({"42501", "0A000", "58P01"})  # no right to make the extension, or files of it are missing
# In an index of vectors twice as many are looked at as are asked for; more where documents are chosen.
_GRAPHS = "SET hnsw.ef_search = 400; SET hnsw.iterative_scan = relaxed_order"
EXTENSION = "vector"
_NO_VECTORS = "The database has no pgvector, so libraries are searched by words only: install it, and start again."


class Connections:
    """The connections of one process; made when the first is needed.

    Args:
        address: As `PARLOUR_DATABASE` has it.
        reader: What those are called that hold documents.
    """

    def __init__(self, address: str, reader: str = "") -> None:
        self._guard = threading.Lock()
        self._has_vectors: bool | None = None
        self._try_at = 0.0
        # Locks are held while others write: out of the same pool they could use up what they wait for.
        how = conninfo_of(address)
        self._pool, self._locks = _pool(how, _MOST), _pool(how, _MOST_LOCKS, reader)

    @contextmanager
    def reading(self) -> Generator[Db]:
        """A connection on which each statement sees what is so at its beginning. Raises StorageError."""
        with _translated(), self._pool.connection() as db:
            yield db

    @contextmanager
    def writing(self) -> Generator[Db]:
        """A connection in a transaction: all of it lands, or nothing.

        Raises:
            NoSpaceError: The server's disk is full.
            StorageError: It cannot be written.
        """
        with _translated(), self._pool.connection() as db, db.transaction():
            yield db

    def has_vectors(self) -> bool:
        """Whether the server compares vectors; what that needs is made where it is missing. Raises StorageError."""
        with self._guard:
            if self._has_vectors is None and time.monotonic() >= self._try_at:
                self._has_vectors = self._prepared()
                self._try_at = time.monotonic() + _WAIT
                if self._has_vectors is False:
                    _log.warning(_NO_VECTORS)
            return bool(self._has_vectors)

    def _prepared(self) -> bool | None:
        """Whether there are vectors; `None` where that is not known at this moment, and is looked for again."""
        asked = "SELECT to_regclass('passage_vectors') IS NOT NULL"
        with self.reading() as db:
            if one(db, asked)[0]:
                return True
            if not one(db, "SELECT count(*) FROM pg_available_extensions WHERE name = %s", [EXTENSION])[0]:
                return False
        try:
            with self._pool.connection() as db, db.transaction():
                db.execute("SELECT pg_advisory_xact_lock(%s)", [number_of("passage_vectors")])
                if not one(db, asked)[0]:  # else another process was faster
                    (parts,) = one(db, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'passages'::regclass")
                    for statement in vector_statements(parts):
                        db.execute(statement.encode())
        except (psycopg.Error, PoolTimeout) as error:
            _log.warning("pgvector cannot be used: %s", _said(error))
            return False if sqlstate(error) in _NEVER else None
        return True

    def lock(self, key: int) -> Db | None:
        """A connection that holds a lock of the server, until `unlock`; `None` where another has it."""
        with _translated():
            db = self._locks.getconn()
            is_ours = False
            try:
                is_ours = bool(one(db, "SELECT pg_try_advisory_lock(%s)", [key])[0])
            finally:
                if not is_ours:
                    self._locks.putconn(db)
            return db if is_ours else None

    def unlock(self, db: Db, key: int) -> None:
        """Release a lock; the server does so by itself where the connection broke."""
        try:
            db.execute("SELECT pg_advisory_unlock(%s)", [key])
        except psycopg.Error:
            db.close()
        self._locks.putconn(db)

    def close(self) -> None:
        """Close all of them; those in use close after use."""
        self._pool.close()
        self._locks.close()


def _pool(how: str, most: int, name: str = "") -> ConnectionPool[Db]:
    return ConnectionPool(
        how,
        min_size=0,
        max_size=most,
        timeout=_WAIT,
        open=True,
        configure=_configured,
        check=ConnectionPool.check_connection,
        kwargs={"autocommit": True, "application_name": name or "parlour-shelf"},
        name="shelf",
    )


def _configured(db: Db) -> None:
    db.prepare_threshold = None  # each search is planned for the owner's own part of the tables
    settings = f"SET jit = off; SET work_mem = '16MB'; SET lock_timeout = '{_WAIT:.0f}s'"
    db.execute(f"{HERE}; {settings}; SET max_parallel_workers_per_gather = 2; {_GRAPHS}".encode())


def one(db: Db, query: LiteralString, values: Sequence[Any] | Mapping[str, Any] = ()) -> tuple[Any, ...]:
    """The first row of what a query gives; it has one."""
    row = db.execute(query, values).fetchone()
    if row is None:
        raise StorageError("The library cannot be used: a row is missing in the database.")
    return row


def number_of(*parts: object) -> int:
    """A number of 64 bits that stands for some texts and numbers."""
    told = "\0".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(told, digest_size=8).digest(), "big", signed=True)


@contextmanager
def _translated() -> Generator[None]:
    """Raise the driver's errors as ours."""
    try:
        yield
    except PoolTimeout as error:
        hint = "Try again in a moment. If it goes on, start the database, or let it take more connections."
        text = "The database of the libraries cannot be reached, or has no connection left."
        raise StorageError(text, hint=hint, key="storage_gone") from error
    except psycopg.Error as error:
        if error.sqlstate == _FULL:
            hint = "Free some space there and try again."
            raise NoSpaceError("The database has no space left: the document was not kept.", hint=hint) from error
        raise met_at_work(error, "the database of the libraries") from error


def _said(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "").rstrip(".") or type(error).__name__
