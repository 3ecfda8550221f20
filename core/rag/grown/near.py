"""The index of vectors of a large library in PostgreSQL: pgvector's HNSW, over those of that library alone."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import sql

from core.errors import StorageError
from core.rag.grown.connections import number_of, one
from core.storage.shelf_tables import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Generator

    from core.rag.grown.connections import Connections, Db

_log = logging.getLogger(__name__)

LEAST: Final = 20_000
"""Vectors from which on they are not all compared: to compare as many takes some 15 ms."""
_LARGEST: Final = 4_000  # numbers of a vector that pgvector takes into such an index
_LOOKED_AGAIN: Final = 30.0  # seconds after which it is looked for again
_NEXT_TURN: Final = 1.0  # seconds until who waits for another build looks again
_NOTICED: Final = 0.2  # seconds until a build ends that is to stop
_AN_ENTRY: Final = 1_000  # bytes of memory for a vector, beside its numbers: its neighbours above all
_MOST_MEMORY: Final = 3_000_000  # kB; what does not fit is built from the disk, and takes ten times as long
_STATE: Final = f"""
SELECT i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relname = %s"""  # noqa: S608 - our own name
_PART: Final = """
SELECT tableoid::regclass::text, vector_dims(vec) FROM passage_vectors
WHERE owner = %(owner)s AND shelf = %(shelf)s AND model = %(model)s LIMIT 1"""
_LEFT: Final = f"""
SELECT relname FROM pg_class
WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'i' AND starts_with(relname, 'near_') AND NOT EXISTS (
    SELECT 1 FROM shelves
    WHERE id = CASE WHEN relname ~ '^near_[0-9]+_' THEN split_part(relname, '_', 2)::bigint END)"""  # noqa: S608 - same
_ONE_AT_A_TIME: Final = number_of("near")
"""The lock of who makes or drops indexes: two at the same time wait for each other, and need twice the memory."""


class PgGraph:
    """The `Graph` of one model in one library; made beside all that goes on, and used once it is whole.

    Args:
        given: `owner`, `shelf` and `model` of the vectors.
    """

    def __init__(self, server: Connections, given: dict[str, Any]) -> None:
        self._server, self._given = server, given
        self.name = f"near_{given['shelf']}_{number_of(given['model']) & 0xFFFF_FFFF:08x}"
        self._is_there, self._look_at = False, 0.0

    def is_there(self) -> bool:
        """Whether it can be asked; looked up every half a minute. Raises StorageError."""
        if time.monotonic() >= self._look_at:
            with self._server.reading() as db:
                self._is_there = bool(self._state(db))
            self._look_at = time.monotonic() + _LOOKED_AGAIN
        return self._is_there

    def is_wanted(self) -> bool:
        """As of `Graph`."""
        with self._server.reading() as db:
            return self._passages(db) >= LEAST or self._state(db) is not None

    def fill(self, stop: threading.Event) -> bool:
        """Make it where it is missing, or drop it where the library has become small; whether it is as it should be.

        New vectors go into it by themselves. One index of the database is made at a time.
        """
        while (db := self._server.lock(_ONE_AT_A_TIME)) is None:
            if stop.wait(_NEXT_TURN):
                return False
        try:
            with self._patient(db, stop):
                made = self._made(db)
                _drop_left(db)
                return made
        except psycopg.errors.QueryCanceled:
            return False
        except psycopg.Error as error:
            raise StorageError(f"The vectors of a large library have no index yet: {error}") from error
        finally:
            self._look_at = 0.0
            self._server.unlock(db, _ONE_AT_A_TIME)

    def _made(self, db: Db) -> bool:
        is_valid, passages = self._state(db), self._passages(db)
        if passages < LEAST // 2 or is_valid is False:  # half of one is what a killed process has left
            if is_valid is not None:
                db.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.name}".encode())
            is_valid = None
        found = db.execute(_PART, self._given).fetchone()
        if is_valid or found is None or passages < LEAST:
            return True
        part, size = found
        if size > _LARGEST:
            return True
        kilobytes = min(_MOST_MEMORY, passages * (2 * size + _AN_ENTRY) // 1000)
        # Other processes of the server would need as much shared memory, which a container has not.
        db.execute("SET max_parallel_maintenance_workers = 0")
        db.execute(f"SET maintenance_work_mem = {max(65_536, kilobytes)}".encode())
        began = time.monotonic()
        where = f"shelf = {self._given['shelf']} AND model = {sql.quote(self._given['model'])}"
        made = f"CREATE INDEX CONCURRENTLY {self.name} ON {part} USING hnsw ((vec::halfvec({size})) halfvec_ip_ops)"
        db.execute(f"{made} WHERE {where}".encode())
        _log.info("An index of %d vectors was made in %.0f s.", passages, time.monotonic() - began)
        return True

    def _state(self, db: Db) -> bool | None:
        """Whether it is whole; `None` where there is none."""
        row = db.execute(_STATE, [self.name]).fetchone()
        return row[0] if row else None

    def _passages(self, db: Db) -> int:
        row = db.execute("SELECT passages FROM shelves WHERE id = %(shelf)s", self._given).fetchone()
        return row[0] if row else 0

    @contextmanager
    def _patient(self, db: Db, stop: threading.Event) -> Generator[None]:
        """While it is made, others' transactions are waited for; it is given up where this process ends."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(_NOTICED):
                if stop.is_set():
                    db.cancel()

        (usual,) = one(db, "SHOW lock_timeout")
        db.execute("SET lock_timeout = 0")
        watching = threading.Thread(target=watch, name="library-graph-stop", daemon=True)
        watching.start()
        try:
            yield
        finally:
            over.set()
            watching.join()
            for said in (f"SET lock_timeout = '{usual}'", "RESET maintenance_work_mem"):
                if not db.closed:
                    db.execute(said.encode())


def forget_graphs(server: Connections) -> None:
    """Drop the indexes of libraries that are gone; while another one is made, whoever makes it does so afterwards."""
    try:
        db = server.lock(_ONE_AT_A_TIME)
        if db is None:
            return
        try:
            _drop_left(db)
        finally:
            server.unlock(db, _ONE_AT_A_TIME)
    except (StorageError, psycopg.Error) as error:  # of no use to anybody, and in the way of nothing
        _log.info("The index of the vectors of a library that is gone is still there: %s", error)


def _drop_left(db: Db) -> None:
    for (name,) in db.execute(_LEFT.encode()).fetchall():
        db.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}".encode())
