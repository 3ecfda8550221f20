"""Each error of the library has its place in `docs/errors.md`, and says where that is."""

from __future__ import annotations

import ast
import pickle
import re
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from core.agents.output import OutputError
from core.errors import ParlourError, SettingsError, ToolError

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "errors.md"
HEADING = re.compile(r"^#+ (\w+)$", re.MULTILINE)


def classes() -> Iterator[tuple[str, set[str], str]]:
    """The classes of the library that are called after errors, their bases, and their keys; "" where none is set."""
    for path in sorted((ROOT / "core").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                yield node.name, {ast.unparse(one) for one in node.bases}, key_of(node)


def key_of(node: ast.ClassDef) -> str:
    for line in node.body:
        target = (
            line.target
            if isinstance(line, ast.AnnAssign)
            else line.targets[0]
            if isinstance(line, ast.Assign)
            else None
        )
        if target is not None and ast.unparse(target) == "key":
            value = getattr(line, "value", None)
            return str(value.value) if isinstance(value, ast.Constant) else ""
    return ""


@cache
def errors() -> dict[str, str]:
    """Every error that Parlour raises on purpose, with its key."""
    found, there = {"ParlourError": "unexpected"}, list(classes())
    while more := {
        name: key or found[(bases & set(found)).pop()]
        for name, bases, key in there
        if name not in found and bases & set(found)
    }:
        found |= more
    return found


@cache
def entries() -> dict[str, str]:
    """What the page says of each, by its heading."""
    parts = HEADING.split(PAGE.read_text(encoding="utf-8"))
    return {name: said.strip() for name, said in zip(parts[1::2], parts[2::2], strict=True) if name[:1].isupper()}


def is_an_error(name: str) -> bool:
    return name.endswith(("Error", "Retry"))


def test_each_error_has_an_entry_and_no_entry_is_of_another_name():
    assert set(errors()) == {name for name in entries() if is_an_error(name)}
    assert len(errors()) > 40


@pytest.mark.parametrize("name", sorted(errors()))
def test_an_entry_begins_with_the_key_and_says_something(name: str):
    said = entries()[name]
    keys = set(re.findall(r"`(\w+)`", said.partition(". ")[0]))
    assert errors()[name] in keys or name == "LimitReachedError"
    assert len(said) > 60


def test_an_error_says_where_it_stands_and_a_traceback_ends_with_it():
    error = OutputError("tea", "It is no JSON.", 1)
    assert error.see == "docs/errors.md#outputerror"
    assert traceback.format_exception(error)[-1].strip() == "More about it: docs/errors.md#outputerror"
    assert "docs/" not in str(error), "a model that is told the sentence, or a reader of the page, has no use for it"


def test_an_error_of_a_programs_own_stands_where_its_class_of_parlours_does():
    class OutOfTeaError(ToolError):
        pass

    error = OutOfTeaError("No tea.")
    assert error.see == "docs/errors.md#toolerror"
    assert traceback.format_exception(error)[-1].strip().endswith("OutOfTeaError: No tea."), (
        "models are told, not people"
    )


def test_every_place_is_on_the_page():
    slugs = {heading.lower() for heading in HEADING.findall(PAGE.read_text(encoding="utf-8"))}
    kinds = [ParlourError]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        error = kind.__new__(kind)
        assert error.see.removeprefix("docs/errors.md#") in slugs


def test_what_it_says_survives_another_process_once():
    error: SettingsError = pickle.loads(pickle.dumps(SettingsError("It is so.", hint="Write it.")))
    assert traceback.format_exception(error)[-1].count("More about it") == 1
    assert len(error.__notes__) == 1
