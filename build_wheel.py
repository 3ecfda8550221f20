"""Gives the wheel one name: `core` and `webui` become `parlour.core` and `parlour.webui` when it is built.

A project that has a package `core` of its own can then use Parlour. In the repository the two stand at the top, and
`parlour/` says how they have the same names there.
"""

from __future__ import annotations

import ast
import io
import re
import shutil
import tokenize
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = ("core", "webui")
ONLY_IN_A_CHECKOUT = ("webui.pyi",)
_TEXT = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
# In text: programs that a reader may copy, commands, and names of modules such as "core.rag.library:Library".
_MODULES = "|".join(
    sorted(
        place.stem
        for name in PACKAGES
        for place in (Path(__file__).resolve().parent / name).iterdir()
        if place.suffix == ".py" or (place / "__init__.py").is_file()
    )
)
_IN_TEXT = (
    (re.compile(r"\bfrom core import\b"), "from parlour import"),
    (re.compile(r"\bimport core\b(?!\.)"), "import parlour"),
    (re.compile(r"\bfrom webui import\b"), "from parlour.webui import"),
    (re.compile(r"-m webui\b(?!\.)"), "-m parlour"),
    (re.compile(r"(?<!/)\bdocs/errors\.md\b"), "parlour/docs/errors.md"),
    (re.compile(r"(?<![\w./-])(core|webui)(?=\.(?:(?:" + _MODULES + r")\b|['\"]))"), r"parlour.\1"),
)


def with_one_name(source: str) -> str:
    """The source of a module in which what was `core` and `webui` is below `parlour`.

    Raises:
        ValueError: It imports one of them in a way that is not rewritten: `import core.errors` without `as`, or not
            first in its line.
    """
    lines = source.splitlines(keepends=True)
    for (line, column), old, new in reversed(list(_changes(source))):
        before, after = _split(lines, line - 1, column, len(old))
        lines[line - 1 :] = (before + new + after).splitlines(keepends=True)
    written = "".join(lines)
    for node in _statements(ast.parse(written)):
        match node:
            case ast.Import(names=imported):
                names = [one.name for one in imported]
            case ast.ImportFrom(module=str(module), level=0):
                names = [module]
            case _:
                continue
        if left := next((name for name in names if name.partition(".")[0] in PACKAGES), ""):
            said = f"Line {node.lineno}: the import of {left!r} must stand on a line of its own, after nothing else."
            raise ValueError(said)
    return written


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Each statement; an import stands within no expression, and most of a tree are those."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, name, ()):
            yield node
            yield from _statements(node)


def _split(lines: list[str], line: int, column: int, length: int) -> tuple[str, str]:
    rest = "".join(lines[line:])
    return rest[:column], rest[column + length :]


def _changes(source: str) -> Iterator[tuple[tuple[int, int], str, str]]:
    """Places with what stands there and what shall."""
    statement: list[str] = []  # its words so far
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in _TEXT:
            new = token.string
            for pattern, replacement in _IN_TEXT:
                new = pattern.sub(replacement, new)
            if new != token.string:
                yield token.start, token.string, new
        elif token.type == tokenize.NAME and token.string in PACKAGES and statement in (["from"], ["import"]):
            if statement == ["import"] and " as " not in token.line:
                raise ValueError(f"Line {token.start[0]}: {token.line.strip()!r} needs `as`, or `from`.")
            yield token.start, token.string, f"parlour.{token.string}"
        if token.type in {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT} or token.string == ";":
            statement = []
        elif token.type != tokenize.COMMENT:
            statement.append(token.string)


def write_package(root: Path, target: Path) -> None:
    """Write what the wheel holds.

    Args:
        root: The checkout.
        target: The folder that becomes `parlour`; it is made.
    """
    copied = [(root / "parlour", target), *((root / name, target / name) for name in PACKAGES)]
    unwanted = shutil.ignore_patterns("__pycache__", *ONLY_IN_A_CHECKOUT)
    for source, place in copied:
        shutil.copytree(source, place, ignore=unwanted, dirs_exist_ok=True)
    for module in target.rglob("*.py"):
        try:
            module.write_text(with_one_name(module.read_text("utf-8")), "utf-8")
        except ValueError as error:
            raise ValueError(f"{module.relative_to(target)}: {error}") from error
    shutil.copytree(root / "assets", target / "webui" / "assets")
    (target / "docs").mkdir()
    told = (root / "docs" / "errors.md").read_text("utf-8")  # each error names its place there
    for pattern, replacement in _IN_TEXT:
        told = pattern.sub(replacement, told)
    (target / "docs" / "errors.md").write_text(told, "utf-8")


class OneName(BuildHookInterface[Any]):
    """What hatchling runs before it writes a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the package together in a folder of its own; an installation of the checkout stays as it is."""
        if version == "editable":
            return
        self._folder = Path(mkdtemp(prefix="parlour-wheel-"))
        write_package(Path(self.root), self._folder / "parlour")
        build_data["force_include"][str(self._folder / "parlour")] = "parlour"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete that folder."""
        del build_data, artifact_path
        if version != "editable":
            shutil.rmtree(self._folder)
