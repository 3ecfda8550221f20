"""How the size of the house is counted, and that `docs/decisions.md` tells it as it is."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
NEAR = 0.05  # of a figure: the page is not written anew for each file
FILE = '''"""What it is."""

from __future__ import annotations

import os  # a comment behind code

# A comment.
FIRST = 1
"""What a name is."""


def given(owner: str, *, other: int = 2) -> str:
    """Say it.

    Args:
        owner: Whose.
    """
    from pathlib import Path

    return f"{owner}{other}{Path()}"
'''


@pytest.fixture(scope="module")
def measure() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("measure", ROOT / ".ci" / "measure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["measure"] = module  # data classes look for the module that they are of
    spec.loader.exec_module(module)
    yield module
    del sys.modules["measure"]


def test_each_line_of_a_file_counts_as_one_thing(measure: ModuleType) -> None:
    found = measure.count(FILE)
    assert (found.lines, found.code, found.docstrings, found.imports) == (20, 3, 7, 3)
    assert (found.functions, found.owned) == ([9], 1)
    assert {"os", "pathlib", "pathlib.Path"} <= found.imported


def test_circles_are_told_with_all_that_are_in_them(measure: ModuleType) -> None:
    imports = {"a": {"b", "x"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": {"d"}, "f": {"f"}}
    assert measure.circles(imports) == [["a", "b", "c"], ["d", "e"]]


def test_the_size_of_the_house_is_told_as_it_is(measure: ModuleType) -> None:
    page = (ROOT / "docs" / "decisions.md").read_text("utf-8")
    told = dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE))
    wrong = [
        f"{name} is {value}, and is told as {told.get(name)}; `python .ci/measure.py` prints the rows."
        for name, value in measure.figures(ROOT).items()
        if not near(value, told.get(name, ""))
    ]
    assert not wrong


def near(value: float | str, told: str) -> bool:
    """Whether what is told is the figure, give or take some per cent."""
    number = re.match(r"[\d,.]+", told)
    if isinstance(value, str) or number is None:
        return value == told
    return abs(float(number.group().replace(",", "")) - value) <= NEAR * value
