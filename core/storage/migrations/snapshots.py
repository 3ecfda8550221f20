"""Snapshots of a database from before its updates: the newest three are kept, in `backups` beside it."""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from core.storage.data_folder import put_in_place, sync_file, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

KEPT: Final = 3
_COMPANIONS: Final = ("", "-wal", "-shm", "-journal")


class Snapshots:
    """The folder of snapshots of one database, and drafts of what is being made there."""

    def __init__(self, path: Path) -> None:
        self._stem = path.stem
        self._folder = path.parent / "backups"
        self._draft = self._folder / f".{path.stem}-snapshot.part"
        self.copy = self._folder / f".{path.stem}-updating.part"
        """Where the copy is updated; it goes when the update ends."""

    def begin(self) -> None:
        """Make the folder, and delete drafts that a killed process left. Raises OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self.clear()

    def clear(self) -> None:
        """Delete the drafts. Raises OSError."""
        for draft in (self._draft, self.copy):
            for ending in _COMPANIONS:
                draft.with_name(draft.name + ending).unlink(missing_ok=True)

    def take(self, connection: sqlite3.Connection) -> None:
        """Write a snapshot as a draft, down to the disk. Raises sqlite3.Error and OSError."""
        self._draft.touch(mode=0o600)  # SQLite fills an empty file and leaves its mode as it is
        connection.execute("VACUUM INTO ?", (str(self._draft),))
        sync_file(self._draft)
        sync_folder(self._folder)

    def keep(self) -> Path | None:
        """Give the snapshot of an update that was done its name, which tells schema and time; delete what is too old.

        Called again by the next opening, where the process was killed before it. A draft is there only from before the
        swap to here, so that updates that fail again and again leave one snapshot, and push out no older ones.

        Returns:
            Where it is; `None` where there was no draft, or another process gave it its name.

        Raises:
            sqlite3.Error: The snapshot cannot be read.
            OSError: The folder cannot be written.
        """
        target = None
        if self._draft.exists():
            try:
                target = self._named()
            except (sqlite3.OperationalError, FileNotFoundError):
                if self._draft.exists():
                    raise
        if target is not None:
            self._thin_out(target)
        self.clear()
        return target

    def _named(self) -> Path:
        # It may be gone by now, and is not to be made anew as an empty file.
        with closing(sqlite3.connect(f"{self._draft.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        target = self._free_name(f"{self._stem}-{revision}-{time.strftime('%Y%m%d-%H%M%S')}")
        put_in_place(self._draft, target)
        return target

    def _free_name(self, beginning: str) -> Path:
        names = (f"{beginning}{ending}.db" for ending in ("", *(f"-{number}" for number in range(2, 1000))))
        return next(path for name in names if not (path := self._folder / name).exists())

    def _thin_out(self, newest: Path) -> None:
        """Delete all but the newest three; `newest` stays, whatever the clock said."""
        shape = re.compile(re.escape(self._stem) + r"-\d{4,}-(\d{8}-\d{6})(?:-\d+)?\.db")
        dated = [(found[1], path) for path in self._folder.iterdir() if (found := shape.fullmatch(path.name))]
        older = sorted((when, path.name, path) for when, path in dated if path != newest)
        for _, _, path in older[: max(0, len(older) - (KEPT - 1))]:
            path.unlink(missing_ok=True)
