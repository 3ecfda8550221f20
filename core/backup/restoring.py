"""Makes a data folder of a backup: everything is checked and lies complete on the disk before a name is moved."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import stat
import time
import zipfile
import zlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from core.backup.contents import ASIDE, DATABASE, FORM, NAME, OF_A_PROCESS, SECRET, SECRETS, Manifest, is_safe
from core.backup.problems import problem
from core.storage.data_folder import (
    LOCK,
    alone_restoring,
    is_being_restored,
    put_restored,
    sync_file,
    sync_folder,
    translated,
)
from core.storage.database import NAME as GENERATION
from core.storage.migrations.comparing import wrong_with
from core.storage.migrations.steps import HEAD
from core.storage.migrations.updating import alone_with, revision_of

_PIECE: Final = 1 << 20
_LARGEST_MANIFEST: Final = 1 << 28
_SPARE: Final = 16 * 1024 * 1024
_PATIENCE: Final = 5.0
_FRESH: Final = ".restore-"
_STAYS: Final = OF_A_PROCESS | {LOCK}


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored.

    Args:
        manifest: What the backup said of itself.
        aside: Where what was there before is now; `None` where nothing was.
        has_secret: Whether the folder has a secret now, the backup's or its own.
    """

    manifest: Manifest
    aside: Path | None
    has_secret: bool


def restore_backup(file: Path, home: Path, *, replace: bool = False) -> Restored:
    """Make a data folder of a backup.

    Args:
        home: The data folder, made where there is none.
        replace: Where the folder is not empty, keep what is there in a folder of its own within it; a secret stays in
            its place where the backup has none.

    Raises:
        ConflictError: key `storage_in_use`: Parlour is running on the folder.
        StorageError: key `backup_no_file`, `backup_folder`, `backup_not_one`, `backup_newer`, `backup_damaged`,
            `backup_unsafe`, `restore_not_empty`, `restore_half`, `restore_space` or `restore_failed`; but for the
            last nothing was changed.
        NoSpaceError: The disk became full; nothing was changed.
    """
    if not file.is_file():
        raise problem("backup_folder" if file.is_dir() else "backup_no_file", file=str(file))
    try:
        with zipfile.ZipFile(file) as archive:
            manifest = _manifest_of(archive, file)  # of what is no backup no folder is made
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with alone_restoring(home):
                return _restored(archive, manifest, file, home, replace=replace)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise problem("backup_not_one", file=str(file)) from error
    except OSError as error:
        said = translated(error, home)
        if said.words_key == "no_space":
            raise said from error
        raise problem("restore_failed", home=str(home), why=error.strerror or str(error)) from error


def _restored(archive: zipfile.ZipFile, manifest: Manifest, file: Path, home: Path, *, replace: bool) -> Restored:
    if is_being_restored(home):
        raise problem("restore_half", home=str(home))
    for left in home.glob(f"{_FRESH}*"):  # by a process that was killed before it moved anything
        shutil.rmtree(left)
    old = _names_in(home)
    if old and not replace:
        raise problem("restore_not_empty", home=str(home))
    _check(archive, manifest, file, home)
    fresh = Path(mkdtemp(dir=home, prefix=_FRESH))
    try:
        _extract(archive, manifest, file, fresh)
        _check_database(fresh / DATABASE, manifest, file)
        return _placed(home, fresh, manifest)
    except BaseException:
        if not is_being_restored(home):
            shutil.rmtree(fresh, ignore_errors=True)
        raise


def _names_in(home: Path) -> list[str]:
    """What a data folder holds, apart from what stays in its place."""
    found = (one.name for one in home.iterdir())
    return sorted(name for name in found if name not in _STAYS and not name.startswith((ASIDE, _FRESH)))


