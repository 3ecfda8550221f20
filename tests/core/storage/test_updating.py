"""Updates of a database with data: a snapshot, a copy that is updated and compared, the swap; and what refuses one."""

from __future__ import annotations

import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConflictError, NoSpaceError, StorageError
from core.storage.migrations import comparing, snapshots, steps, updating
from core.storage.migrations.upgrade import bring_up_to_date

OLD = "0003"
_HOLDS_OPEN = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("SELECT count(*) FROM owners").fetchone()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of an older schema with an owner and a conversation."""
    path = tmp_path / "home" / "parlour.db"
    path.parent.mkdir()
    steps.run_steps(path, OLD)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("INSERT INTO owners VALUES ('somebody', 1.0)")
        connection.execute("INSERT INTO conversations VALUES ('c', 'somebody', 'A trip', NULL, 1.0, 2.0)")
        connection.commit()
    return path


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def schema_of(path: Path) -> object:
    return rows(path, "SELECT version_num FROM alembic_version")[0][0]


def snapshots_of(path: Path) -> list[Path]:
    return sorted((path.parent / "backups").iterdir())


def hurt(monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    """Let the steps do harm to the copy that they run on."""
    real: Callable[[Path], None] = steps.run_steps

    def harming(copy: Path) -> None:
        real(copy)
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute(harm)
            connection.commit()

    monkeypatch.setattr(updating, "run_steps", harming)


def test_a_database_with_data_is_kept_as_a_snapshot_before_it_is_updated(path: Path) -> None:
    bring_up_to_date(path)
    assert schema_of(path) == steps.HEAD
    assert rows(path, "SELECT title FROM conversations") == [("A trip",)]
    (snapshot,) = snapshots_of(path)
    assert schema_of(snapshot) == OLD
    assert rows(snapshot, "SELECT title FROM conversations") == [("A trip",)]
    assert stat.S_IMODE(snapshot.stat().st_mode) == 0o600


def test_the_steps_run_on_a_copy_and_never_on_the_database_itself(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Path] = []
    real = steps.run_steps

    def watched(copy: Path) -> None:
        ran.append(copy)
        real(copy)

    monkeypatch.setattr(updating, "run_steps", watched)
    bring_up_to_date(path)
    assert len(ran) == 1
    assert ran[0] != path


def test_an_updated_file_keeps_its_mode_its_links_and_its_way_of_writing(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(path)
    path.chmod(0o640)
    number = path.stat().st_ino
    bring_up_to_date(tmp_path / "link.db")
    assert (tmp_path / "link.db").is_symlink()
    assert (path.stat().st_ino, stat.S_IMODE(path.stat().st_mode)) == (number, 0o640)
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert not list(path.parent.glob("parlour.db-*"))


def test_three_snapshots_are_kept_and_files_of_other_names_are_left_alone(path: Path) -> None:
    folder = path.parent / "backups"
    folder.mkdir()
    older = ["20250101-000000", "20250102-000000", "20250103-000000", "20250104-000000"]
    for when in older:
        shutil.copyfile(path, folder / f"parlour-0002-{when}.db")
    (folder / "my own copy.db").touch()
    bring_up_to_date(path)
    names = [one.name for one in snapshots_of(path)]
    assert names[:3] == ["my own copy.db", "parlour-0002-20250103-000000.db", "parlour-0002-20250104-000000.db"]
    assert len(names) == 4


def test_a_clock_that_stepped_back_does_not_cost_the_newest_snapshot(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = path.parent / "backups"
    folder.mkdir()
    for day in range(1, 5):
        shutil.copyfile(path, folder / f"parlour-0002-2099010{day}-000000.db")
    monkeypatch.setattr(snapshots.time, "strftime", lambda _: "19700101-000000")
    bring_up_to_date(path)
    assert f"parlour-{OLD}-19700101-000000.db" in [one.name for one in snapshots_of(path)]
    assert len(snapshots_of(path)) == snapshots.KEPT


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("DELETE FROM conversations", "conversations had 1 rows and has 0"),
        ("UPDATE conversations SET title = 'Another'", "rows of the table conversations differ"),
        ("DROP TABLE file_uses", "table file_uses is gone"),
        ("ALTER TABLE conversations DROP COLUMN title", "column conversations.title is gone"),
        ("INSERT INTO messages SELECT 'm','gone','c',NULL,'user','[]',NULL,'complete',1.0", "messages had 0 rows"),
    ],
)
def test_an_update_that_would_lose_or_change_something_is_not_made(
    path: Path, monkeypatch: pytest.MonkeyPatch, harm: str, said: str
) -> None:
    before = path.read_bytes()
    hurt(monkeypatch, harm)
    with pytest.raises(StorageError) as caught:
        bring_up_to_date(path)
    assert caught.value.words_key == "storage_update_lost"
    assert said in str(caught.value)
    assert path.read_bytes() == before
    assert snapshots_of(path) == []
    monkeypatch.undo()
    bring_up_to_date(path)
    assert schema_of(path) == steps.HEAD


def test_what_a_step_says_that_it_changes_may_change_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurt(monkeypatch, "UPDATE conversations SET title = 'Another'")
    monkeypatch.setattr(updating, "changed_on_purpose", lambda _: {"conversations.title"})
    bring_up_to_date(path)
    assert rows(path, "SELECT title FROM conversations") == [("Another",)]


def test_the_declared_changes_of_a_step_name_tables_and_columns_that_there_are() -> None:
    named = steps.changed_on_purpose("0001")
    assert all(re.fullmatch(r"\w+(\.\w+)?", one) for one in named)


def test_two_rows_that_changed_places_are_the_same_and_two_that_changed_values_are_not(tmp_path: Path) -> None:
    def made(name: str, *values: tuple[int, str]) -> sqlite3.Connection:
        connection = sqlite3.connect(tmp_path / name)
        connection.execute("CREATE TABLE t (a, b)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", values)
        return connection

    with (
        closing(made("1", (1, "x"), (2, "y"))) as first,
        closing(made("2", (2, "y"), (1, "x"))) as moved,
        closing(made("3", (1, "y"), (2, "x"))) as mixed,
    ):
        assert comparing.differences(first, moved) == []
        assert comparing.differences(first, mixed) == ["rows of the table t differ"]
        assert comparing.differences(first, mixed, {"t.b"}) == []


def test_a_database_that_another_process_has_open_is_not_updated_under_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(updating, "PATIENCE", 0.05)
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS_OPEN, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(ConflictError) as caught:
            bring_up_to_date(path)
        assert caught.value.words_key == "storage_in_use"
        assert schema_of(path) == OLD
        other.communicate()
    bring_up_to_date(path)
    assert schema_of(path) == steps.HEAD


def test_an_update_waits_for_a_process_that_is_about_to_end(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS_OPEN, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "open\n"
        other.stdin.close()  # it ends in its own time
        bring_up_to_date(path)
    assert schema_of(path) == steps.HEAD


def test_what_stood_in_the_write_ahead_log_of_a_killed_process_is_in_the_updated_database(path: Path) -> None:
    program = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1])\n"
        "c.execute(\"UPDATE conversations SET title = 'Only in the log'\")\n"
        "c.commit()\n"
        "os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert path.with_name("parlour.db-wal").stat().st_size
    bring_up_to_date(path)
    assert rows(path, "SELECT title FROM conversations") == [("Only in the log",)]
    assert rows(snapshots_of(path)[0], "SELECT title FROM conversations") == [("Only in the log",)]


def test_without_space_for_the_copies_nothing_is_begun_and_the_sentence_has_the_figures(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(updating.shutil, "disk_usage", lambda _: usage(10**9, 10**9, 3_000_000))
    with pytest.raises(NoSpaceError) as caught:
        bring_up_to_date(path)
    assert caught.value.words_key == "storage_update_space"
    assert "needs 18 MB of free space, and there are 3" in str(caught.value)
    assert not (path.parent / "backups").exists()


def test_a_disk_that_fills_up_in_the_swap_leaves_the_old_database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = updating.swap

    def on_a_full_disk(copy: Path, live: sqlite3.Connection) -> None:
        pages = live.execute("PRAGMA page_count").fetchone()[0]
        live.execute(f"PRAGMA max_page_count={pages}")
        real(copy, live)

    monkeypatch.setattr(updating, "swap", on_a_full_disk)
    with pytest.raises(NoSpaceError):
        bring_up_to_date(path)
    assert schema_of(path) == OLD
    assert snapshots_of(path) == []
    monkeypatch.undo()
    bring_up_to_date(path)
    assert schema_of(path) == steps.HEAD


def test_a_database_that_does_not_write_ahead_does_so_from_now_on(path: Path) -> None:
    bring_up_to_date(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    bring_up_to_date(path)
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]


@pytest.mark.parametrize("moment", ["looked at", "named"])
def test_of_two_that_find_the_snapshot_of_a_killed_update_one_keeps_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    bring_up_to_date(path)
    (snapshot,) = snapshots_of(path)
    snapshot.rename(snapshot.with_name(".parlour-snapshot.part"))
    other: list[object] = []

    def after_the_other(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            if not other:
                other.append("begins")
                other.append(snapshots.Snapshots(path).keep())
            return real(*args, **options)

        return called

    if moment == "named":
        monkeypatch.setattr(snapshots, "put_in_place", after_the_other(snapshots.put_in_place))
    else:
        monkeypatch.setattr(snapshots.sqlite3, "connect", after_the_other(sqlite3.connect))
    assert snapshots.Snapshots(path).keep() is None
    monkeypatch.undo()
    assert snapshots_of(path) == other[1:]
    bring_up_to_date(path)


def test_nobody_begins_an_update_while_another_opens_the_database(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring_up_to_date(path)
    kept: list[object] = []

    def keep(one: snapshots.Snapshots) -> None:
        with pytest.raises(ConflictError), updating.alone_with(path, 0.01):
            pass
        kept.append(one)

    monkeypatch.setattr(snapshots.Snapshots, "keep", keep)
    bring_up_to_date(path)
    assert kept


def test_a_copy_that_is_gone_takes_the_place_of_nothing(path: Path) -> None:
    with closing(sqlite3.connect(path)) as live, pytest.raises(sqlite3.OperationalError):
        updating.swap(path.with_name("gone.db"), live)
    assert rows(path, "SELECT title FROM conversations") == [("A trip",)]
