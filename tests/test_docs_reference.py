"""The reference that lies in the repository is of now, and leaves no public name out."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import core

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def reference() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("reference", ROOT / ".ci" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["reference"]


def test_what_lies_there_is_what_docstrings_say_now(reference: ModuleType):
    found: dict[str, str] = reference.pages()
    lying = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    stale = [name for name in sorted(found.keys() | lying.keys()) if found.get(name) != lying.get(name)]
    assert not stale, f"`make reference` writes anew: {', '.join(stale)}"


def test_no_public_name_is_left_out_and_no_line_of_the_site_is_left():
    written = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md"))
    headings = set(re.findall(r"^#+ `([\w.]+)`$", written, re.MULTILINE))
    assert not [name for name in core.__all__ if name not in headings]
    assert "\n::: " not in written
    assert "<!--" not in written


def test_an_entry_says_how_a_name_is_called_what_it_takes_and_what_it_raises():
    told = (FOLDER / "tools.md").read_text(encoding="utf-8")
    entry = told.partition("## `Limits`")[2].partition("\n## ")[0]
    assert entry.startswith("\n\n```text\nclass Limits(\n    calls: int | None = None,\n")
    assert "- `calls`: Model calls" in entry
    assert "Raises:\n\n- `SettingsError`: " in entry
