"""Where the indices of programs' files are kept between runs, so that nothing is read twice, and when they go.

Each list of files has a folder of its own in the user's cache. One that nobody has used for thirty days goes, and so do
the oldest where all together take more than 5 GB; what a program holds open stays.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from platformdirs import user_cache_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filelock import BaseFileLock

    from core.rag.config import RAGConfig

_log = logging.getLogger(__name__)

_NAME: Final = re.compile(r"[0-9a-f]{32}")
_GATE: Final = "indices.lock"  # held while one is opened, and while others are removed
_USED: Final = "used"  # touched whenever an index is opened: one of ours has it
_UNUSED: Final = 30 * 24 * 3600.0  # seconds
_MOST: Final = 5 * 1024**3  # bytes


@dataclass(frozen=True, slots=True)
class KeptIndex:
    """An index that this process uses; nobody removes it meanwhile.

    Args:
        folder: The library's.
    """

    folder: Path
    _lock: BaseFileLock

    def close(self) -> None:
        """Use it no more; it is kept."""
        self._lock.release()
        with suppress(OSError):
            Path(self._lock.lock_file).unlink(missing_ok=True)


def place() -> Path:
    """Where indices are kept."""
    return user_cache_path("parlour", appauthor=False) / "indices"


def kept_index(files: Sequence[str], config: RAGConfig) -> KeptIndex | None:
    """The index of these files, made where there is none; `None` where none are kept, or none can be.

    Others that have not been used for long are removed.

    Args:
        files: Absolute paths and addresses, in any order.
        config: Another way to read and cut them has another index.
    """
    from filelock import FileLock

    if not config.keep_index or not files:
        return None
    about = [sorted(files), config.chunk_size, config.chunk_overlap, config.pdf_reader]
    name = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
    try:
        root = place()
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / _GATE):
            lock = FileLock(root / f"{name}.{token_hex(8)}.lock", thread_local=False)
            lock.acquire()
            made = KeptIndex(root / name, lock)
            try:
                made.folder.mkdir(exist_ok=True, mode=0o700)  # not before: whoever holds the gate may remove it
                (made.folder / _USED).touch()
                remove_unused(root)
            except OSError:
                made.close()
                raise
    except (OSError, RuntimeError) as error:
        _log.info("No index of files is kept: %s", error)
        return None
    return made


def remove_unused(root: Path, *, now: float | None = None) -> list[Path]:
    """Remove the indices that have not been used for long, and the oldest of very many; returns their folders.

    Args:
        root: Where they lie. What is no index stays, and so does one that a process uses.
        now: Seconds of Unix time.
    """
    moment = time.time() if now is None else now
    removed: list[Path] = []
    total = 0
    for used, size, folder in sorted(_indices(root), reverse=True):
        total += size
        if (moment - used < _UNUSED and total <= _MOST) or _is_in_use(folder):
            continue
        with suppress(OSError):
            shutil.rmtree(folder)
            removed.append(folder)
            total -= size
    return removed


def _is_in_use(folder: Path) -> bool:
    """Whether a process holds a lock of it; locks that were left behind are removed."""
    from filelock import FileLock, Timeout

    for path in folder.parent.glob(f"{folder.name}.*.lock"):
        try:
            with FileLock(path, timeout=0):
                pass
        except (OSError, Timeout):
            return True
        path.unlink(missing_ok=True)
    return False


def _indices(root: Path) -> list[tuple[float, int, Path]]:
    """When each was used last, its bytes and its folder."""
    found: list[tuple[float, int, Path]] = []
    for folder in root.iterdir():
        try:
            if _NAME.fullmatch(folder.name) and not folder.is_symlink():
                used = (folder / _USED).stat().st_mtime
                size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
                found.append((used, size, folder))
        except OSError:  # no index of ours, or gone meanwhile
            continue
    return found
