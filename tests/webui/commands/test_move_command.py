"""`parlour move`."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from webui.commands.moving import move

STORED = Path(__file__).parents[2] / "core" / "storage" / "stored" / "0015.db.gz"


def test_it_tells_what_it_carried_and_what_to_do_next(
    tmp_path: Path, postgres: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "parlour.db").write_bytes(gzip.decompress(STORED.read_bytes()))
    assert move(["--to", postgres, "--home", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "messages: " in told.err
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


def test_a_folder_without_data_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert move(["--to", "postgresql://x@127.0.0.1:1/x", "--home", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err
