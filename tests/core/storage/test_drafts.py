"""A file that is put in its place is a whole one, also where several write it at the same moment."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from core.backup.bucket import FOLDER, Bucket
from core.judging.result import Row, SuiteRun
from core.judging.run_folder import Runs
from core.storage.data_folder import draft_of, drafted, put_new
from webui.commands import eval as eval_command

MANY = 8


def gets(draft: Path, target: Path) -> bool:
    """Whether a draft gets a name."""
    try:
        put_new(draft, target)
    except FileExistsError:
        return False
    return True


def test_of_several_who_write_at_once_each_has_a_draft_of_its_own_and_one_is_whole(tmp_path: Path) -> None:
    target, together = tmp_path / "report.html", Barrier(MANY)

    def write(letter: str) -> None:
        with drafted(target, lasts=False) as draft:
            draft.write_text(letter * 1000)
            together.wait(30)

    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(write, "abcdefgh"))
    said = target.read_text()
    assert said == said[0] * 1000
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("lasts", [True, False])
def test_who_may_read_the_file_may_read_what_takes_its_place_and_nobody_else(tmp_path: Path, *, lasts: bool) -> None:
    target = tmp_path / "export.html"
    target.touch()
    for rights in (0o600, 0o640):
        target.chmod(rights)
        with drafted(target, lasts=lasts) as draft:
            assert draft.stat().st_mode & 0o777 == rights
            draft.write_text("private")
        assert target.stat().st_mode & 0o777 == rights


@pytest.mark.parametrize("lasts", [True, False])
def test_where_writing_fails_the_file_is_as_it_was_and_no_draft_stays(tmp_path: Path, *, lasts: bool) -> None:
    target = tmp_path / "report.html"
    target.write_text("before")

    def fail() -> None:
        with drafted(target, lasts=lasts) as draft:
            draft.write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_draft_of_a_file_with_the_longest_name_can_be_written(tmp_path: Path) -> None:
    for name in ("x" * 255, "险" * 85):
        with drafted(tmp_path / name) as draft:
            draft.write_text("whole")
        assert (tmp_path / name).read_text() == "whole"


@pytest.mark.parametrize("has_links", [True, False])
def test_a_name_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool) -> None:
    def none(source: object, target: object) -> None:
        raise OSError("no links here")

    if not has_links:
        monkeypatch.setattr("core.storage.data_folder.os.link", none)
    target = tmp_path / "run.json"
    for said in ("first", "second"):
        draft_of(target).write_text("of another")
        draft = draft_of(target)
        draft.write_text(said)
        assert gets(draft, target) is (said == "first")
    assert target.read_text() == "first"


def test_where_there_are_no_links_of_two_at_the_same_moment_one_gets_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, got = tmp_path / "run.json", list[bool]()
    drafts = [draft_of(target) for _ in range(2)]
    for draft in drafts:
        draft.write_text(draft.name)
    replace = Path.replace

    def none(source: object, target: object) -> None:
        raise OSError("no links here")

    def meanwhile(self: Path, target: Path) -> Path:
        if self == drafts[0]:
            got.append(gets(drafts[1], target))
        return replace(self, target)

    monkeypatch.setattr("core.storage.data_folder.os.link", none)
    monkeypatch.setattr(Path, "replace", meanwhile)
    got.append(gets(drafts[0], target))
    assert got == [False, True]
    assert target.read_text() == drafts[0].name


def test_a_mount_that_syncs_no_folders_takes_files_and_other_trouble_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, sync = tmp_path / "note", os.fsync
    trouble = errno.EINVAL

    def refuses(opened: int) -> None:
        if stat.S_ISDIR(os.fstat(opened).st_mode):
            raise OSError(trouble, "no")
        sync(opened)

    monkeypatch.setattr("core.storage.data_folder.os.fsync", refuses)
    with drafted(target) as draft:
        draft.write_text("whole")
    assert target.read_text() == "whole"
    trouble = errno.EIO
    with pytest.raises(OSError, match="no"), drafted(target) as draft:
        draft.write_text("again")


def test_of_two_runs_of_a_suite_that_end_at_once_both_are_kept(tmp_path: Path) -> None:
    together = Barrier(MANY)

    def end(number: int) -> None:
        runs = Runs(tmp_path, "small")
        rows = (Row("a", "m-n", "What?", str(number) * 10_000),)
        together.wait(30)
        runs.finished(SuiteRun("small", f"model {number}", "2026-01-01T00:00:00+00:00", rows), None)

    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(end, range(MANY)))
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == sorted(
        f"20260101000000{f'-{n}' if n > 1 else ''}.json" for n in range(1, MANY + 1)
    )
    kept = Runs(tmp_path, "small").finished(SuiteRun("small", "last", "2026-01-01T00:00:01+00:00", ()), None)
    assert kept.before is not None


def test_a_report_is_written_under_a_draft_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    replace = Path.replace

    def noted(self: Path, target: Path) -> Path:
        used.append(self.name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", noted)
    write: Any = vars(eval_command)["_written"]
    for _ in range(2):
        write(tmp_path / "report.md", "All is well.")
    assert len({*used}) == 2


def test_what_a_killed_process_had_begun_to_copy_into_a_bucket_is_deleted_a_day_later(tmp_path: Path) -> None:
    home, place = tmp_path / "home", tmp_path / "bucket"
    folder = place / FOLDER / "files" / "o"
    folder.mkdir(parents=True)
    home.mkdir()
    old, new = (draft_of(folder / "a.txt") for _ in range(2))
    for draft in (old, new):
        draft.write_text("half")
    os.utime(old, (0, 0))
    sqlite3.connect(home / "parlour.db").close()
    (home / "parlour.db").touch()
    assert Bucket(home, place).put()
    assert (old.exists(), new.exists()) == (False, True)
