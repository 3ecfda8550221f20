"""Writes a backup, also of a Parlour that runs: databases as SQLite copies them, everything else as it lies there."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
import zipfile
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from core.backup.contents import (
    COUNTED,
    DATABASE,
    LAST,
    NAME,
    SECRETS,
    Manifest,
    files_in,
    is_index,
    is_safe,
    needed_by,
)
from core.backup.problems import problem
from core.errors import NotFoundError, StorageError
from core.storage.data_folder import damaged, put_in_place, translated
from core.storage.migrations.comparing import wrong_with
from core.storage.migrations.updating import revision_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import PurePosixPath

    from core.backup.elsewhere import Elsewhere

_PIECE: Final = 1 << 20
_TRIES: Final = 5
_WAIT: Final = 30.0
_LEVEL: Final = 3  # of compression: documents and pictures are compressed already


def write_backup(
    home: Path,
    target: Path,
    *,
    with_secret: bool = False,
    rows: Callable[[Path], None] | None = None,
    elsewhere: Elsewhere | None = None,
) -> tuple[Path, Manifest]:
    """Write a backup of a data folder; a draft has its name only when it is complete, and on the disk.

    Args:
        home: The data folder; Parlour may be running on it.
        target: The file to make, or a folder, where it gets a name with the time.
        with_secret: Take in the secrets, with which kept keys and cookies can be read and the page be opened.
        rows: Writes all rows into a new database file, where they are in no file of the data folder.
        elsewhere: Has the files where they are not in the data folder; asked by another thread than this one.

    Returns:
        The file, and what is in it.

    Raises:
        NoSpaceError: The disk is full.
        StorageError: key `backup_no_data`, `backup_exists`, `backup_no_read`, `backup_no_write`, or the database's own.
    """
    database = home / DATABASE
    if rows is None and not database.is_file():
        raise problem("backup_no_data", home=str(home))
    if target.is_dir():
        target = target / f"parlour-{time.strftime('%Y%m%d-%H%M%S')}.zip"
    if target.exists():
        raise problem("backup_exists", file=str(target))
    draft = target.with_name(f".{target.name}.{token_hex(4)}.part")  # another backup may be on its way to this name
    try:
        with (
            os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive,
        ):
            manifest = _Writing(home, archive, draft.parent, rows, elsewhere).write(with_secret=with_secret)
        put_in_place(draft, target)
    except sqlite3.Error as error:
        raise translated(error, database) from error
    except OSError as error:
        said = translated(error, target)
        if said.words_key == "no_space":
            raise said from error
        raise problem("backup_no_write", file=str(target), why=error.strerror or str(error)) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    with suppress(OSError):  # it tells when, nothing more
        (home / LAST).write_text(str(manifest.made), "utf-8")
    return target, manifest


def last_backup(home: Path) -> float | None:
    """When the newest backup of a data folder was made, in seconds since 1970; `None` where there was none."""
    try:
        return float((home / LAST).read_text("utf-8"))
    except (OSError, ValueError):
        return None


class _Writing:
    """One backup on its way into an archive."""

    def __init__(
        self,
        home: Path,
        archive: zipfile.ZipFile,
        beside: Path,
        rows: Callable[[Path], None] | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._home = home
        self._elsewhere = elsewhere
        self._is_grown = rows is not None
        self._rows = rows or partial(copy_database, home / DATABASE)
        self._archive = archive
        self._beside = beside
        self._entries: dict[str, tuple[int, str]] = {}

    def write(self, *, with_secret: bool) -> Manifest:
        with TemporaryDirectory(dir=self._beside, prefix=".parlour-backup-") as folder:
            copy = Path(folder) / DATABASE
            for _ in range(_TRIES):
                self._rows(copy)
                self._files()
                self._remote_files()
                if not self._deleted_meanwhile(needed_by(copy) - self._entries.keys()):
                    break
            schema, counts = _known_of(copy)
            self._add(DATABASE, copy)
        for name in SECRETS if with_secret else ():
            with suppress(FileNotFoundError):
                self._add(name, self._home / name)
        manifest = Manifest(time.time(), schema, counts, self._entries)
        self._archive.writestr(NAME, manifest.to_json())
        return manifest

    def _files(self) -> None:
        """Everything that is not in the archive yet; what goes meanwhile is passed over."""
        for name in files_in(self._home):
            if str(name) in self._entries:
                continue
            with suppress(FileNotFoundError):
                if is_index(name):
                    self._index(name)
                else:
                    self._add(str(name), self._home / name)

    def _remote_files(self) -> None:
        """The same of what lies elsewhere."""
        if self._elsewhere is None:
            return
        for name, key in self._elsewhere.names().items():
            if name not in self._entries and is_safe(name):
                with suppress(NotFoundError), self._elsewhere.held(key) as path:
                    self._add(name, path)

    def _index(self, name: PurePosixPath) -> None:
        """A copy of a library's index; without one, where it is damaged, it is made again from the originals."""
        with TemporaryDirectory(dir=self._beside, prefix=".parlour-backup-") as folder:
            copy = Path(folder) / name.name
            with suppress(sqlite3.DatabaseError, StorageError):
                copy_database(self._home / name, copy)
                self._add(str(name), copy)

    def _deleted_meanwhile(self, missing: set[str]) -> bool:
        """Whether some of these files are no longer needed: then the copy of the database is older than the files."""
        if not missing or not self._is_grown:
            return bool(missing) and not missing <= needed_by(self._home / DATABASE)
        with TemporaryDirectory(dir=self._beside, prefix=".parlour-backup-") as folder:
            now = Path(folder) / DATABASE
            self._rows(now)
            return not missing <= needed_by(now)

    def _add(self, name: str, path: Path) -> None:
        digest, size = hashlib.sha256(), 0
        try:
            source = path.open("rb")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise problem("backup_no_read", file=str(path), why=error.strerror or str(error)) from error
        with source:
            about = zipfile.ZipInfo(name, time.localtime()[:6])
            about.compress_type = zipfile.ZIP_DEFLATED
            about.external_attr = 0o600 << 16
            with self._archive.open(about, "w", force_zip64=True) as target:
                while piece := source.read(_PIECE):
                    digest.update(piece)
                    size += len(piece)
                    target.write(piece)
        self._entries[name] = (size, digest.hexdigest())


def copy_database(source: Path, target: Path) -> None:
    """A copy of a database with what stands in its write-ahead log, in one file; others may write meanwhile.

    Raises:
        StorageError: The copy is damaged, so the database is.
        sqlite3.Error: It cannot be read.
    """
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)
    # Only to read: a backup of a folder that cannot be written is a backup as well.
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, timeout=_WAIT)) as live,
        closing(sqlite3.connect(target, isolation_level=None)) as copy,
    ):
        live.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
        found = wrong_with(copy, "quick_check")
        if found:
            raise damaged(source, found)


def _known_of(database: Path) -> tuple[str, dict[str, int]]:
    with closing(sqlite3.connect(database)) as connection:
        schema = revision_of(connection) or ""
        counts = {
            table: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - literal names
            for table in COUNTED
        }
    return schema, counts
