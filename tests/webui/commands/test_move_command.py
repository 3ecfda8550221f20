"""`parlour move`."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from core.storage.tables import metadata
from webui.commands.data_folder import backup, restore
from webui.commands.moving import move

STORED = Path(__file__).parents[2] / "core" / "storage" / "stored" / "0015.db.gz"


def test_it_tells_what_it_carried_and_what_to_do_next(
    tmp_path: Path, postgres: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "parlour.db").write_bytes(gzip.decompress(STORED.read_bytes()))
    note = tmp_path / "notes" / "local" / "diary"  # of a Parlour that kept them in files
    note.parent.mkdir(parents=True)
    note.write_text("Windy.", "utf-8")
    assert move(["--to", postgres, "--home", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "messages: " in told.err
    with psycopg.connect(postgres) as connection:
        assert connection.execute("SELECT key, value FROM notes").fetchall() == [("diary", "Windy.")]
    assert "PARLOUR_DATABASE" in told.out
    assert move(["--to", postgres, "--home", str(tmp_path), "--lang", "zh"]) == 1
    assert "那个数据库中已有内容" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "said"),
    [("sqlite:///x", "postgresql://name:password@host"), ("postgresql://x@127.0.0.1:1/x", "cannot be reached")],
)
def test_a_wrong_address_is_one_sentence(
    address: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "parlour.db").write_bytes(gzip.decompress(STORED.read_bytes()))
    assert move(["--to", address, "--home", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    # An older Parlour kept the words of messages with what is between them.
    tables = [name for name in metadata.tables if name != "message_texts"]
    with closing(sqlite3.connect(path)) as connection:
        return {name: connection.execute(f'SELECT * FROM "{name}" ORDER BY 1, 2').fetchall() for name in tables}


def test_a_backup_of_a_database_that_is_shared_is_one_like_any_other(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, fresh = tmp_path / "home", tmp_path / "fresh"
    home.mkdir()
    (home / "parlour.db").write_bytes(gzip.decompress(STORED.read_bytes()))
    assert move(["--to", postgres, "--home", str(home)]) == 0
    before = rows_of(home / "parlour.db")
    (home / "parlour.db").unlink()
    monkeypatch.setenv("PARLOUR_DATABASE", postgres)
    assert backup([str(tmp_path / "all.zip"), "--home", str(home)]) == 0
    assert restore([str(tmp_path / "all.zip"), "--home", str(fresh)]) == 0
    assert "parlour move" in capsys.readouterr().out
    assert rows_of(fresh / "parlour.db") == before
    assert sum(map(len, before.values())) > 20


def test_a_folder_without_data_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert move(["--to", "postgresql://x@127.0.0.1:1/x", "--home", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err
