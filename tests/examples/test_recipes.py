"""The recipes of the documentation are files and a notebook, which runs."""

from __future__ import annotations

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from core.testing.scripted_model import ScriptedModel

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "recipes"


def made() -> dict[str, str]:
    """What `.ci/recipes.py` makes of the page."""
    spec = spec_from_file_location("recipes_command", ROOT / ".ci" / "recipes.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    files: dict[str, str] = module.files()
    return files


def test_the_files_are_as_the_page_has_them() -> None:
    there = {path.name: path.read_text("utf-8") for path in FOLDER.iterdir() if path.is_file()}
    assert there == made(), "run: python .ci/recipes.py"
    assert len(there) == 10
    for name, text in there.items():
        if name.endswith(".py"):
            compile(text, name, "exec")


def test_the_notebook_is_one_of_the_format_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    notebook: Any = json.loads((FOLDER / "notebook.ipynb").read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    cities = '{"cities": [{"name": "Ulm", "people": 129000}, {"name": "Bonn", "people": 336000}]}'
    shell = InteractiveShell.instance()
    for cell in notebook["cells"]:
        assert re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", cell["id"])
        assert cell.keys() >= {"cell_type", "metadata", "source"}
        if cell["cell_type"] != "code":
            continue
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        result = shell.run_cell("".join(cell["source"]))
        result.raise_error()
        if cell["id"] == "model":
            shell.push({"LLM": ScriptedModel(cities)})
    assert "name='Bonn' people=336000" in capsys.readouterr().out
