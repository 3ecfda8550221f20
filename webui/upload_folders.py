"""Where a process keeps what was sent up to it: a folder of its own, beside those of other processes on the same data.

Each has a note beside it that names its process. A start clears away the folders of processes that are proved dead. Of
a process that cannot be seen from here (in another container) only what is older than it keeps uploads itself.
"""

from __future__ import annotations

import logging
import shutil
import time
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from core.runs.worker import standing, this_worker

if TYPE_CHECKING:
    from pathlib import Path

KEPT_SECONDS: Final = 6 * 3600.0
"""How long an upload that is not used is kept."""

_LOG = logging.getLogger(__name__)
_NOTE = ".process"


def own_folder(among: Path) -> Path:
    """Make a folder of this process, and clear away those of processes that are gone.

    Args:
        among: The folder of all of them; made where it is missing.

    Raises:
        OSError: It cannot be made.
    """
    among.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = among / token_hex(8)
    _note_of(folder).write_text(this_worker(), "utf-8")  # first: a folder without a note is nobody's
    folder.mkdir(mode=0o700)
    for other in among.iterdir():
        if other != folder and other.is_dir() and not other.is_symlink() and _is_left(other):
            give_up(other)
    return folder


def give_up(folder: Path) -> None:
    """Delete such a folder with its note; what cannot be deleted stays for the next start."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        _LOG.warning("Uploads that nobody uses cannot be deleted: %s", folder)
        return
    _note_of(folder).unlink(missing_ok=True)


def _is_left(folder: Path) -> bool:
    try:
        state = standing(_note_of(folder).read_text("utf-8"))
    except (OSError, ValueError):
        state = "unknown"
    if state == "unknown":
        return time.time() - _last_change(folder) > KEPT_SECONDS
    return state == "dead"


def _last_change(folder: Path) -> float:
    """Unix seconds; now, where it cannot be told."""
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    except OSError:  # somebody is at work there
        return time.time()


def _note_of(folder: Path) -> Path:
    return folder.with_name(folder.name + _NOTE)
