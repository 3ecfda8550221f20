"""Puts a restored data folder in the place of what is there; cut short, the next opening goes on with it.

All of the new lies complete beside the old before the first name is moved, and a note says which names move where, so
that going on is always possible. Names are moved one by one, for a data folder may be a mount point, which has no
other folder beside it.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from filelock import FileLock, Timeout

from core.errors import ConflictError
from core.storage.synced import put_in_place, sync_folder

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

LOCK: Final = ".restore.lock"
_NOTE: Final = ".restoring.json"
_PATIENCE: Final = 5.0


def put_restored(home: Path, fresh: str, aside: str, old: Sequence[str], new: Sequence[str]) -> None:
    """Move `old` names of a data folder aside, and `new` ones in.

    Args:
        home: The data folder.
        fresh: The folder in it that holds the new, complete and on the disk.
        aside: The folder in it where the old goes.
        old: Names of what is there.
        new: Names in `fresh`.

    Raises:
        OSError: Something could not be moved; the next opening tries again.
    """
    draft = home / f"{_NOTE}.part"
    draft.write_text(json.dumps({"fresh": fresh, "aside": aside, "old": list(old), "new": list(new)}), "utf-8")
    put_in_place(draft, home / _NOTE)
    _move(home)


@contextmanager
def alone_restoring(home: Path) -> Generator[None]:
    """Whoever moves names in a data folder is the only one. Raises ConflictError: key `restore_running`."""
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
