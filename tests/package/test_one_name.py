"""In the wheel everything has one name, `parlour`; in a checkout that name and the others are the same modules."""

from __future__ import annotations

import ast
import importlib
import re
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
        ('x = "hard-core.errors", "core.md", "core.nothing_here"\n',) * 2,
        ("from encore.core import webui\n",) * 2,
        ("from score import core\n",) * 2,
    ],
)  # fmt: skip
def test_imports_names_of_modules_and_programs_in_text_are_rewritten(before: str, after: str) -> None:
    assert with_one_name(before) == after


def test_an_import_whose_name_cannot_stay_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Line 2: 'import core\.errors'"):
        with_one_name("import os\nimport core.errors\n")


@pytest.mark.parametrize(
    "program",
    [
        "import os, core.errors\n",
        "import core as library, webui.app\n",
        "if x: from core import y\n",
        "try: import core\nfinally: pass\n",
        "if x: import webui.app as app\n",
    ],
)
def test_an_import_that_would_be_left_ends_the_build(program: str) -> None:
    with pytest.raises(ValueError, match=r"Line 1: the import of '(core|webui)[\w.]*' must stand on a line of its own"):
        with_one_name(program)


def test_the_build_says_which_file_cannot_be_rewritten(tmp_path: Path) -> None:
    for name in ("parlour", "core", "webui", "assets"):
        (tmp_path / name).mkdir()
    (tmp_path / "core/apple.py").write_text("import os, core.errors\n", "utf-8")
    with pytest.raises(ValueError, match=r"core.apple\.py: Line 1: the import of 'core\.errors'"):
        write_package(tmp_path, tmp_path / "made")


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


def test_the_page_that_errors_name_comes_along(package: Path) -> None:
    named = set(re.findall(r"[\w/]*docs/errors\.md", (package / "core/errors.py").read_text("utf-8")))
    assert named == {"parlour/docs/errors.md"}
    told = (package.parent / named.pop()).read_text("utf-8")
    assert "### ToolError" in told
    assert "from parlour import" in told
    assert "from core" not in told


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


def test_asking_for_a_module_runs_none() -> None:
    code = (
        "import sys, parlour; from importlib.util import find_spec\n"
        "print(find_spec('parlour.core.nope'), find_spec('parlour.core.engine').name, 'core.engine' in sys.modules)\n"
        "import parlour.core.engine as a, core.engine as b; print(a is b, a.__spec__.name)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert said == "None parlour.core.engine False\nTrue core.engine\n"


def test_a_name_that_parlour_does_not_have_is_an_error() -> None:
    import parlour

    with pytest.raises(AttributeError, match="'parlour' has no attribute 'Nobody'"):
        getattr(parlour, "Nobody")  # noqa: B009 - a type checker would notice
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("parlour.core.nothing_here")
