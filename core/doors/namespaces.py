"""Tools that a program has in namespaces: a model knows each by one name, and the program by both."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LONGEST: Final = 64


def joined(namespace: object, name: object) -> object:
    """The one name; where there is no namespace, the name as it is."""
    if not isinstance(namespace, str) or not namespace.strip() or not isinstance(name, str):
        return name
    whole = f"{namespace.strip().rstrip('_')}__{name}"
    return whole if len(whole) <= _LONGEST else f"{name[:50]}_{sha256(whole.encode()).hexdigest()[:12]}"


def flat(tools: object) -> object:
    """The tools of a request, those of namespaces under their one name; what is no list stays as it is."""
    if not isinstance(tools, list):
        return tools
    found: list[Any] = []
    for one in cast("list[Any]", tools):
        inner = list(_inside(one))
        found += [{**tool, "name": joined(namespace, tool.get("name"))} for namespace, tool in inner] or [one]
    return found


def clash(tools: object) -> str:
    """The one name of a tool of a namespace that another tool has as well; "" where there is none."""
    known: dict[str, tuple[str, str]] = {}
    for one in cast("list[Any]", tools if isinstance(tools, list) else []):
        inner = [(namespace, str(tool.get("name"))) for namespace, tool in _inside(one)]
        told = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        for namespace, name in inner or [("", str(told.get("name")))]:
            whole = str(joined(namespace, name))
            if known.setdefault(whole, (namespace, name)) != (namespace, name):
                return whole
    return ""


def parted(tools: object) -> dict[str, dict[str, str]]:
    """What a program knows tools of namespaces by, by their one name."""
    inner = [pair for one in cast("list[Any]", tools if isinstance(tools, list) else []) for pair in _inside(one)]
    named = [(namespace, str(tool.get("name"))) for namespace, tool in inner]
    return {str(joined(namespace, name)): {"name": name, "namespace": namespace} for namespace, name in named}


def _inside(given: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tools of a namespace."""
    told = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    tools: object = told.get("tools")
    if told.get("type") == "namespace" and isinstance(told.get("name"), str) and isinstance(tools, list):
        for one in cast("list[Any]", tools):
            if isinstance(one, dict):
                yield told["name"], cast("dict[str, Any]", one)
