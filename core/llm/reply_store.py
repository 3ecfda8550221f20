"""Finished replies on disk, shared by threads and processes. Loaded when a model with a `cache_dir` is first asked.

The store of `diskcache` unpickles what it finds, which runs whatever code somebody put there. This one writes and
reads JSON text alone; any other row is refused before it is looked into, and counts as missing.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import diskcache  # pyright: ignore[reportMissingTypeStubs]

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

DEFAULT_BYTES: Final = 256 * 2**20
DEFAULT_SECONDS: Final = 30 * 24 * 3600.0
_FOLDER: Final = "replies"
_LOCK_SECONDS: Final = 2
_RAW: Final = 1  # how diskcache marks a value that stands in its row as it is
_FAILURES: Final = (sqlite3.Error, diskcache.Timeout, OSError)


class RefusedRowError(ValueError):
    """A row that this store did not write."""


class JsonDisk(diskcache.Disk):
    """Keys are text, values are JSON text inside the row: no pickle, and no files beside the database."""

    def put(self, key: Any) -> Any:
        """The key as it stands in the table."""
        if not isinstance(key, str):
            raise TypeError("A key must be text.")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        """The key of a row.

        Raises:
            RefusedRowError: It is pickled.
        """
        if not raw or not isinstance(key, str):
            raise RefusedRowError("The row's key is not text.")
        return key

    def store(self, value: Any, read: Any, key: Any = None) -> Any:
        """The columns of a value: size of its file, kind, name of its file, and itself."""
        del read, key
        return 0, _RAW, None, json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def fetch(self, mode: Any, filename: Any, value: Any, read: Any) -> Any:
        """The value of a row.

        Raises:
            RefusedRowError: The row is pickled, names a file, or holds no JSON.
        """
        del read
        if mode != _RAW or filename is not None or not isinstance(value, str):
            raise RefusedRowError("The row is none of this store's.")
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RefusedRowError("The row holds no JSON.") from error

    def remove(self, file_path: Any) -> None:
        """Nothing: this store has no files, and a name that somebody else wrote into a row is not followed."""


class ReplyStore:
    """Replies by key. It never fails a call: what cannot be read is missing, what cannot be written is not kept.

    Args:
        folder: Its own folder is made inside, open to the user alone.
        limit: Bytes on disk, about; the oldest replies go first.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder / _FOLDER
        self._limit = limit
        self._cache: Any = None
        self._complained = False

    def find(self, key: str, age: float) -> Any:
        """The reply that was kept under a key, at most `age` seconds ago; `None` where there is none."""
        try:
            kept = self._opened().get(key)
        except RefusedRowError:
            return None
        except _FAILURES as error:
            self._failed(error)
            return None
        try:
            return kept["reply"] if kept and 0 <= time.time() - kept["at"] <= age else None
        except (TypeError, LookupError):
            return None

    def keep(self, key: str, reply: Any, age: float) -> None:
        """Keep a reply for `age` seconds, in place of an older one."""
        try:
            self._opened().set(key, {"at": time.time(), "reply": reply}, expire=age)
        except (*_FAILURES, ValueError) as error:
            self._failed(error)

    def _opened(self) -> Any:
        if self._cache is None:
            _make_private(self._folder)
            self._cache = diskcache.Cache(
                str(self._folder),
                timeout=_LOCK_SECONDS,
                disk=JsonDisk,
                size_limit=self._limit,
                statistics=0,
                tag_index=0,
                eviction_policy="least-recently-stored",
            )
        return self._cache

    def _failed(self, error: Exception) -> None:
        self._cache = None
        if not self._complained:
            self._complained = True
            logger.warning("The cache of replies in %s cannot be used now: %s.", self._folder, error)
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            for file in self._folder.glob("cache.db*"):  # damaged beyond use; nothing in it cannot be had again
                file.unlink(missing_ok=True)


@lru_cache(maxsize=16)
def reply_store(folder: Path, limit: int) -> ReplyStore:
    """The store of a folder, one for all models of this process."""
    return ReplyStore(folder, limit)


def _make_private(folder: Path) -> None:
    """Make the folder, open to this user alone.

    Raises:
        PermissionError: It is somebody else's.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    folder.chmod(0o700)
