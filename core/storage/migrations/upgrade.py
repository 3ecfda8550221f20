"""Brings a database file up to date: checks it, copies it, runs the steps that are missing."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from core.errors import StorageError
from core.storage.trouble import damaged, translated

# The newest step. Known here, so that opening a file that is up to date needs no Alembic.
HEAD = "0009"

_FOLDER = Path(__file__).parent


def bring_up_to_date(path: Path) -> None:
    """Make the file, or bring it up to date; a file with data is first copied to `backups` beside it.

    Raises:
        StorageError: The file is damaged, newer than this program, or cannot be used.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with closing(sqlite3.connect(path, timeout=5.0, isolation_level=None)) as connection:
            revision = _checked_revision(connection, path)
            if revision == HEAD:
                return
            if revision is not None:
                _keep_copy(connection, path, revision)
            connection.execute("PRAGMA journal_mode=WAL")
        run_steps(path)
    except (sqlite3.Error, OSError) as error:
        raise translated(error, path) from error


def _checked_revision(connection: sqlite3.Connection, path: Path) -> str | None:
    """The step that the file is at; `None` for a new file."""
    answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if answer != "ok":
        raise damaged(path, str(answer).splitlines()[-1])
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "alembic_version" not in tables:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    revision = str(row[0]) if row else None
    if revision is not None and revision > HEAD:
        hint = "Start the newer Parlour, or use another data folder."
        text = f"The database {path} was made by a newer Parlour."
        raise StorageError(text, hint=hint, key="storage_newer", path=str(path))
    return revision


def _keep_copy(connection: sqlite3.Connection, path: Path, revision: str) -> None:
    folder = path.parent / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    copy = folder / f"{path.stem}-{revision}-{time.strftime('%Y%m%d-%H%M%S')}.db"
    copy.touch(mode=0o600)
    with closing(sqlite3.connect(copy)) as target:
        connection.backup(target)


def run_steps(path: Path, last: str = "head") -> None:
    """Run the steps that are missing, up to `last`: all of them, or none."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    engine = create_engine(f"sqlite:///{path}", isolation_level="AUTOCOMMIT", poolclass=NullPool)
    try:
        with engine.connect() as connection:
            # All steps or none: killed half way, the file is as it was. A second process waits and finds them done.
            connection.exec_driver_sql("PRAGMA busy_timeout=5000")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            config.attributes["connection"] = connection
            command.upgrade(config, last)
            connection.exec_driver_sql("COMMIT")
    except DBAPIError as error:
        raise translated(error, path) from error
    finally:
        engine.dispose()
