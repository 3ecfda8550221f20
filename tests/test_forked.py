"""Tests in forked processes: each is run once and told as if it ran here, and none is lost with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEVERAL = """
import os
import signal
import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    yield made
    (made.parent.parent / f"taken-down-{os.getpid()}").touch()


@pytest.mark.parametrize("number", range(100))
def test_many(number, folder):
    assert os.getpid() != int(os.environ["FIRST"])
    (folder / str(number)).mkdir()


def test_wrong(capfd):
    os.system("echo heard")
    assert capfd.readouterr().out == "heard\\n"
    print("seen")
    raise SystemError("wrong")


def test_left_out():
    pytest.skip("no reason")


def test_leaves_a_process_behind():
    pid = os.fork()
    if not pid:
        signal.pause()
    with open(os.environ["LEFT"], "w") as file:
        file.write(str(pid))
"""
APPS = """
import os
import pytest


@pytest.fixture(scope="session")
def origin(tmp_path_factory):
    (tmp_path_factory.mktemp("own").parent.parent / f"started-{os.getpid()}").touch()


@pytest.mark.parametrize("number", range(100))
def test_with_apps(number, origin):
    pass
"""
DIES = "import os\n\n\ndef test_dies():\n    os._exit(7)\n\n\ndef test_after():\n    pass\n"


def said_of(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text, "utf-8")
    program = "import os, sys, pytest; os.environ['FIRST'] = str(os.getpid()); sys.exit(pytest.main(sys.argv[1:]))"
    options = ["-q", "-p", "tests.told_at_once", "-p", "tests.forked", "--forks", "2", "-p", "no:cacheprovider"]
    options += ["-o", "addopts=", "--rootdir", str(folder), "--basetemp", str(folder / "temporary"), str(folder)]
    command = [sys.executable, "-c", program, *options]
    said = folder / "said"  # a pipe would not end before the last that has it
    environment = {**os.environ, "LEFT": str(folder / "left"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("CI", None)  # there the summary repeats each sentence whole
    with said.open("wb") as file:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=file, timeout=120, check=False)
    return said.read_text("utf-8")


def test_each_test_is_run_once_in_another_process_and_told_as_if_it_ran_here(tmp_path: Path) -> None:
    said = said_of(tmp_path, apps=APPS, several=SEVERAL)
    os.kill(int((tmp_path / "left").read_text("utf-8")), signal.SIGKILL)
    assert "FAILED at once: test_several.py::test_wrong" in said
    assert "SystemError: wrong" in said
    assert "seen" in said.partition("Captured stdout call")[2]
    assert "1 failed, 201 passed, 1 skipped" in said
    made = list((tmp_path / "temporary").glob("forked-*/made0/*"))
    assert sorted(int(one.name) for one in made) == list(range(100))
    assert len(list((tmp_path / "temporary").glob("taken-down-*"))) == len({one.parent for one in made})
    assert len(list((tmp_path / "temporary").glob("started-*"))) == 1


def test_what_a_process_took_has_failed_when_it_ends_and_the_others_are_run(tmp_path: Path) -> None:
    said = said_of(tmp_path, a=DIES, b="def test_b():\n    pass\n")
    assert "2 failed, 1 passed" in said
    assert said.count("The process of this test ended (7) before it was told how it went.") == 2


def test_where_no_process_is_left_all_have_failed(tmp_path: Path) -> None:
    said = said_of(tmp_path, **dict.fromkeys("abcd", DIES))
    assert "8 failed" in said
    assert said.count("No process was left that could run this test.") == 4
