"""Makes the tables of a PostgreSQL database, or brings them up to date: one process does, and others wait for it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from core.errors import ConflictError, StorageError
from core.storage.migrations.steps import HEAD, run_steps_on
from core.storage.postgres_engine import engine_of, named
from core.storage.postgres_errors import translated

if TYPE_CHECKING:
    from sqlalchemy import Connection

_LOG = logging.getLogger(__name__)
_LOCK: Final = 7_265_700_175_711_217  # any number that is ours alone
_PATIENCE: Final = 60  # seconds for another process to be done
_WAITED: Final = "55P03"
# What holds for the installation as a whole; no owner has it, and no file form knows it.
_INSTALLATION: Final = "CREATE TABLE IF NOT EXISTS installation (name text PRIMARY KEY, value text NOT NULL)"


def bring_up_to_date(address: str, patience: int = _PATIENCE) -> None:
    """Run the steps that a database has not seen yet: all of them, or none.

    Args:
        address: As `Database.open` takes it.
        patience: Seconds to wait for another process that is at it.

    Raises:
        ConflictError: key `storage_migrating`: another process was at it all the time.
        SettingsError: The address is wrong, or nobody is let in by it.
        StorageError: The database is newer than this program (key `storage_newer`), or failed.
    """
    name, engine = named(address), engine_of(address, 1)
    try:
        with engine.connect() as connection:
            if _revision(connection, name) == HEAD:
                return
            connection.execute(text(f"SET lock_timeout = '{int(patience)}s'"))
            _wait_for_turn(connection, name)
            before = _revision(connection, name)
            if before == HEAD:
                return  # another process was faster
            connection.execute(text("BEGIN"))
            run_steps_on(connection)
            connection.execute(text(_INSTALLATION))
            connection.execute(text("COMMIT"))
            _LOG.info("The tables of %s went from %s to %s.", name, before or "nothing", HEAD)
    except (DBAPIError, psycopg.Error) as error:
        raise translated(error, name) from error
    finally:
        engine.dispose()  # which ends the lock as well


def _wait_for_turn(connection: Connection, name: str) -> None:
    try:
        connection.execute(text(f"SELECT pg_advisory_lock({_LOCK})"))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", "") != _WAITED:
            raise
        sentence = f"Another Parlour is bringing {name} up to date, and is not done."
        hint = "Wait until it is, then start again."
        raise ConflictError(sentence, hint=hint, key="storage_migrating", place=name) from error


def _revision(connection: Connection, name: str) -> str | None:
    """The step that the database is at; `None` where it has no tables of ours."""
    if connection.execute(text("SELECT to_regclass('alembic_version')")).scalar() is None:
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if revision is not None and revision > HEAD:
        hint = "Start the newer Parlour, or use another database."
        sentence = f"The tables of {name} were made by a newer Parlour."
        raise StorageError(sentence, hint=hint, key="storage_newer", path=name)
    return revision
