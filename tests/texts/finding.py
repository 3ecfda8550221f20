"""Finds every function and method that takes text, in all modules."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import core
import webui
from tests.texts.carriers import carrier
from tests.texts.feeds import OURS

_TEXT = re.compile(r"\bstr\b")
_KEYED = re.compile(r"\b(?:Mapping|dict|Callable|type|Match)\[.*\]")


@dataclass(frozen=True)
class Taker:
    """A function, or a method of a class, and those of its parameters that are text."""

    module: str
    name: str
    function: Callable[..., Any]
    owner: type[Any] | None
    texts: tuple[str, ...]

    @property
    def path(self) -> str:
        """As it stands in the lists of `feeds.py`."""
        return f"{self.module}:{self.name}"


@cache
def modules() -> tuple[str, ...]:
    """The names of all modules of the house."""
    names: list[str] = []
    for package in (core, webui):
        names.append(package.__name__)
        names += [one.name for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return tuple(sorted(names))


def takers(module: str) -> Iterator[Taker]:
    """The public functions, methods and coroutines that a module defines and that take text."""
    found = importlib.import_module(module)
    for name, one in list(vars(found).items()):
        if getattr(one, "__module__", None) != module:
            continue
        if inspect.isfunction(inspect.unwrap(one)) and not name.startswith("_"):
            yield from _taker(module, name, one, None)
        elif inspect.isclass(one) and one.__qualname__ == name:
            yield from _of_class(module, name, one)


def _of_class(module: str, name: str, found: type[Any]) -> Iterator[Taker]:
    if getattr(found, "_is_protocol", False):
        return
    for method, raw in list(vars(found).items()):
        function = raw.__func__ if isinstance(raw, staticmethod | classmethod) else raw
        if method.startswith("_") or not inspect.isfunction(function):
            continue
        bound = getattr(found, method) if isinstance(raw, staticmethod | classmethod) else function
        yield from _taker(module, f"{name}.{method}", bound, None if bound is not function else found)


def _taker(module: str, name: str, function: Callable[..., Any], owner: type[Any] | None) -> Iterator[Taker]:
    texts = tuple(
        one.name
        for one in inspect.signature(function).parameters.values()
        if is_text(one) and one.name not in {"self", *OURS}
    )
    if texts:
        yield Taker(module, name, function, owner, texts)


def is_text(parameter: inspect.Parameter) -> bool:
    """Whether it is a text, or some, or what carries it."""
    annotation = parameter.annotation
    if not isinstance(annotation, str):
        annotation = getattr(annotation, "__name__", "")
    return bool(carrier(annotation)[0] or _TEXT.search(_KEYED.sub("", annotation)))
