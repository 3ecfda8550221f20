"""The folder of all sandboxes of one process: below the system's temporary folder, gone when the process is."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

_BEGINNING: Final = "parlour-code-"
_LOCK: Final = "in-use"
_LONGEST: Final = 50  # characters of its path: addresses of sockets below it may have 107


def make_root() -> tuple[Path, int]:
    """A new folder and the lock on it, which ends with the process; what others left behind is removed.

    Returns:
        The folder, which others may walk through but not list, and the descriptor that holds the lock.

    Raises:
        OSError: It cannot be made.
    """
    place = Path(tempfile.gettempdir())
    place = place if len(str(place)) < _LONGEST else Path("/tmp")  # noqa: S108 - made below it, under a new name
    _remove_abandoned(place)
    folder = Path(tempfile.mkdtemp(prefix=_BEGINNING, dir=place))
    lock = _locked(folder)
    if lock is None:
        raise OSError(f"The folder {folder} cannot be locked.")
    folder.chmod(0o711)
    return folder, lock


def drop_root(folder: Path, lock: int) -> None:
    """Remove the folder and let go of the lock."""
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _remove_abandoned(place: Path) -> None:
    for folder in place.glob(f"{_BEGINNING}*"):
        about = folder.lstat() if folder.exists() else None
        if about is None or not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
            continue
        if not (folder / _LOCK).exists():
            continue  # somebody is just making it
        lock = _locked(folder)
        if lock is not None:
            drop_root(folder, lock)


def _locked(folder: Path) -> int | None:
    """The lock on a folder; None where somebody has it."""
    import fcntl

    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
