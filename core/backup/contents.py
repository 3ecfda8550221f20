"""What of a data folder belongs into a backup: all that cannot be made again."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, cast

from core.storage.base import folder_name
from core.storage.files import suffix_for

if TYPE_CHECKING:
    from collections.abc import Iterator


DATABASE: Final = "parlour.db"
SECRET: Final = "secret"  # noqa: S105 - the name of its file
SECRETS: Final = (SECRET, "token")
"""The installation's secret, and the one that opens the page."""
INDEX: Final = "library.sqlite"
LIBRARIES: Final = "libraries"
ASIDE: Final = "before-restore-"

LAST: Final = "last-backup"
"""A file with the time of the newest backup."""

OF_A_PROCESS: Final = frozenset(
    {"address", "backups", "copies", "generation", LAST, "lost+found", "sandbox.json", "tmp", "workers"}
)
"""What is not part of the data, and stays where it is when a backup is restored."""

_OF_A_LIBRARY: Final = frozenset({"originals", INDEX})
"""The other files and folders of a library are made again: quick indices, pictures of pages, locks."""
_COMPANION: Final = re.compile(r".*\.(?:db|sqlite)(?:-wal|-shm|-journal)")
_LONGEST: Final = 400


def is_kept(name: PurePosixPath) -> bool:
    """Whether what has this name in a data folder belongs into a backup, apart from the database and the secrets."""
    parts = name.parts
    if parts[0] in OF_A_PROCESS or parts[0].startswith(ASIDE) or any(part.startswith(".") for part in parts):
        return False
    if str(name) in {DATABASE, *SECRETS} or _COMPANION.fullmatch(name.name) or name.suffix == ".lock":
        return False
    return parts[0] != LIBRARIES or len(parts) < 3 or parts[2] in _OF_A_LIBRARY


def is_index(name: PurePosixPath) -> bool:
    """Whether it is the index of a library, which is a database of its own."""
    return len(name.parts) == 3 and name.parts[0] == LIBRARIES and name.name == INDEX


def is_safe(name: str) -> bool:
    """Whether it is a name that a backup may have: relative, within the folder, on every system."""
    if not name or len(name) > _LONGEST or "\\" in name or ":" in name or not name.isprintable():
        return False
    parts = name.split("/")
    if any(part in {"", ".", ".."} or part.endswith((" ", ".")) for part in parts):
        return False
    return name in {DATABASE, *SECRETS} or is_kept(PurePosixPath(name))


def files_in(home: Path) -> Iterator[PurePosixPath]:
    """The files that belong into a backup, without the database and the secrets.

    Links are left out, and what somebody put there under a name that not every system can have: no backup may name it.
    """
    for folder, folders, files in os.walk(home):
        here = Path(folder)
        inside = PurePosixPath(here.relative_to(home).as_posix())
        folders[:] = sorted(one for one in folders if is_kept(inside / one) and not (here / one).is_symlink())
        kept = (inside / one for one in sorted(files) if is_kept(inside / one) and _is_plain(here / one))
        yield from (one for one in kept if is_safe(str(one)))


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def needed_by(database: Path) -> set[str]:
    """The files that a database names: those of messages, and the originals of documents that were read.

    Raises:
        sqlite3.Error: It cannot be read.
    """
    with closing(sqlite3.connect(database)) as connection:
        files = connection.execute("SELECT owner_id, id, media_type FROM files").fetchall()
        query = "SELECT DISTINCT owner_id, library_id FROM documents WHERE status = 'ready' AND library_id IS NOT NULL"
        texts = connection.execute(query).fetchall()
    names = {f"files/{folder_name(owner)}/{one}{suffix_for(kind)}" for owner, one, kind in files}
    return names | {f"{LIBRARIES}/{folder_name(owner)}/originals/{text}" for owner, text in texts}


NAME: Final = "parlour-backup.json"
FORM: Final = 1
COUNTED: Final = ("conversations", "messages", "files", "documents")

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SCHEMA = re.compile(r"[0-9]{4,8}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup's contents.

    Args:
        made: When, in Unix seconds.
        schema: The step of the database's schema.
        counts: Rows of the tables that people know.
        entries: Size in bytes and SHA-256 of every file, by its name in the data folder.
        form: How the file is built; a higher one is of a newer Parlour.
    """

    made: float
    schema: str
    counts: dict[str, int]
    entries: dict[str, tuple[int, str]]
    form: int = FORM

    def to_json(self) -> str:
        """As it stands in the file."""
        entries = {name: {"size": size, "sha256": digest} for name, (size, digest) in self.entries.items()}
        values = {"form": self.form, "made": self.made, "schema": self.schema, "counts": self.counts}
        return json.dumps({**values, "entries": entries}, ensure_ascii=True, indent=1)

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Read it; of a newer form only the form is known.

        Raises:
            ValueError: It is no manifest.
        """
        try:
            raw: Any = json.loads(text)
            form = int(raw["form"])
            if form > FORM:
                return cls(0.0, "", {}, {}, form)
            schema = str(raw["schema"])
            counts = {str(name): int(count) for name, count in cast("dict[str, Any]", raw["counts"]).items()}
            entries = {str(name): _entry(entry) for name, entry in cast("dict[str, Any]", raw["entries"]).items()}
            if not _SCHEMA.fullmatch(schema):
                raise ValueError(schema)
            return cls(float(raw["made"]), schema, counts, entries, form)
        except (KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise ValueError("no manifest") from error


def _entry(entry: Any) -> tuple[int, str]:
    size, digest = entry["size"], str(entry["sha256"])
    if type(size) is not int or size < 0 or not _SHA256.fullmatch(digest):
        raise ValueError(digest)
    return size, digest
