"""The faults that `make mutants` makes: each can still be made, and what is said of one is what happened."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SUM = "def total(numbers):\n    return sum(numbers)\n"
TEST = """
from added import total


def test_a_sum_is_that_of_all():
    assert total([1, 2]) == 3


def test_nothing_is_nothing():
    assert total([]) == 0
"""


@pytest.fixture
def mutants() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("mutants", ROOT / ".ci" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # data classes look for the module that they are of
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutants"]


def test_every_fault_of_the_table_can_be_made(mutants: ModuleType) -> None:
    table = mutants.load(ROOT)
    assert table
    assert mutants.problems(ROOT, table) == []


def test_what_cannot_be_made_is_told(mutants: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "added.py").write_text(SUM, "utf-8")
    (tmp_path / "test_added.py").write_text(TEST, "utf-8")
    known = "test_added.py::test_a_sum_is_that_of_all"
    wrong = [
        mutants.Mutant("twice", "added.py", "numbers", "n", (known,)),
        mutants.Mutant("no file", "gone.py", "sum", "max", (known,)),
        mutants.Mutant("nothing", "added.py", "sum(", "sum(", (known,)),
        mutants.Mutant("no test", "added.py", "sum(", "max(", ("test_added.py::test_gone",)),
        mutants.Mutant("none named", "added.py", "sum(", "max(", ()),
        mutants.Mutant("no test", "added.py", "sum(", "min(", (known,)),
    ]
    assert mutants.problems(tmp_path, wrong) == [
        "no test: there are two of this name.",
        "twice: its text occurs 2 times in added.py, and not once.",
        "no file: its text occurs 0 times in gone.py, and not once.",
        "nothing: nothing is broken.",
        "no test: there is no test test_added.py::test_gone.",
        "none named: no test is named.",
    ]


@pytest.mark.parametrize(
    ("status", "said", "noticed", "by"),
    [
        (
            1,
            "FAILED tests/test_a.py::test_b[x] - assert 1 == 2\n1 failed",
            True,
            "killed by tests/test_a.py::test_b[x]",
        ),
        (1, "ERROR tests/test_a.py::test_b\n1 error", True, "killed by tests/test_a.py::test_b"),
        (None, "", True, "killed by the time that it takes"),
        (0, "3 passed", False, "SURVIVED"),
        (2, "ERROR tests/test_a.py - SyntaxError", False, "NOTHING WAS TESTED (pytest ended with 2)"),
    ],
)
def test_a_fault_is_noticed_where_a_test_fails_or_never_ends(
    status: int | None, said: str, noticed: bool, by: str, mutants: ModuleType
) -> None:
    assert mutants.verdict(status, said) == (noticed, by)


def test_faults_are_made_in_a_copy_and_told_by_what_the_tests_say(
    mutants: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "added.py").write_text(SUM, "utf-8")
    (tmp_path / "test_added.py").write_text(TEST, "utf-8")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    faults = [
        mutants.Mutant("the largest", "added.py", "sum(numbers)", "max(numbers)", ("test_added.py",)),
        mutants.Mutant(
            "none is 0",
            "added.py",
            "sum(numbers)",
            "sum(numbers or [9])",
            ("test_added.py::test_a_sum_is_that_of_all",),
        ),
    ]
    assert mutants.run(tmp_path, faults) == 1
    said = capsys.readouterr().out
    assert "the largest: killed by test_added.py::test_a_sum_is_that_of_all" in said
    assert "none is 0: SURVIVED" in said
    assert "2 faults, 1 survived" in said
    assert (tmp_path / "added.py").read_text("utf-8") == SUM
