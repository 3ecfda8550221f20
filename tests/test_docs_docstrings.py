"""What the reference is made of: each public name says what it is, takes and raises."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import core

ROOT = Path(__file__).resolve().parent.parent
HOMES: dict[str, str] = vars(core)["_HOME"]
AS_ANOTHER = re.compile(r"\b[Aa]s (?:of )?`\w+|^`\w+`, ")  # what another one takes, which says it
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def module(name: str) -> ast.Module:
    path = ROOT / name.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def described(name: str) -> tuple[ast.AST, str]:
    """Where a public name is defined, and its docstring; of a constant, the text below it."""
    body = module(HOMES[name]).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, Function | ast.ClassDef) and node.name == name and not is_overload(node):
            return node, ast.get_docstring(node) or ""
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [ast.unparse(one) for target in targets if target for one in getattr(target, "elts", [target])]
        if name in names:
            text = after.value if isinstance(after, ast.Expr) else None
            return node, text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
    raise LookupError(name)


def unsaid(function: Function, text: str) -> Iterator[str]:
    """The arguments that a docstring does not name, and whether it is silent about errors."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    if AS_ANOTHER.search(text):
        return
    for name in (one.arg for one in given):
        if (
            name not in {"self", "cls"}
            and not name.startswith("_")
            and f"{name}:" not in text
            and f"`{name}`" not in text
        ):
            yield name
    if "aises" not in text and any(raised(one) for one in own(function)):
        yield "what it raises"


def own(function: Function) -> Iterator[ast.AST]:
    """What stands in a function itself, not in those within it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Function | ast.Lambda):
            yield node
            waiting += ast.iter_child_nodes(node)


def raised(node: ast.AST) -> bool:
    named = ast.unparse(node.exc) if isinstance(node, ast.Raise) and node.exc is not None else ""
    return bool(named) and not named.startswith(("NotImplementedError", "AttributeError"))


def is_overload(node: Function | ast.ClassDef) -> bool:
    return any(ast.unparse(one) == "overload" for one in node.decorator_list)


def is_for_others(function: Function) -> bool:
    """Whether nobody calls it by its name: another form of the next one, or a check that pydantic calls."""
    return is_overload(function) or any("_validator" in ast.unparse(one) for one in function.decorator_list)


def silent(name: str) -> Iterator[str]:
    """What a public name does not say."""
    node, text = described(name)
    if not text:
        yield f"{name}: everything"
    if isinstance(node, Function):
        yield from (f"{name}: {missing}" for missing in unsaid(node, text))
    if not isinstance(node, ast.ClassDef):
        return
    for one in node.body:
        if not isinstance(one, Function) or is_for_others(one) or (one.name.startswith("_") and one.name != "__init__"):
            continue
        words = text if one.name == "__init__" else ast.get_docstring(one) or ""
        missing = [*([] if words else ["everything"]), *unsaid(one, words)]
        yield from (f"{name}.{one.name}: {what}" for what in missing)


def test_public_names_say_what_they_take_and_raise() -> None:
    assert not [line for name in sorted(HOMES) for line in silent(name)]
