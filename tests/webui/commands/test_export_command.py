"""`parlour export`: what is in the data folder, without a model and without the page."""

from __future__ import annotations

import asyncio
import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from core.export.markdown import MarkdownWriter
from core.export.schema import read_export
from core.messages.message import Message
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from webui.__main__ import main


def kept(home: Path, owner: str = "local") -> str:
    async def fill() -> str:
        database = await Database.open(home / "parlour.db")
        talks = partial(ConversationStore, database)
        talk = await talks(owner).create("A trip")
        await talks(owner).add_message(talk.id, "user", [Message("user", "Where to?")], None)
        await database.aclose()
        return talk.id

    return asyncio.run(fill())


def test_a_conversation_is_listed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk = kept(tmp_path)
    home = ["--home", str(tmp_path), "--lang", "en"]
    assert main(["export", *home]) == 0
    listed = capsys.readouterr().out
    assert listed.startswith(f"{talk}  20")
    assert listed.endswith("  A trip\n")
    assert main(["export", talk, *home]) == 0
    assert "Where to?" in capsys.readouterr().out
    path = tmp_path / "talk.json"
    assert main(["export", talk, "--format", "json", "--out", str(path), *home]) == 0
    assert read_export(path).turns[0].messages[0].content == "Where to?"
    assert not list(tmp_path.glob(".*.part"))


def test_a_bundle_of_all_comes_into_another_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there, bundle = tmp_path / "here", tmp_path / "there", tmp_path / "all.zip"
    here.mkdir()
    talk = kept(here)
    assert main(["export", "--bundle", str(bundle), "--home", str(here), "--lang", "en"]) == 0
    assert capsys.readouterr().out == f"{bundle}: 1 conversation.\n"
    assert main(["import", str(bundle), "--home", str(there), "--lang", "en"]) == 0
    assert capsys.readouterr().out == "1 conversation came in from Parlour: 1 message.\n"
    assert main(["import", str(bundle), "--home", str(there), "--lang", "en"]) == 0
    assert capsys.readouterr().out == "Nothing new came in: 1 conversation was here already.\n"
    assert main(["import", str(bundle), "--again", "--home", str(there), "--lang", "zh"]) == 0
    assert capsys.readouterr().out == "已从 Parlour 导入 1 个对话：1 条消息。\n"
    assert main(["export", talk, "--home", str(there), "--lang", "en"]) == 0
    assert "Where to?" in capsys.readouterr().out
    bundle.write_bytes(bundle.read_bytes()[:-40])
    assert main(["import", str(bundle), "--home", str(there), "--lang", "en"]) == 1
    assert capsys.readouterr().err.startswith(f"parlour: {bundle} is damaged or was changed. Export it again")


def test_what_cannot_be_taken_in_makes_no_data_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rubbish, there = tmp_path / "rubbish.json", tmp_path / "there"
    for data in (b"no JSON", b"PK\x03\x04 no archive", b"[{}]"):
        rubbish.write_bytes(data)
        assert main(["import", str(rubbish), "--home", str(there), "--lang", "en"]) == 1
        assert capsys.readouterr().err.startswith("parlour: ")
        assert not there.exists()


def test_several_are_one_archive(tmp_path: Path) -> None:
    talks = [kept(tmp_path), kept(tmp_path)]
    out = tmp_path / "talks.zip"
    assert main(["export", *talks, "--format", "html", "--out", str(out), "--home", str(tmp_path), "--lang", "en"]) == 0
    assert sorted(zipfile.ZipFile(out).namelist()) == ["A trip (2).html", "A trip.html"]


def test_a_file_is_written_where_it_was_named_and_nowhere_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = kept(tmp_path)
    home = ["--home", str(tmp_path), "--lang", "en"]
    behind, link = tmp_path / "behind.md", tmp_path / "link.md"
    link.symlink_to(behind)
    assert main(["export", talk, "--out", str(link), *home]) == 0
    assert link.is_symlink()
    assert "Where to?" in behind.read_text(encoding="utf-8")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(pipe.read_text, encoding="utf-8")
        assert main(["export", talk, "--out", str(pipe), *home]) == 0
        assert "Where to?" in read.result(timeout=30)
    assert pipe.is_fifo()
    capsys.readouterr()
    for out in (".", str(tmp_path), str(tmp_path / "no" / "file.md")):
        assert main(["export", talk, "--out", out, *home]) == 1
        assert capsys.readouterr().err.startswith(f"parlour: The file {out} cannot be written: ")


def test_an_id_that_begins_like_an_option_is_an_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = "-3uSrkWsDZsFIS9pjv0JEQ"
    monkeypatch.setattr("core.storage.base.secrets.token_urlsafe", lambda _: odd)
    assert kept(tmp_path) == odd
    for arguments in ([odd, "--home", str(tmp_path)], ["--home", str(tmp_path), odd]):
        assert main(["export", *arguments]) == 0
        assert "Where to?" in capsys.readouterr().out


def test_what_is_not_there_is_said_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = kept(tmp_path, owner="somebody")
    for arguments in ([other, "--home", str(tmp_path)], ["x", "--home", str(tmp_path / "empty")]):
        assert main(["export", *arguments, "--lang", "en"]) == 1
        said = capsys.readouterr()
        assert said.err.startswith("parlour: There is no ")
        assert said.err.count("\n") == 1
        assert not said.out
    assert not (tmp_path / "empty").exists()
    assert main(["export", other, "--owner", "somebody", "--home", str(tmp_path)]) == 0


def test_an_interrupted_export_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    talk, out = kept(tmp_path), tmp_path / "out" / "talk.md"
    out.parent.mkdir()

    def pressed(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(MarkdownWriter, "turns", pressed)
    assert main(["export", talk, "--out", str(out), "--home", str(tmp_path)]) == 130
    assert not list(out.parent.iterdir())
    assert not capsys.readouterr().err
