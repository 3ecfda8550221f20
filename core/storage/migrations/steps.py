"""The steps themselves: run on a file, and what each of them says that it changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from core.storage.data_folder import translated

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection

# The newest step. Known here, so that opening a file that is up to date needs no Alembic.
HEAD = "0026"

_FOLDER = Path(__file__).parent


def run_steps(path: Path, last: str = "head") -> None:
    """Run the steps that are missing, up to `last`: all of them, or none.

    Raises:
        StorageError: A step failed.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    engine = create_engine(f"sqlite:///{path}", isolation_level="AUTOCOMMIT", poolclass=NullPool, hide_parameters=True)
    try:
        with engine.connect() as connection:
            # All steps or none: killed half way, the file is as it was. A second process waits and finds them done.
            connection.exec_driver_sql("PRAGMA busy_timeout=5000")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            run_steps_on(connection, last)
            connection.exec_driver_sql("COMMIT")
    except DBAPIError as error:
        raise translated(error, path) from error
    finally:
        engine.dispose()


def run_steps_on(connection: Connection, last: str = "head") -> None:
    """Run the steps that are missing inside a transaction that the caller began. Raises DBAPIError."""
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, last)


def changed_on_purpose(since: str) -> frozenset[str]:
    """What the steps after `since` change in rows that were there: `table`, or `table.column`.

    A step says so in a name of its module, `changes`. What it does not name must be the same after it.
    """
    from alembic.script import ScriptDirectory

    steps = ScriptDirectory.from_config(_config()).iterate_revisions("head", since)
    named: set[str] = set()
    for step in steps:
        named.update(getattr(step.module, "changes", ()))
    return frozenset(named)


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
