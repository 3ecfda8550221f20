"""Opens a database file: checks it, makes it where there is none, and updates one of an older Parlour."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from core.errors import StorageError
from core.storage.data_folder import damaged, go_on_restoring, translated
from core.storage.migrations.comparing import wrong_with
from core.storage.migrations.snapshots import Snapshots
from core.storage.migrations.steps import HEAD, run_steps
from core.storage.migrations.updating import PATIENCE, revision_of, update

if TYPE_CHECKING:
    from pathlib import Path


def bring_up_to_date(path: Path) -> None:
    """Make the file, or bring it up to date; of a file with data a snapshot is kept in `backups` beside it.

    Raises:
        ConflictError: key `storage_in_use`: it must be updated, and another process has it open.
        NoSpaceError: The disk is full, or cannot hold the copies that an update needs.
        StorageError: The file is damaged, newer than this program, or cannot be used; or an update would lose
            something (key `storage_update_lost`).
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        go_on_restoring(path.parent)
        path.touch(mode=0o600)
        unclean = _ended_badly(path)
        with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as connection:
            revision = _checked_revision(connection, path, scan=unclean)
            if revision in {None, HEAD} and connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode=WAL")
            if revision == HEAD:
                # Of an update that was cut short when all but this was done; as long as the database is open here, no
                # newer Parlour begins another one.
                Snapshots(path).keep()
        if revision is None:
            run_steps(path)
        elif revision != HEAD:
            update(path)
    except (sqlite3.Error, OSError) as error:
        raise translated(error, path) from error


def _ended_badly(path: Path) -> bool:
    """Whether the last process that had the file open was killed, or still has it open: its journal is there.

    SQLite deletes the journal when the last connection is closed. Only without that the whole file is looked through,
    which takes seconds where there is much in it.
    """
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def _checked_revision(connection: sqlite3.Connection, path: Path, *, scan: bool) -> str | None:
    """The step that the file is at; `None` for a new file."""
    found = wrong_with(connection, "quick_check") if scan else ""
    if found:
        raise damaged(path, found)
    revision = revision_of(connection)
    if revision is not None and revision > HEAD:
        hint = "Start the newer Parlour, or use another data folder."
        text = f"The database {path} was made by a newer Parlour."
        raise StorageError(text, hint=hint, key="storage_newer", path=str(path))
    return revision
