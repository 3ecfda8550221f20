"""A program that names every public name has no finding of mypy or pyright at their strictest, as a user runs them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import core
from tests.package.installing import built_wheel, environment_with

PROGRAM = Path(__file__).with_name("typed_program.py")
WRONG = """
from parlour import Library, Message, tool

@tool
def add(a: int) -> int:
    "Add one."
    return a + 1

with Library.open("library") as library:
    page: str = library.find("heron")[0].text.count("a")
name: int = add.name
Message(role=1)
"""


def test_the_program_names_every_public_name() -> None:
    tree = ast.parse(PROGRAM.read_text("utf-8"))
    imported = {one.name for node in tree.body if isinstance(node, ast.ImportFrom) for one in node.names}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not set(core.__all__) - (imported & used)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    return environment_with(built_wheel(folder), folder / "environment")


def checkers(python: Path) -> dict[str, list[str]]:
    return {
        "mypy": ["mypy", "--strict", "--python-executable", str(python), "--no-error-summary"],
        "pyright": ["pyright", "--pythonpath", str(python)],
    }


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_know_every_public_name_of_an_installed_wheel(checker: str, python: Path, tmp_path: Path) -> None:
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    (tmp_path / "program.py").write_text(PROGRAM.read_text("utf-8"), "utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, "utf-8")
    words = [sys.executable, "-m", *checkers(python)[checker]]
    right = subprocess.run([*words, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not right.returncode, right.stdout
    wrong = subprocess.run([*words, "wrong.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    found = {line.split(":")[1] for line in wrong.stdout.splitlines() if "wrong.py:" in line and "error" in line}
    assert found == {"10", "11", "12"}, wrong.stdout
