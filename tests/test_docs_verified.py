"""What `docs/verified.md` names as a proof is there: each file of tests, and each test in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NAMED = re.compile(r"(tests/[\w/]+\.py)|::(test_\w+)")


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
