"""What is wrong on the command line or in the settings is said in one sentence, without a traceback."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from core.errors import MissingExtraError
from webui.__main__ import main
from webui.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[3]


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr()
    lines = (said.out + said.err).strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("parlour: ")
    return lines[0]


@pytest.mark.parametrize("arguments", [["--fly"], ["--port", "many"], ["--port"], ["page"], ["--por", "1"]])
def test_an_option_that_is_wrong_is_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert any(word.strip("-") in one_line(capsys) for word in arguments)


def test_help_lists_every_command_in_order_with_a_few_words_on_each(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    listed = re.findall(r"^  ([a-z]+)\s{2,}(\S.+)$", said, re.MULTILINE)
    assert [name for name, _ in listed] == sorted(COMMANDS)
    assert all(len(about.split()) > 3 for _, about in listed)
    assert len({about for _, about in listed}) == len(listed)
    assert max(map(len, said.splitlines())) <= 80


def test_a_command_that_is_written_wrong_offers_the_near_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    with pytest.raises(SystemExit):
        main(["chek", "agent.yaml"])
    assert one_line(capsys) == "parlour: There is no command named 'chek'. Did you mean 'check' or 'schema'?"


def test_a_command_whose_extra_is_not_installed_names_it_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str, arguments: object) -> int:
        del arguments
        raise MissingExtraError(f"The command {name!r}", "sqlalchemy", "page")

    monkeypatch.setattr("webui.__main__.run_command", missing)
    assert main(["backup", "x"]) == 1
    assert "page" in one_line(capsys)


def test_a_port_that_is_no_number_is_said_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--port", "many"])
    assert "--port must be a whole number from 0 to 65535, not 'many'" in one_line(capsys)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--port", "99999"], "port"),
        (["--config", "missing.toml"], "missing.toml"),
        (["--host", "203.0.113.9"], "PARLOUR_ACCOUNTS=guests"),
    ],
)
def test_a_setting_that_is_wrong_is_named(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main([*arguments, "--home", str(tmp_path / "home")]) == 1
    assert word in one_line(capsys)


def test_a_variable_that_is_wrong_is_named_without_its_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARLOUR_PORT", "sk-secret")
    assert main(["--home", str(tmp_path / "home")]) == 1
    said = one_line(capsys)
    assert "port" in said
    assert "sk-secret" not in said


def test_a_settings_file_that_is_no_toml_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "parlour.toml").write_text("port = = 1")
    assert main(["--config", str(tmp_path / "parlour.toml"), "--home", str(tmp_path / "home")]) == 1
    assert "settings" in one_line(capsys)


def test_a_port_that_is_taken_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["--port", str(port), "--home", str(tmp_path / "home")]) == 1
    assert f"Port {port} is taken" in one_line(capsys)


def test_a_data_folder_that_cannot_be_written_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path and asked(path, mode))
    assert main(["--home", str(tmp_path)]) == 1
    assert "cannot be written. Set PARLOUR_HOME" in one_line(capsys)


_AS_SOMEBODY = """
import os, sys
import webui.__main__, webui.serving
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
sys.exit(webui.__main__.main(["--home", sys.argv[1], "--port", "0"]))
"""


def test_a_start_on_a_folder_that_others_own_ends_with_one_sentence() -> None:
    with tempfile.TemporaryDirectory() as place:  # not the test's own folder, which nobody else can walk to
        home = Path(place, "home")
        home.mkdir()
        Path(place).chmod(0o755)
        home.chmod(0o555)
        command = [sys.executable, "-c", _AS_SOMEBODY, str(home)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
        assert list(home.iterdir()) == []
        home.chmod(0o755)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"parlour: The data folder {home} cannot be written. Set PARLOUR_HOME to a folder that you may write."
    ]


def test_a_data_folder_that_cannot_be_made_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert main(["--home", str(tmp_path / "file" / "home")]) == 1
    assert "PARLOUR_HOME" in one_line(capsys)
    assert main(["--home", str(tmp_path / "file")]) == 1
    told = one_line(capsys)
    assert "file cannot be made: there is a file of that name. Set PARLOUR_HOME" in told
    assert "Errno" not in told
