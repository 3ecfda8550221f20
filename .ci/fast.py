"""Chooses what `make test-fast` checks: the types of the files that changed, and the unit tests of those files."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_TEST_FILES = 40
"""More files than this take longer than a minute; what is left over is for `make test`."""
_CHROMIUM = ("tests/e2e/", "tests/webui/screen/")


def changed_files(root: Path) -> list[str]:
    """Python files that differ from `main`, committed or not; on `main` itself those of the last commit count, too."""
    base = _git(root, "merge-base", "HEAD", "main") or ["HEAD"]
    if base == _git(root, "rev-parse", "HEAD"):
        base = _git(root, "rev-parse", "--verify", "--quiet", "HEAD~1") or base
    names = {*_git(root, "diff", "--name-only", base[0]), *_git(root, "ls-files", "--others", "--exclude-standard")}
    return sorted(name for name in names if name.endswith(".py") and (root / name).is_file())


def tests_of(root: Path, changed: Iterable[str]) -> tuple[list[str], int]:
    """The test files for these files, and how many more there are than are run.

    First the tests that changed, then those that mirror a changed module (`core/a/b.py`: `tests/core/a/test_b*.py`),
    then those that import one. Tests in Chromium are left to `make test`.
    """
    changed = list(changed)
    files = [path.relative_to(root).as_posix() for path in sorted((root / "tests").rglob("test_*.py"))]
    files = [name for name in files if not name.startswith(_CHROMIUM)]
    modules = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in changed}
    mirrors = [(f"tests/{Path(name).parent.as_posix()}/", f"test_{Path(name).stem}") for name in changed]
    themselves = [name for name in files if name in changed]
    mirroring = [name for name in files if any(name.startswith(place) and stem in name for place, stem in mirrors)]
    importing = [name for name in files if modules & _imported(root / name)]
    chosen = list(dict.fromkeys([*themselves, *mirroring, *importing]))
    return chosen[:MOST_TEST_FILES], max(0, len(chosen) - MOST_TEST_FILES)


def _imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def _git(root: Path, *arguments: str) -> list[str]:
    """The lines that git prints; none where it fails, as it does in a copy without history."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []
