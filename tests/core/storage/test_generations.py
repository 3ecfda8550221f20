"""A database that is older than its data folder: copied without its write-ahead log, or an older copy."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from core.storage.base import LOCAL_OWNER
from tests.core.backup.lived_in import TEXT, fill, found_in, opened

pytestmark = pytest.mark.anyio


async def test_a_database_that_was_copied_without_its_log_is_told_and_takes_nothing_out_of_the_index(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "home"
    async with opened(home):
        pass
    async with opened(home) as engine:
        await fill(engine)
        shutil.copyfile(home / "parlour.db", tmp_path / "alone.db")  # and not parlour.db-wal
    shutil.copyfile(home / "parlour.db", tmp_path / "whole.db")
    shutil.copyfile(tmp_path / "alone.db", home / "parlour.db")
    for _ in range(2):  # it is told each time
        caplog.clear()
        async with opened(home) as engine:
            assert engine.readiness.notes["database_behind"]["conversations"] == 0
            async with engine.workspaces.index(LOCAL_OWNER) as library:
                assert [one.text for one in await library.afind("Who collects stamps?")] == [TEXT]
        assert "older than its data folder, with 0 conversations" in caplog.text
    shutil.copyfile(tmp_path / "whole.db", home / "parlour.db")
    assert (await found_in(home))["passages"] == [TEXT]
    async with opened(home) as engine:
        assert "database_behind" not in engine.readiness.notes


async def test_who_means_to_go_on_with_an_older_database_deletes_the_note(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with opened(home):
        pass
    shutil.copyfile(home / "parlour.db", tmp_path / "older.db")
    for _ in range(2):
        async with opened(home):
            pass
    shutil.copyfile(tmp_path / "older.db", home / "parlour.db")
    async with opened(home) as engine:
        note = Path(engine.readiness.notes["database_behind"]["note"])
    note.unlink()
    for _ in range(2):
        async with opened(home) as engine:
            assert "database_behind" not in engine.readiness.notes


async def test_ordinary_openings_say_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "core.storage.data_folder")
    for _ in range(3):
        async with opened(tmp_path / "home") as engine:
            assert "database_behind" not in engine.readiness.notes
    assert not [record for record in caplog.records if record.name == "core.storage.data_folder"]


async def test_two_that_are_open_at_once_are_no_reason_to_warn(tmp_path: Path) -> None:
    async with opened(tmp_path / "home"), opened(tmp_path / "home") as second:
        assert "database_behind" not in second.readiness.notes
    async with opened(tmp_path / "home") as engine:
        assert "database_behind" not in engine.readiness.notes
