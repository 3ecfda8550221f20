"""A database of an older schema, opened once by a process that is killed and once by one that is not."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from core.storage.migrations.comparing import differences
from core.storage.migrations.steps import HEAD

_STORED = Path(__file__).resolve().parents[2] / "tests" / "core" / "storage" / "stored"

OLDER = sorted(one.name[:4] for one in _STORED.glob("*.db.gz") if one.name[:4] != HEAD)


def opened_twice(home: Path, schema: str, killed: Callable[[Path], None], whole: Callable[[Path], None]) -> list[str]:
    """What is wrong: until it is updated the old file must be whole, and afterwards hold the same.

    Args:
        home: Where the data folder is made, and deleted again.
        schema: One of `OLDER`.
        killed: Opens the folder, and is killed.
        whole: Opens the folder, and ends in peace; raises RuntimeError where it cannot.
    """
    home.mkdir()
    path, original = home / "parlour.db", home.with_name(f"{home.name}.original")
    original.write_bytes(gzip.decompress((_STORED / f"{schema}.db.gz").read_bytes()))
    shutil.copyfile(original, path)
    wrong: list[str] = []
    killed(home)
    found = _read(path, "PRAGMA integrity_check"), _read(path, "SELECT version_num FROM alembic_version")
    if found not in (("ok", schema), ("ok", HEAD)):
        wrong.append(f"migration from {schema}: {found}")
    try:
        whole(home)
    except RuntimeError as error:
        wrong.append(f"migration from {schema}: {error}")
    with closing(sqlite3.connect(original)) as before, closing(sqlite3.connect(path)) as after:
        # What was running is interrupted by the start, and a document whose file is not there is told: both right.
        lost = differences(before, after, {"runs", "run_events", "documents", "messages.parts", "messages.status"})
    if lost or _read(path, "SELECT version_num FROM alembic_version") != HEAD:
        wrong.append(f"migration from {schema}: {lost}")
    original.unlink()
    shutil.rmtree(home)
    return wrong


def _read(path: Path, query: str) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute(query).fetchone()[0])
