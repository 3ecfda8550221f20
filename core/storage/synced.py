"""What a power failure must not take: files and folders that are written through to the disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def sync_file(path: Path) -> None:
    """Return once the file's bytes are on the disk. Raises OSError."""
    opened = os.open(path, os.O_RDWR)  # Windows syncs nothing that was opened for reading only
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_folder(folder: Path) -> None:
    """Return once the names in the folder are on the disk; on Windows nothing can be done. Raises OSError."""
    if os.name != "posix":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
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