def _check(archive: zipfile.ZipFile, manifest: Manifest, file: Path, home: Path) -> None:
    """See that all that the manifest names is there, safe, and as large as it says."""
    infos = {info.filename: info for info in archive.infolist()}
    if len(infos) < len(archive.infolist()):  # which of two is meant nobody can say
        names = [info.filename for info in archive.infolist()]
        raise problem("backup_unsafe", file=str(file), name=_shown(next(one for one in names if names.count(one) > 1)))
    for name, (size, _) in manifest.entries.items():
        info = infos.get(name)
        if not is_safe(name) or (info is not None and stat.S_ISLNK(info.external_attr >> 16)):
            raise problem("backup_unsafe", file=str(file), name=_shown(name))
        if info is None or info.file_size != size or info.is_dir():
            raise problem("backup_damaged", file=str(file), name=_shown(name))
    needed = sum(size for size, _ in manifest.entries.values()) + _SPARE
    free = shutil.disk_usage(home).free
    if free < needed:
        raise problem("restore_space", needed=-(-needed // 1_000_000), free=free // 1_000_000)


def _manifest_of(archive: zipfile.ZipFile, file: Path) -> Manifest:
    about = archive.NameToInfo.get(NAME)
    if about is None or about.file_size > _LARGEST_MANIFEST:
        raise problem("backup_not_one", file=str(file))
    try:
        manifest = Manifest.from_json(archive.read(NAME))
    except (ValueError, RuntimeError, EOFError, zlib.error) as error:
        raise problem("backup_not_one", file=str(file)) from error
    if manifest.form > FORM or manifest.schema > HEAD:
        raise problem("backup_newer", file=str(file))
    if DATABASE not in manifest.entries:
        raise problem("backup_not_one", file=str(file))
    return manifest


def _extract(archive: zipfile.ZipFile, manifest: Manifest, file: Path, fresh: Path) -> None:
    """Write every file that the manifest names, never more of it than it says, and see that it is the one."""
    for name, (size, digest) in manifest.entries.items():
        target = fresh / name
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        found, left = hashlib.sha256(), size
        try:
            with archive.open(name) as source, target.open("xb") as written:
                target.chmod(0o600)
                while piece := source.read(_PIECE):
                    left -= len(piece)
                    if left < 0:
                        break
                    found.update(piece)
                    written.write(piece)
        except FileExistsError as error:  # two names that this system holds for one
            raise problem("backup_unsafe", file=str(file), name=_shown(name)) from error
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise problem("backup_damaged", file=str(file), name=_shown(name)) from error
        if left or found.hexdigest() != digest:
            raise problem("backup_damaged", file=str(file), name=_shown(name))
        sync_file(target)
    for folder in {path.parent for path in fresh.rglob("*")} | {fresh}:
        sync_folder(folder)


def _check_database(database: Path, manifest: Manifest, file: Path) -> None:
    """It is whole, has the schema that the manifest names, and as many rows."""
    try:
        with closing(sqlite3.connect(database)) as connection:
            whole = not wrong_with(connection, "integrity_check")
            same = revision_of(connection) == manifest.schema
            counts = {
                table: int(connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])  # noqa: S608 - checked
                for table in manifest.counts
                if table.isidentifier()
            }
    except sqlite3.Error as error:
        raise problem("backup_damaged", file=str(file), name=DATABASE) from error
    if not (whole and same and counts == manifest.counts):
        raise problem("backup_damaged", file=str(file), name=DATABASE)


def _placed(home: Path, fresh: Path, manifest: Manifest) -> Restored:
    """Put it in its place, what is there aside."""
    _close_database(home / DATABASE)
    new = sorted(one.name for one in fresh.iterdir())
    old = [name for name in _names_in(home) if name not in SECRETS or name in new]
    aside = _free_name(home)
    (home / GENERATION).unlink(missing_ok=True)  # it counted the openings of another database
    put_restored(home, fresh.name, aside.name, old, new)
    return Restored(manifest, aside if old else None, has_secret=(home / SECRET).is_file())


def _close_database(database: Path) -> None:
    """See that nobody has the old database open, and leave it in one file. One that is damaged is moved as it is.

    Raises:
        ConflictError: key `storage_in_use`.
    """
    if not database.is_file():
        return
    try:
        with alone_with(database, _PATIENCE) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError:
        return


def _free_name(home: Path) -> Path:
    beginning = f"{ASIDE}{time.strftime('%Y%m%d-%H%M%S')}"
    names = (beginning + ending for ending in ("", *(f"-{number}" for number in range(2, 1000))))
    return next(path for name in names if not (path := home / name).exists())


def _shown(name: str) -> str:
    """A name as it may be shown: on one line, not too long."""
    return "".join(sign if sign.isprintable() else "�" for sign in name)[:120]
