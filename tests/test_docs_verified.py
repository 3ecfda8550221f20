"""What `docs/verified.md` names as a proof is there, each file and each test in it; and no finding lacks its row."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NAMED = re.compile(r"(tests/[\w/]+\.py)|::(test_\w+)")
_LAST = {"S": 7, "B": 12, "F": 8, "L": 5, "W": 37}  # the last finding of each kind
_PROOF = r"tests/[\w/]+\.py|not built"


@cache
def functions_of(name: str) -> frozenset[str]:
    path = ROOT / name
    tree = ast.parse(path.read_bytes()) if path.is_file() else ast.Module([], [])
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def missing(text: str) -> Iterator[str]:
    """What is named and not there; `::test_name` alone belongs to the file that was named last."""
    file = ""
    for found in _NAMED.finditer(text):
        file = found[1] or file
        if not functions_of(file) or (found[2] and found[2] not in functions_of(file)):
            yield f"line {text.count(chr(10), 0, found.start()) + 1}: {file}::{found[2] or ''}"


def test_every_test_that_is_named_as_a_proof_is_there() -> None:
    text = (ROOT / "docs" / "verified.md").read_text(encoding="utf-8")
    assert len(_NAMED.findall(text)) > 300
    assert list(missing(text)) == []


def test_a_proof_that_is_gone_is_found() -> None:
    text = "tests/test_docs_verified.py::test_a_proof_that_is_gone_is_found, ::test_gone; tests/gone.py"
    assert list(missing(text)) == ["line 1: tests/test_docs_verified.py::test_gone", "line 1: tests/gone.py::"]


def findings(text: str) -> Iterator[tuple[str, str, str]]:
    """Number, finding and proof of each row of the table of findings."""
    table = text.partition("## Findings of the trials, by number\n")[2].partition("\n## ")[0]
    for line in table.splitlines():
        number, found, proof = ([cell.strip() for cell in line.split(" | ")] + ["", ""])[:3]
        if re.fullmatch(r"\| [A-Z]\d+", number):
            yield number.removeprefix("| "), found, proof.removesuffix("|").strip()


def unsaid(text: str) -> Iterator[str]:
    """The numbers of findings that have no row, and rows that neither name a proof nor say that there is none."""
    rows = list(findings(text))
    named = {number for number, _, _ in rows}
    yield from (
        f"{letter}{n}" for letter, last in _LAST.items() for n in range(1, last + 1) if f"{letter}{n}" not in named
    )
    yield from (number for number, found, proof in rows if not found or not re.search(_PROOF, proof))


def test_every_finding_of_the_trials_has_its_row() -> None:
    text = (ROOT / "docs" / "verified.md").read_text(encoding="utf-8")
    assert list(unsaid(text)) == []


def test_a_finding_without_a_row_or_a_proof_is_found() -> None:
    rows = "".join(
        f"| {letter}{n} | lost | not built |\n" for letter, last in _LAST.items() for n in range(1, last + 1)
    )
    text = f"## Findings of the trials, by number\n\n{rows}\n## Further\n\n| W38 | later | |\n"
    assert list(unsaid(text)) == []
    assert list(unsaid(text.replace("| B3 | lost | not built |", "| B3 | lost | mended |"))) == ["B3"]
    assert list(unsaid(text.replace("| B3 | lost |", "| B3 |  |"))) == ["B3"]
    assert list(unsaid(text.replace("| W37 ", "| W38 "))) == ["W37"]
