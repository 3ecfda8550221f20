"""The data folder: files synced to disk, a restored folder put in place, and what its failures mean for a person."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from core.errors import ConflictError, NoSpaceError, StorageError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from pathlib import Path

    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.exc import TimeoutError as PoolTimeoutError


_NO_SYNC: Final = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}  # what mounts say that sync no folders: a share, FUSE
_NAMED_BY: Final = 40  # letters of a file's name that its draft has: a longer name may be too long


def sync_file(path: Path) -> None:
    """Return once the file's bytes are on the disk. Raises OSError."""
    opened = os.open(path, os.O_RDWR)  # Windows syncs nothing that was opened for reading only
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_folder(folder: Path) -> None:
    """Return once the names in the folder are on the disk, where a system can do that. Raises OSError."""
    if os.name != "posix":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(opened)


def make_folder(folder: Path) -> None:
    """Make a folder for its owner alone, with those above it, so that a power failure leaves it. Raises OSError."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def put_in_place(draft: Path, target: Path) -> None:
    """Give a complete draft its name, so that a power failure leaves the old file or the new one. Raises OSError."""
    sync_file(draft)
    draft.replace(target)
    sync_folder(target.parent)


def draft_of(target: Path) -> Path:
    """Where a file is drafted: beside it, under a name that no other process or thread has."""
    return target.with_name(f".{target.name[:_NAMED_BY]}-{token_hex(8)}.part")


@contextmanager
def drafted(target: Path, *, lasts: bool = True) -> Generator[Path]:
    """The place to write a draft to, which takes the place of the file at the end of the block, in one step.

    Of several who do so at the same time each puts a whole file there, and the last one's stays. Where the block fails
    the file is as it was, and the draft is deleted. Whoever may read the file may read what takes its place, and nobody
    else.

    Args:
        lasts: Whether it is on the disk by then, so that a power failure leaves the old file or the new one.

    Raises:
        OSError: It cannot be put there.
    """
    draft = draft_of(target)
    try:
        _begin_as(target, draft)
        yield draft
        if lasts:
            put_in_place(draft, target)
        else:
            draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _begin_as(target: Path, draft: Path) -> None:
    """Make a draft with the rights of the file that is there, before anything is in it."""
    with suppress(OSError):  # there is none, or the mount knows no rights
        rights = target.stat().st_mode & 0o777
        draft.touch(0o600)
        draft.chmod(rights | 0o600)


def put_new(made: Path, target: Path, /) -> None:
    """Give a complete draft a name that nothing has: of several who do so at once, one does. The draft may stay.

    Raises:
        FileExistsError: Something has that name.
        OSError: It cannot be put there.
    """
    sync_file(made)
    try:
        os.link(made, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: an empty file keeps the name until the draft takes its place
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            made.replace(target)
        except BaseException:
            with suppress(OSError):  # nothing stands under the name, as nothing was put there
                target.unlink()
            raise
    sync_folder(target.parent)


def oldest_first(paths: Iterable[Path]) -> list[Path]:
    """Files by the time of their last change; one that is gone by the time it is looked at is left out."""
    found: list[tuple[int, Path]] = []
    for path in paths:
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(found, key=lambda one: one[0])]


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
    # SQLAlchemy is not imported: documents are read where it is not installed.
    original: object = getattr(error, "orig", error)
    waited_for_a_connection = original is error and not isinstance(error, sqlite3.Error | OSError)
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
        case kind if kind in _BUSY or waited_for_a_connection:
            return ConflictError("The database is busy.", hint="Try again in a moment.", key="storage_busy")
        case kind if kind in _DAMAGED:
            return damaged(path, str(original))
        case _:
            return StorageError(f"The database {path} failed: {original}.", path=str(path))


LOCK: Final = ".restore.lock"
_NOTE: Final = ".restoring.json"
_PATIENCE: Final = 5.0


def put_restored(home: Path, fresh: str, aside: str, old: Sequence[str], new: Sequence[str]) -> None:
    """Move `old` names of a data folder aside, and `new` ones in.

    Args:
        fresh: The folder in it that holds the new, complete and on the disk.
        aside: The folder in it where the old goes.
        old: Names of what is there.
        new: Names in `fresh`.

    Raises:
        OSError: Something could not be moved; the next opening tries again.
    """
    told = json.dumps({"fresh": fresh, "aside": aside, "old": list(old), "new": list(new)})
    with drafted(home / _NOTE) as draft:
        draft.write_text(told, "utf-8")
    _move(home)


@contextmanager
def alone_restoring(home: Path) -> Generator[None]:
    """Whoever moves names in a data folder is the only one. Raises ConflictError: key `restore_running`."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(home / LOCK, timeout=_PATIENCE):
            yield
    except Timeout as error:
        hint = "Wait until that is done."
        text = f"A backup is being restored into {home}."
        raise ConflictError(text, hint=hint, key="restore_running", home=str(home)) from error


def is_being_restored(home: Path) -> bool:
    """Whether names are still to be moved."""
    return (home / _NOTE).exists()


def go_on_restoring(home: Path) -> None:
    """Finish what `put_restored` began, where it was cut short.

    Raises:
        ConflictError: key `restore_running`: another process is at it.
        OSError: Something could not be moved.
    """
    if is_being_restored(home):
        with alone_restoring(home):
            _move(home)


def _move(home: Path) -> None:
    note = home / _NOTE
    try:
        said: dict[str, Any] = json.loads(note.read_text("utf-8"))
    except FileNotFoundError:
        return
    fresh, aside = home / said["fresh"], home / said["aside"]
    if said["old"]:
        aside.mkdir(mode=0o700, exist_ok=True)
    for name in said["old"]:  # what is in `home` under the name of something that is aside already is new
        if not os.path.lexists(aside / name) and os.path.lexists(home / name):
            (home / name).rename(aside / name)
    sync_folder(home)
    for name in said["new"]:
        if os.path.lexists(fresh / name):
            (fresh / name).rename(home / name)
    sync_folder(home)
    if fresh.is_dir():
        fresh.rmdir()
    note.unlink(missing_ok=True)
