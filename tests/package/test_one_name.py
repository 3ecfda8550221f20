"""In the wheel everything has one name, `parlour`; in a checkout that name and the others are the same modules."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from build_wheel import with_one_name, write_package

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `parlour` of a wheel."""
    target = tmp_path_factory.mktemp("wheel") / "parlour"
    write_package(ROOT, target)
    return target


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from core.errors import ParlourError\n", "from parlour.core.errors import ParlourError\n"),
        ("from core import errors\n", "from parlour.core import errors\n"),
        ("if x:\n    from webui.app import (\n  a)\n", "if x:\n    from parlour.webui.app import (\n  a)\n"),
        ("import core as library\n", "import parlour.core as library\n"),
        ('X = {"a": "core.tools.base:BaseTool"}\n', 'X = {"a": "parlour.core.tools.base:BaseTool"}\n'),
        ('run("-m", "core.rag.worker")\n', 'run("-m", "parlour.core.rag.worker")\n'),
        ("f('webui.app')  # as core.rag says\n", "f('parlour.webui.app')  # as parlour.core.rag says\n"),
        ('"""Say:\n\n>>> from core import Agent\n"""\n', '"""Say:\n\n>>> from parlour import Agent\n"""\n'),
        ('"""`python -m webui`"""\n', '"""`python -m parlour`"""\n'),
        # What only looks like one of the two stays.
        ("core = apple.core.seeds\n", "core = apple.core.seeds\n"),
        ('x = "the core of it", "hardcore.py", "a/core.c", "./webui.toml"\n',) * 2,
        ("from encore.core import webui\n",) * 2,
        ("from score import core\n",) * 2,
    ],
)  # fmt: skip
def test_imports_names_of_modules_and_programs_in_text_are_rewritten(before: str, after: str) -> None:
    assert with_one_name(before) == after


def test_an_import_whose_name_cannot_stay_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Line 2: 'import core\.errors'"):
        with_one_name("import os\nimport core.errors\n")


def modules_named(tree: ast.AST) -> set[str]:
    named: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                named |= {one.name for one in names}
            case ast.ImportFrom(module=str(module), level=0):
                named.add(module)
            case ast.Constant(value=str(text)) if text.partition(":")[0].replace(".", "").replace("_", "").isalnum():
                named.add(text.partition(":")[0])
            case _:
                pass
    return named


def test_nothing_of_the_wheel_names_the_checkouts_packages(package: Path) -> None:
    for path in package.rglob("*.py"):
        named = modules_named(ast.parse(path.read_text("utf-8")))
        assert not {name for name in named if name.startswith(("core.", "webui."))}, path


def test_what_the_wheel_imports_of_itself_is_in_it(package: Path) -> None:
    there = {".".join(path.relative_to(package.parent).with_suffix("").parts) for path in package.rglob("*.py")}
    there |= {name.removesuffix(".__init__") for name in there}
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("parlour"):
                assert node.module in there, path


def test_files_that_are_no_modules_come_along(package: Path) -> None:
    for name in ("py.typed", "core/py.typed", "webui/py.typed", "webui/words/zh.toml", "webui/assets/js/behaviour.js"):
        assert (package / name).is_file(), name


def test_in_a_checkout_both_names_are_the_same_modules() -> None:
    import parlour

    for name in ("core", "core.errors", "core.messages.message", "webui", "webui.words"):
        ours = importlib.import_module(name)
        assert importlib.import_module(f"parlour.{name}") is ours
        assert ours.__spec__ is not None
        assert ours.__spec__.name == ours.__name__ == name
    core = importlib.import_module("core")
    assert parlour.__all__ == core.__all__
    for name in core.__all__:
        assert getattr(parlour, name) is getattr(core, name)


def test_the_other_name_first_is_no_copy_either() -> None:
    code = "import parlour.core.errors as a, core.errors as b, sys; print(a is b, parlour.core is sys.modules['core'])"
    command = [sys.executable, "-c", f"import parlour; {code}"]
    assert subprocess.check_output(command, cwd=ROOT, text=True) == "True True\n"


def test_a_name_that_parlour_does_not_have_is_an_error() -> None:
    import parlour

    with pytest.raises(AttributeError, match="'parlour' has no attribute 'Nobody'"):
        getattr(parlour, "Nobody")  # noqa: B009 - a type checker would notice
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("parlour.core.nothing_here")
