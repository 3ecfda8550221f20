"""`parlour backup` and `parlour restore`, in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.webui.commands.test_export_command import kept
from webui.__main__ import main


def said(capsys: pytest.CaptureFixture[str]) -> str:
    both = capsys.readouterr()
    return both.out + both.err


def test_a_data_folder_goes_into_a_file_and_comes_out_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(tmp_path / "home")
    file, there = str(tmp_path / "b.zip"), str(tmp_path / "there")
    assert main(["backup", file, "--home", str(tmp_path / "home"), "--lang", "en"]) == 0
    told = said(capsys)
    assert "1 conversation, 1 message, 0 files" in told
    assert "The secret is not in it" in told
    assert main(["restore", file, "--home", there, "--lang", "en"]) == 0
    told = said(capsys)
    assert "1 conversation," in told
    assert "The backup has no secret" in told
    assert main(["export", "--home", there]) == 0
    assert "A trip" in said(capsys)
    assert main(["restore", file, "--home", there, "--lang", "en"]) == 1
    assert "--replace" in said(capsys)
    assert main(["restore", file, "--home", there, "--replace", "--lang", "en"]) == 0
    assert "before-restore-" in said(capsys)


def test_the_secret_goes_along_when_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path / "home")
    home = ["--home", str(tmp_path / "home"), "--lang", "en"]
    assert main(["backup", str(tmp_path / "none.zip"), "--with-secret", *home]) == 0
    assert "PARLOUR_SECRET" in said(capsys)
    (tmp_path / "home" / "secret").write_text("s" * 40, "ascii")
    assert main(["backup", str(tmp_path / "b.zip"), "--with-secret", *home]) == 0
    assert "whoever has the file can read the keys" in said(capsys)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["backup", "{folder}/b.zip"], "中没有数据库。请用 --home 指定数据文件夹。"),
        (["restore", "{folder}/none.zip"], "没有文件"),
        (["restore", "{folder}/text.zip"], "不是 Parlour 的备份，或者不完整。请使用另一个备份。"),
    ],
)
def test_what_goes_wrong_is_one_sentence_in_chinese_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    (tmp_path / "text.zip").write_text("hello", "utf-8")
    filled = [one.format(folder=tmp_path) for one in arguments]
    assert main([*filled, "--home", str(tmp_path / "home"), "--lang", "zh"]) == 1
    told = said(capsys)
    assert sentence in told
    assert told.count("\n") == 1
    assert "Traceback" not in told
