"""Files that survive a power failure: their bytes and their names are on the disk before anything refers to them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder for its owner alone, with those above it, so that it is there after a power failure."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def put_in_place(draft: Path, target: Path) -> None:
    """Give a file that is written and synced its name, so that it has it after a power failure."""
    draft.replace(target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk. Windows does so by itself, and opens no folder as a file."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
