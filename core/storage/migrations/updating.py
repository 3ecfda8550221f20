"""Updates a database that holds something: a snapshot, a copy that is updated and compared, then the swap.

Every order of events leaves the old database or the new one, whole: until the swap nothing is written to the
database, and the swap is one transaction of SQLite's own, which is undone at the next opening where it was cut short.
It goes into the same file instead of renaming the copy over it, so that owner, mode, links and mount points stay, and
no process can be left with a file that has no name any more.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from core.errors import ConflictError, NoSpaceError, StorageError
from core.storage.migrations.comparing import differences, wrong_with
from core.storage.migrations.snapshots import Snapshots
from core.storage.migrations.steps import HEAD, changed_on_purpose, run_steps

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_LOG = logging.getLogger(__name__)

PATIENCE: Final = 15.0
"""Seconds for another process to close the database: a service manager starts the new one while the old one ends."""
_COPIES: Final = 3  # the snapshot, the copy, and the swap's journal
_SPARE: Final = 16 * 1024 * 1024
_PAGES: Final = 2048  # of one step of the swap


def update(path: Path) -> None:
    """Bring a database with data up to date. Until it is, it stays as it was.

    Raises:
        ConflictError: key `storage_in_use`: another process has it open.
        NoSpaceError: key `storage_update_space`: the disk cannot hold the copies.
        StorageError: key `storage_update_lost`: the steps lost something; or the file cannot be used.
        sqlite3.Error: The database failed otherwise.
        OSError: The folder cannot be written.
    """
    with alone_with(path, PATIENCE) as live:
        revision = revision_of(live)
        if revision is None or revision == HEAD:
            return  # another process was faster
        _check_space(path, live)
        snapshots = Snapshots(path)
        snapshots.begin()
        try:
            snapshots.take(live)
            _updated_copy(live, snapshots.copy, revision)
            swap(snapshots.copy, live)
        except BaseException:
            snapshots.clear()
            raise
        snapshot = snapshots.keep()
    _LOG.info("The database was updated from %s to %s; what it was is kept in %s.", revision, HEAD, snapshot)


@contextmanager
def alone_with(path: Path, patience: float) -> Generator[sqlite3.Connection]:
    """A connection to the database while no other process has it open, nor can open it.

    Args:
        patience: Seconds to wait for others to close it.

    Raises:
        ConflictError: key `storage_in_use`: another process has it open still.
    """
    with closing(sqlite3.connect(path, timeout=patience, isolation_level=None)) as connection:
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")  # the lock stays until the connection is closed
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            text = f"The database {path} is open in another Parlour."
            hint = "End that one, then try again; nothing was changed."
            raise ConflictError(text, hint=hint, key="storage_in_use", path=str(path)) from error
        yield connection


def revision_of(connection: sqlite3.Connection) -> str | None:
    """The step that a database is at; `None` where it has no tables of ours. Raises sqlite3.Error."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'")
    if found.fetchone() is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else None


def swap(copy: Path, live: sqlite3.Connection) -> None:
    """Put the content of `copy` into the database as one transaction. Raises sqlite3.Error."""
    live.execute("PRAGMA journal_mode=WAL")
    live.execute("PRAGMA synchronous=FULL")
    # A copy that is gone is an error: it would be made anew, and nothing be put in the place of everything.
    with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=rw", uri=True)) as source:
        source.backup(live, pages=_PAGES)
    live.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _updated_copy(live: sqlite3.Connection, copy: Path, revision: str) -> None:
    """A copy with all steps run on it, which holds what the database holds."""
    copy.touch(mode=0o600)
    with closing(sqlite3.connect(copy)) as target:
        live.backup(target)
    run_steps(copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as updated:
        lost = differences(live, updated, changed_on_purpose(revision))
        lost += _broken(live, updated)
    if lost:
        _LOG.error("The update from %s to %s would lose something: %s.", revision, HEAD, "; ".join(lost))
        text = f"The database cannot be updated without a loss ({lost[0]}), so it was left as it is."
        hint = "Go on with the Parlour that you had, and report this."
        raise StorageError(text, hint=hint, key="storage_update_lost", what=lost[0])


def _broken(live: sqlite3.Connection, updated: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with the copy, and rows that point nowhere and did not before."""
    found = wrong_with(updated, "integrity_check")
    wrong = [found] if found else []
    before, after = (len(one.execute("PRAGMA foreign_key_check").fetchall()) for one in (live, updated))
    return [*wrong, f"{after - before} rows point to rows that are gone"] if after > before else wrong


def _check_space(path: Path, live: sqlite3.Connection) -> None:
    pages, size = (int(live.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
    needed, free = pages * size * _COPIES + _SPARE, shutil.disk_usage(path.parent).free
    if free < needed:
        megabytes = -(-needed // 1_000_000)
        text = (
            f"The update of the database {path} needs {megabytes} MB of free space, and there are {free // 1_000_000}."
        )
        hint = "Make room, then start again; nothing was changed."
        raise NoSpaceError(
            text, hint=hint, key="storage_update_space", path=str(path), needed=megabytes, free=free // 1_000_000
        )
