"""Counts the size of the house and prints it as the rows of `docs/decisions.md`.

`python .ci/measure.py` counts the files as they are; `--of COMMIT` those of a commit, taken from git.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import statistics
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("core", "webui")
_TEST = re.compile(r"^ *(?:async )?def test_", re.MULTILINE)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Counts:
    """What one file has, in lines unless it says otherwise.

    Args:
        lines: All.
        code: Those that are neither empty, comment, docstring nor import.
        docstrings: Of modules, classes, functions, and below names.
        imports: Within functions and for types alone, too.
        functions: Their lengths.
        owned: How many functions have a parameter `owner`.
        imported: Names of modules, and of what is taken from them.
    """

    lines: int = 0
    code: int = 0
    docstrings: int = 0
    imports: int = 0
    functions: list[int] = field(default_factory=list[int])
    owned: int = 0
    imported: set[str] = field(default_factory=set[str])


def count(text: str) -> Counts:
    """Count one file."""
    lines = text.splitlines()
    found = Counts(lines=len(lines))
    prose: set[int] = set()
    imports: set[int] = set()
    for node in _statements(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= _lines_of(node)
            found.imported |= _imported(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose |= _lines_of(node)
        elif isinstance(node, _Function):
            found.functions.append((node.end_lineno or node.lineno) - node.lineno + 1)
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            found.owned += any(parameter.arg == "owner" for parameter in given)
    # A line within a text that begins with # is taken for a comment; there are few.
    said = {number for number, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")}
    found.docstrings, found.imports = len(prose), len(imports)
    found.code = len(said - prose - imports)
    return found


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Each statement, and each function; none stands within an expression."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, name, ()):
            yield node
            yield from _statements(node)


def _lines_of(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        return {name.name for name in node.names}
    return {node.module, *(f"{node.module}.{name.name}" for name in node.names)} if node.module else set()


def circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules in which each imports each, over others or not; the largest first (Tarjan's way)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in imports[name] & imports.keys() - {name}:
            if other not in number:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            at = stack.index(name)
            groups.append(sorted(stack[at:]))
            del stack[at:]

    for name in imports:
        if name not in number:
            visit(name)
    return sorted((group for group in groups if len(group) > 1), key=len, reverse=True)


def figures(root: Path) -> dict[str, float | str]:
    """The figures of a tree, by what they are called in `docs/decisions.md`."""
    counts = {path.relative_to(root): count(path.read_text("utf-8")) for path in _python(root, *_PACKAGES)}
    every = list(counts.values())
    lengths = [one.lines for one in every]
    functions = [length for one in every for length in one.functions]
    found = circles(
        {".".join(path.with_suffix("").parts): one.imported for path, one in counts.items() if path.stem != "__init__"}
    )
    return {
        "files": len(every),
        "lines": sum(lengths),
        "lines of code": sum(one.code for one in every),
        "lines of docstrings": sum(one.docstrings for one in every),
        "lines of imports": sum(one.imports for one in every),
        "median file, lines": statistics.median(lengths),
        "files under 100 lines": sum(length < 100 for length in lengths),
        "largest file, lines": max(lengths),
        "circles of imports": f"{len(found)}, the largest of {len(found[0])} modules" if found else "none",
        "functions": len(functions),
        "longest function, lines": max(functions),
        "functions with a parameter `owner`": sum(one.owned for one in every),
        "of them inside of `core/storage`": sum(one.owned for path, one in counts.items() if "storage" in path.parts),
        "test functions": sum(map(_tests, _python(root, "tests"))),
    }


def _tests(path: Path) -> int:
    """What looks like one; to read the trees of all tests takes as long as all the rest."""
    return len(_TEST.findall(path.read_text("utf-8"))) if path.name.startswith("test_") else 0


def _python(root: Path, *folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((root / folder).rglob("*.py"))


def rows(found: Mapping[str, float | str]) -> str:
    """As rows of a table."""
    return "\n".join(
        f"| {name} | {value if isinstance(value, str) else f'{value:,g}'} |" for name, value in found.items()
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="How large is the house?")
    parser.add_argument("--of", metavar="COMMIT", help="count the files of a commit")
    commit = parser.parse_args().of
    if not commit:
        print(rows(figures(_ROOT)))
        return
    packed = subprocess.run(["git", "archive", commit, *_PACKAGES, "tests"], cwd=_ROOT, capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as made:
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tree:
            tree.extractall(made, filter="data")
        print(rows(figures(Path(made))))


if __name__ == "__main__":
    main()
