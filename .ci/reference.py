"""Writes `docs/reference`: the reference as plain Markdown, for who reads the repository and has no site.

`make reference` writes it anew. The site makes its own of the same pages, `docs/api`, and of the same docstrings;
`tests/test_docs_reference.py` holds that what lies here is of now.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import griffe

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE, TARGET = ROOT / "docs" / "api", ROOT / "docs" / "reference"
_ENTRY: Final = re.compile(r"^::: (\S+)\n((?:    .*\n?)*)", re.MULTILINE)
_FILTERED: Final = re.compile(r'"!\^(\w+)\$"')
_NAMES_OF: Final = re.compile(r"^<!-- names of: ([\w., ]+) -->$", re.MULTILINE)
_LONGEST: Final = 100


def pages() -> dict[str, str]:
    """What each page of the folder says, by its name."""
    return {path.name: page(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.glob("*.md"))}


def page(text: str) -> str:
    """A page of the site's source, with what it names written out."""
    site = _site_pages()
    text = site.without_links_of_the_repository(text)
    text = _NAMES_OF.sub(lambda found: "\n\n".join(site._entries(found[1])), text)  # noqa: SLF001 - the site's own list
    text = text.replace("::: ", "\n::: ")
    written = _ENTRY.sub(lambda found: "\n\n".join(entries(found[1], found[2])) + "\n", f"{text}\n")
    return re.sub(r"\n{3,}", "\n\n", written).strip() + "\n"


def entries(name: str, options: str) -> Iterator[str]:
    """The lines of a name: a class or a function, or all that is public in a module."""
    left_out = set(_FILTERED.findall(options))
    if (ROOT / name.replace(".", "/")).with_suffix(".py").is_file():
        for one in module(name).members.values():
            if not one.name.startswith("_") and one.name not in left_out and is_told(one):
                yield from entry(one, home=name)
        return
    home, _, own = name.rpartition(".")
    yield from entry(module(home).members[own], home=home)


@cache
def module(name: str) -> griffe.Module:
    """A module, read without importing it."""
    path = ROOT / name.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return griffe.visit(name, path, path.read_text(encoding="utf-8"), docstring_parser="google")


def is_told(one: griffe.Object | griffe.Alias) -> bool:
    """Whether something has a docstring of its own."""
    return not one.is_alias and (one.is_class or one.is_function or one.is_attribute) and one.has_docstring


@cache
def at_the_top() -> frozenset[str]:
    """What is imported from `core` and from `webui` themselves."""
    return frozenset(name for package in ("core", "webui") for name in module(package).members)


def entry(one: Any, level: int = 2, owner: str = "", home: str = "") -> Iterator[str]:
    """A heading, how it is written, what is said of it; and of a class what is public in it.

    Args:
        home: The module that a name is imported from, where it is not `core` or `webui`.
    """
    shown = f"{owner}.{one.name}" if owner else one.name
    yield f"{'#' * level} `{shown}`"
    if home and one.name not in at_the_top():
        yield f"`from {home} import {one.name}`"
    if not one.is_attribute or one.annotation is not None:
        yield f"```text\n{signature(one, shown)}\n```"
    yield from said(one)
    if one.is_class:
        for member in one.members.values():
            if not member.name.startswith("_") and is_told(member):
                yield from entry(member, level + 1, one.name)


def signature(one: Any, shown: str) -> str:
    """How a name is called, or of which type it is."""
    if one.is_attribute:
        return f"{shown}: {one.annotation}"
    function = one.members.get("__init__") if one.is_class else one
    if one.is_class and any("dataclass" in str(mark.value) for mark in one.decorators):
        fields = [part for part in one.members.values() if part.is_attribute and "property" not in part.labels]
        named = [part for part in fields if part.annotation is not None and not part.name.startswith("_")]
        return called(f"class {shown}", [field(part) for part in named], "")
    if one.is_class and (function is None or not function.is_function):
        bases = ", ".join(map(str, one.bases))
        return f"class {shown}({bases})" if bases else f"class {shown}"
    given = [written(one) for one in function.parameters if one.name not in {"self", "cls"}]
    kinds = [one.kind for one in function.parameters if one.name not in {"self", "cls"}]
    by_name = griffe.ParameterKind.keyword_only
    if by_name in kinds and griffe.ParameterKind.var_positional not in kinds:
        given.insert(kinds.index(by_name), "*")
    before = "class " if one.is_class else "async " if "async" in one.labels else ""
    after = f" -> {one.returns}" if not one.is_class and one.returns is not None else ""
    return called(f"{before}{shown}", given, after)


def called(name: str, given: list[str], after: str) -> str:
    """A call, on one line or on several."""
    line = f"{name}({', '.join(given)}){after}"
    return line if len(line) <= _LONGEST else f"{name}(\n" + "".join(f"    {part},\n" for part in given) + f"){after}"


def field(one: Any) -> str:
    """A field of a dataclass."""
    value = str(one.value) if one.value is not None else ""
    made = re.search(r"default_factory=([\w.]+)", value)
    return f"{one.name}: {one.annotation}" + (f" = {made[1]}()" if made else f" = {value}" if value else "")


def written(one: Any) -> str:
    """A parameter."""
    stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(one.kind, "")
    kind = f": {one.annotation}" if one.annotation is not None else ""
    is_gathered = bool(stars)
    value = f" = {one.default}" if one.default is not None and not is_gathered else ""
    return f"{stars}{one.name}{kind}{value if kind else value.replace(' ', '')}"


def said(one: Any) -> Iterator[str]:
    """The docstring: text as it is, arguments and errors as lists."""
    if one.docstring is None:
        return
    for section in one.docstring.parse("google", warnings=False):
        match section.kind.value:
            case "text":
                yield section.value
            case "parameters" | "attributes" | "other parameters":
                yield "\n".join(f"- `{part.name}`: {' '.join(part.description.split())}" for part in section.value)
            case "raises":
                found = [f"- `{part.annotation}`: {' '.join(part.description.split())}" for part in section.value]
                yield "Raises:\n\n" + "\n".join(found)
            case "returns" | "yields":
                told = "; ".join(" ".join(part.description.split()) for part in section.value)
                yield f"{section.kind.value.capitalize()}: {told}"
            case "examples":
                parts = cast("list[tuple[Any, str]]", section.value)
                yield "\n\n".join(part if kind.value == "text" else f"```text\n{part}\n```" for kind, part in parts)
            case _:
                yield " ".join(str(section.value.description).split())


@cache
def _site_pages() -> Any:
    """`docs/site_pages.py`, which has the table of names."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    if spec is None or spec.loader is None:
        raise LookupError("docs/site_pages.py is not there.")
    made = importlib.util.module_from_spec(spec)
    sys.modules["site_pages"] = made
    spec.loader.exec_module(made)
    return made


def main() -> None:
    """Write the pages; those of names that are gone go, too."""
    TARGET.mkdir(exist_ok=True)
    found = pages()
    for path in TARGET.glob("*.md"):
        if path.name not in found:
            path.unlink()
    for name, text in found.items():
        for code in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            ast.parse(code)
        (TARGET / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"docs/reference: {len(found)} pages\n")


if __name__ == "__main__":
    main()
