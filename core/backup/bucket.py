"""A mounted bucket as the place where a data folder outlives its machine, as on a Hugging Face Space.

Object storage behind a mount keeps no live database well, so Parlour works on a local disk. What is new goes into the
bucket every minute and at the end: files first, then a copy of the database that names them, under its name at once. It
comes back at a start that finds no database. What was written within the last minute before a crash is lost.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import sqlite3
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from core.backup.contents import DATABASE, SECRETS, files_in, is_index
from core.backup.writing import copy_database
from core.errors import StorageError
from core.storage.data_folder import drafted, sync_file, translated

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from core.settings import Settings

_LOG = logging.getLogger(__name__)
FOLDER: Final = "parlour"
"""What it makes for itself in the bucket."""
_EVERY: Final = 60.0
_DRAFT: Final = re.compile(r"\..*\.part", re.DOTALL)
_LEFT_AFTER: Final = 24 * 3600.0  # seconds after which nobody is at a copy any more
_MOUNTS: Final = Path("/proc/mounts")
_USUAL: Final = "/data"
_KINDS: Final = ("fuse", "nfs", "9p")
_SYSTEM: Final = ("/proc", "/sys", "/dev", "/etc", "/run")


def mounted_bucket(mounts: Path = _MOUNTS) -> Path | None:
    """Where a bucket is mounted on this machine; `None` where none is.

    What is mounted to be read alone is none: a Space may have models and datasets so. `/data` goes before other places.

    Args:
        mounts: The system's table of them.
    """
    try:
        table = [line.split() for line in mounts.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return None
    found: list[str] = []
    for row in table:
        if len(row) < 4 or not row[2].startswith(_KINDS) or row[1].startswith(_SYSTEM) or row[1] == "/":
            continue
        is_ours = row[1] == _USUAL or "hf" in row[0].lower() or "hf" in row[2].lower()
        if is_ours and "ro" not in row[3].split(","):
            found.append(row[1].replace("\\040", " "))
    return Path(min(found, key=lambda place: place != _USUAL)) if found else None


def bucket_of(settings: Settings) -> Bucket | None:
    """The one that settings name, or that is mounted on a Space; `None` where the data folder has to outlive it."""
    place = settings.bucket or (mounted_bucket() if settings.space_hosts else None)
    return Bucket(settings.home, place) if place is not None else None


class Bucket:
    """What of a data folder stands in a bucket.

    Args:
        home: The data folder, on a local disk.
        place: Where the bucket is mounted.
    """

    def __init__(self, home: Path, place: Path) -> None:
        self._home = home
        self._kept = place / FOLDER
        self._put: dict[str, tuple[int, int]] = {}  # of what is there: size, and the time of the original
        self._is_swept = False

    def bring_back(self) -> bool:
        """Fill a data folder that has no database; returns whether there was anything.

        Raises:
            StorageError: It cannot be read, or not be written here.
        """
        if (self._home / DATABASE).exists() or not (self._kept / DATABASE).is_file():
            return False
        try:
            names = [*map(str, files_in(self._kept)), *(one for one in SECRETS if (self._kept / one).is_file())]
            for name in names:
                self._copy(self._kept / name, self._home / name)
            self._copy(self._kept / DATABASE, self._home / DATABASE)  # the last: only then is it a data folder
        except OSError as error:
            raise translated(error, self._kept) from error
        return True

    def put(self) -> bool:
        """Put into the bucket what is new; returns whether anything was.

        Raises:
            StorageError: The bucket cannot be written, or the database not be read.
        """
        now = self._state()
        if not (self._home / DATABASE).is_file() or self._put.get(DATABASE) == now:
            return False
        try:
            self._kept.mkdir(parents=True, exist_ok=True)
            self._sweep()
            with TemporaryDirectory(prefix="parlour-bucket-") as folder:
                copy = Path(folder) / DATABASE
                copy_database(self._home / DATABASE, copy)
                here = {str(name) for name in files_in(self._home)}
                for name in sorted(here):
                    self._put_file(name, Path(folder))
                for name in SECRETS:
                    if (self._home / name).is_file():
                        self._put_file(name, Path(folder))
                self._copy(copy, self._kept / DATABASE)
            for name in map(str, list(files_in(self._kept))):
                if name not in here:
                    (self._kept / name).unlink(missing_ok=True)
        except (OSError, sqlite3.Error) as error:
            raise translated(error, self._kept) from error
        self._put[DATABASE] = now
        return True

    def _state(self) -> tuple[int, int]:
        """What changes whenever the database does: the sizes and times of its files."""
        size, time = 0, 0
        for name in (DATABASE, f"{DATABASE}-wal"):
            with suppress(OSError):
                told = (self._home / name).stat()
                size, time = size + told.st_size, max(time, told.st_mtime_ns)
        return size, time

    def _put_file(self, name: str, folder: Path) -> None:
        source, target = self._home / name, self._kept / name
        try:
            told = source.stat()
            state = (told.st_size, told.st_mtime_ns)
            if self._put.get(name) == state:
                return
            if is_index(PurePosixPath(name)):
                copy = folder / "index"
                with suppress(sqlite3.DatabaseError, StorageError):  # one that is damaged is made anew from originals
                    copy_database(source, copy)
                    self._copy(copy, target)
            elif not target.is_file() or target.stat().st_size != told.st_size or name in SECRETS:
                self._copy(source, target)
        except FileNotFoundError:  # deleted meanwhile
            return
        self._put[name] = state

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with drafted(target, lasts=False) as draft:
            shutil.copyfile(source, draft)
            with suppress(OSError):  # a mount may know no modes
                draft.chmod(0o600)
            with suppress(OSError):  # nor how to sync
                sync_file(draft)

    def _sweep(self) -> None:
        """Delete what processes that were killed had begun to copy."""
        if self._is_swept:
            return
        long_ago = time.time() - _LEFT_AFTER
        for folder, _, names in os.walk(self._kept):
            for draft in (Path(folder, name) for name in names if _DRAFT.fullmatch(name)):
                with suppress(OSError):
                    if draft.stat().st_mtime < long_ago:
                        draft.unlink()
        self._is_swept = True


@asynccontextmanager
async def keeping(bucket: Bucket | None, every: float = _EVERY) -> AsyncGenerator[None]:
    """Put what is new into the bucket, now and then and at the end.

    Args:
        bucket: `None` for none.
        every: Seconds between two times.
    """
    if bucket is None:
        yield
        return

    async def now_and_then() -> None:
        while True:
            await asyncio.sleep(every)
            await _put(bucket)

    task = asyncio.create_task(now_and_then())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        await _put(bucket)


async def _put(bucket: Bucket) -> None:
    try:
        await asyncio.to_thread(bucket.put)
    except StorageError as error:
        _LOG.warning("The bucket does not have what is new: %s", error)
