"""Updates a database again and again, and ends the process at every moment of it: `killed_updates.py DATABASE STRIDE`.

With a stride above 1 it is ended at one of so many moments, and at each of the last ones, when the new takes its place.

A moment is the beginning of a statement, on whichever connection, and each step of copying pages. The work is done in
a child that is forked for each moment, so that importing and compiling are paid once. What a killed update leaves
stays for the next one, as on a machine that fails again and again. Nothing waits for the disk: what a killed process
has written stays in the system's cache. Prints what it found as JSON.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import alembic.command  # noqa: F401 - imported once, before the forks
import sqlalchemy  # noqa: F401 - the same

from core.storage.migrations.comparing import differences
from core.storage.migrations.steps import HEAD
from core.storage.migrations.upgrade import bring_up_to_date

_COMPLETED = 10  # after each so many moments the update is begun once more in a copy, and not killed
_LAST = 10  # moments that no stride leaves out
_PAGES = 6  # of one step, of the sixty or so that a stored database has


class Moments:
    """Counts moments; at the last one the process is killed."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.seen = 0
        self.steps = 0  # statements that change the schema

    def pass_by(self, *what: Any) -> None:
        self.seen += 1
        self.steps += str(what[0]).lstrip().startswith(("CREATE ", "ALTER ", "DROP "))
        if self.seen == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def count_in(moments: Moments) -> None:
    """From now on every connection tells its moments."""
    connect = sqlite3.connect

    class Told(sqlite3.Connection):
        def backup(self, target: sqlite3.Connection, **_: Any) -> None:
            super().backup(target, pages=_PAGES, progress=moments.pass_by)

        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return super().execute("PRAGMA synchronous=OFF" if "synchronous=" in sql else sql, *values)

    def told(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **{**options, "factory": Told})
        connection.execute("PRAGMA synchronous=OFF")
        connection.set_trace_callback(moments.pass_by)
        return connection

    sqlite3.connect = sqlite3.dbapi2.connect = told  # pyright: ignore[reportAttributeAccessIssue]
    os.fsync = lambda _: None


def in_a_child(path: Path, last: int) -> tuple[int, list[int]]:
    """Update in a child that is killed at moment `last` (0: never).

    Returns:
        The signal that ended it, and of one that was not killed its moments, and how many of them change the schema.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            moments = Moments(last)
            count_in(moments)
            bring_up_to_date(path)
            os.write(writing, f"{moments.seen} {moments.steps}".encode())
            code = 0
        except BaseException:  # what it was is all that the test can tell of it
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    seen = [int(number) for number in os.read(reading, 40).split()]
    os.close(reading)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"The update failed at moment {last}.")
    return (os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0), seen


def revision_in(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            return found
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def what_is_wrong(original: Path, path: Path, schema: str) -> list[str]:
    """What an opening finds: the old database as it was, or the new one with all that the old one held."""
    revision = revision_in(path)
    if revision not in {schema, HEAD}:
        return [f"neither old nor new: {revision}"]
    with closing(sqlite3.connect(original)) as before, closing(sqlite3.connect(path)) as after:
        lost = differences(before, after)
        same = before.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()
        if revision == schema and same != after.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall():
            lost.append("the old database has other tables")
    return lost


def next_start(source: Path, home: Path, schema: str, last: int) -> list[str]:
    """What is wrong once an update that was killed is begun again, and not killed."""
    path = home / "parlour.db"
    in_a_child(path, 0)
    wrong = what_is_wrong(source, path, schema)
    if revision_in(path) != HEAD:
        wrong.append("the next start did not complete it")
    wrong += [f"{one.name} was left" for one in home.rglob(".*")]
    kept = [one for one in (home / "backups").iterdir() if revision_in(one) == schema]
    wrong += [] if kept and len(kept) <= 3 else [f"{len(kept)} snapshots"]
    return [f"moment {last}, next start: {what}" for what in wrong]


def main() -> None:
    source, stride = Path(sys.argv[1]), int(sys.argv[2])
    schema = revision_in(source)
    wrong: list[str] = []
    ends: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        home, beside = Path(folder) / "home", Path(folder) / "beside"
        path = home / "parlour.db"
        beside.mkdir()
        shutil.copyfile(source, beside / "parlour.db")
        bring_up_to_date(beside / "parlour.db")  # what a first update loads and compiles is there for the forks
        gc.freeze()
        moments, steps, last, began_anew = 0, 0, 0, True
        while last <= moments:
            if began_anew:
                shutil.rmtree(home, ignore_errors=True)
                home.mkdir()
                shutil.copyfile(source, path)
            if not last:
                _, (moments, steps) = in_a_child(path, 0)
                last = 1
                continue
            ended, _ = in_a_child(path, last)
            if ended != signal.SIGKILL:
                wrong.append(f"moment {last}: not killed")
            wrong += [f"moment {last}: {what}" for what in what_is_wrong(source, path, schema)]
            revision = revision_in(path)
            ends[revision] = ends.get(revision, 0) + 1
            began_anew = revision == HEAD
            if began_anew or last % _COMPLETED == 0:
                shutil.rmtree(beside, ignore_errors=True)
                shutil.copytree(home, beside)
                wrong += next_start(source, beside, schema, last)
            last += stride if last + stride <= moments - _LAST else 1
    print(json.dumps({"moments": moments, "steps": steps, "ends": ends, "wrong": wrong}))


if __name__ == "__main__":
    main()
