"""What a database's complaint means for a person: full, busy, damaged, taken already."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from core.errors import ConflictError, NoSpaceError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_LEAST_SPACE = 1024 * 1024


def no_space(path: Path) -> NoSpaceError:
    """The disk that holds `path` is full."""
    return NoSpaceError(
        f"There is no space left for {path}.", hint="Free some space; what was stored before is safe.", path=str(path)
    )


def damaged(path: Path, what: str) -> StorageError:
    """The database file cannot be trusted; nothing was written to it."""
    hint = f"Keep a copy of {path}, then put a backup in its place or move it away to begin anew."
    return StorageError(f"The database {path} is damaged: {what}.", hint=hint, key="storage_damaged", path=str(path))


def translated(error: DBAPIError | PoolTimeoutError | sqlite3.Error | OSError, path: Path) -> StorageError:
    """The error of ours that says what a database's or file system's error means."""
    original = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(original, OSError):
        if original.errno in {errno.ENOSPC, errno.EDQUOT}:
            return no_space(path)
        return StorageError(f"{path} cannot be used: {original.strerror}.", path=str(path))
    code = getattr(original, "sqlite_errorcode", 0)
    # The lowest byte is the kind of failure; the rest says where it was noticed.
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return no_space(path)
        case sqlite3.SQLITE_IOERR if shutil.disk_usage(path.parent).free < _LEAST_SPACE:
            return no_space(path)
        case sqlite3.SQLITE_CONSTRAINT:
            return ConflictError(f"Something else was stored first: {original}.")
        case kind if kind in _BUSY or isinstance(error, PoolTimeoutError):
            return ConflictError("The database is busy.", hint="Try again in a moment.", key="storage_busy")
        case kind if kind in _DAMAGED:
            return damaged(path, str(original))
        case _:
            return StorageError(f"The database {path} failed: {original}.", path=str(path))
