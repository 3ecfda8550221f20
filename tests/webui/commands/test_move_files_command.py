"""`parlour move --files`: files of a data folder go into an S3 store, the same, and rows without bytes are named."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.storage.database import Database
from core.storage.files import AllFiles
from tests.grown_servers import S3Server, s3
from webui.commands.moving import move

__all__ = ["s3"]


async def fill(home: Path) -> None:
    database = await Database.open(home / "parlour.db")
    files = AllFiles(database, home / "files").of("local")
    await files.put("notes.md", b"950 stamps")
    lost = await files.put("报告.txt", b"gone")
    async with files.local(lost.id) as (_, path):
        path.unlink()
    await database.aclose()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_is_carried_is_told_and_again_what_was_there(
    lang: str, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret of the store")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.address)
    asyncio.run(fill(tmp_path))
    place = f"s3://{s3.make_bucket()}/parlour"
    for before in (0, 1):
        assert move(["--files", place, "--home", str(tmp_path), "--lang", lang]) == 0
        said = capsys.readouterr().out
        assert place in said
        assert f"{before} " in said
        assert "报告.txt" in said
        assert "a secret of the store" not in said


def test_a_place_that_is_none_and_no_place_at_all_are_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(fill(tmp_path))
    assert move(["--files", "/mnt/bucket", "--home", str(tmp_path)]) == 1
    assert "s3://bucket/parlour" in capsys.readouterr().err
    assert move(["--home", str(tmp_path)]) == 1
    assert "--to, --files" in capsys.readouterr().err


def test_where_files_cannot_be_carried_no_row_was_and_the_same_command_goes_on(
    postgres: str, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret of the store")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.address)
    asyncio.run(fill(tmp_path))
    bucket = s3.make_bucket()
    given = ["--to", postgres, "--home", str(tmp_path), "--files"]
    assert move([*given, f"s3://{bucket}-not-there/parlour"]) == 1
    assert "not-there" in capsys.readouterr().err
    assert move([*given, f"s3://{bucket}/parlour"]) == 0
    assert "PARLOUR_DATABASE" in capsys.readouterr().out
