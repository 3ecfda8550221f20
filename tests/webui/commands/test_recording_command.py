"""`parlour record` writes what `parlour demo` plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.importing.recording import read_recording
from tests.webui.commands.test_export_command import kept
from webui.__main__ import main


def test_a_conversation_is_recorded_with_what_is_said_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk, home = kept(tmp_path), ["--home", str(tmp_path), "--lang", "en"]
    tour = tmp_path / "tour.jsonl"
    assert main(["record", talk, str(tour), "--about", "Where to go.", "--say", "A question.", *home]) == 0
    assert capsys.readouterr().out.startswith(f"{tour} was made: 1 turns, 1 KB.")
    read = read_recording(tour)
    assert (read.about.title, read.about.about, read.about.said) == ("A trip", "Where to go.", ("A question.",))
    assert read.about.made == read.messages[0]["created_at"]


def test_a_file_that_is_there_is_written_over_only_where_that_is_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk, home = kept(tmp_path), ["--home", str(tmp_path), "--lang", "en"]
    tour = tmp_path / "tour.jsonl"
    tour.write_text("mine", "utf-8")
    assert main(["record", talk, str(tour), *home]) == 1
    assert capsys.readouterr().err.startswith(f"parlour: {tour} is there already. Choose another name, or add --force")
    assert tour.read_text("utf-8") == "mine"
    assert main(["record", talk, str(tour), "--force", *home]) == 0
    assert read_recording(tour).about.title == "A trip"


def test_more_sentences_than_there_are_steps_are_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk, home = kept(tmp_path), ["--home", str(tmp_path), "--lang", "en"]
    tour = tmp_path / "tour.jsonl"
    assert main(["record", talk, str(tour), "--say", "A question.", "--say", "And?", *home]) == 1
    said = capsys.readouterr()
    assert said.err == (
        "parlour: There are 2 texts of --say, and steps for 1 of them. Leave out the others; nothing was recorded.\n"
    )
    assert said.out == ""
    assert not tour.exists()


def test_what_cannot_be_recorded_or_played_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(tmp_path)
    home = ["--home", str(tmp_path), "--lang", "en"]
    assert main(["record", "x" * 22, str(tmp_path / "tour.jsonl"), *home]) == 1
    assert not (tmp_path / "tour.jsonl").exists()
    (tmp_path / "other.jsonl").write_text("{}\n")
    assert main(["demo", str(tmp_path / "other.jsonl"), *home]) == 1
    assert main(["demo", str(tmp_path / "none.jsonl"), *home]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[1].startswith(f"parlour: {tmp_path / 'other.jsonl'} is no recording, or was changed in line 1.")
    assert said[2] == f"parlour: There is no file {tmp_path / 'none.jsonl'}."
