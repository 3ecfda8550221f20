"""A module of core.llm can be read without those that stand on it: none imports, for types either, what imports it."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import core

ROOT = Path(core.__file__).parent.parent


def modules() -> dict[str, Path]:
    files = (ROOT / "core" / "llm").rglob("*.py")
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def imported_by(file: Path, known: dict[str, Path]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found & set(known)


def order(graph: dict[str, set[str]]) -> list[str]:
    return list(TopologicalSorter(graph).static_order())


def test_no_module_imports_one_that_imports_it():
    known = modules()
    graph = {name: imported_by(file, known) for name, file in known.items()}
    assert "core.llm.layers.retry" in graph["core.llm.base"]
    assert set(order(graph)) == set(known)


def test_a_cycle_would_be_found():
    with pytest.raises(CycleError):
        order({"a": {"b"}, "b": {"c"}, "c": {"a"}})
