"""Keyword arguments of a reply that are almost ones that it has: refused, instead of being handed to tools unheard."""

from __future__ import annotations

import inspect
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final

from core.errors import SettingsError
from core.tools.approval import Guard, Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from core.tools.base import BaseTool

_ALWAYS: Final = ("approval", "knowledge", "lang", "progress")
_NEAR: Final = 0.82
_APPROVAL: Final = ("approval", "approve")  # it decides what may run: what it is likely to be called is meant, too
_NEAR_APPROVAL: Final = 0.8
_HOOKS: Final = ("_stream_reply", "_run")
_NO_NAMES: Final = frozenset({"self", "messages", "kwargs"})


def check_keywords(
    agent: object, tools: Iterable[BaseTool], given: Mapping[str, Any], known: Iterable[str] = ()
) -> None:
    """Whether no name is almost one that the reply has; what is not near any is for the tools.

    Args:
        agent: Who is asked; what its hooks take by name is known.
        tools: What theirs take by name is known, too.
        given: Names and values.
        known: Names that whoever is called takes besides.

    Raises:
        SettingsError: A name is misspelt, or rules stand under another name than `approval`; the hint has the right
            one. Or `lang` is no language that Parlour knows.
    """
    if (lang := given.get("lang")) and lang not in ("en", "zh"):
        raise SettingsError(f"lang cannot be {lang!r}.", hint="Give en or zh.", name="lang")
    for name, meant in _misspelt(agent, tools, given, known).items():
        said = f"A reply of {type(agent).__name__} has no argument {name!r}."
        raise SettingsError(said, hint=f"Did you mean {meant!r}?", name=name, meant=meant)


def handed_on(agent: object, given: Mapping[str, Any]) -> dict[str, Any]:
    """What another agent passes on, without names that only its own tools know and this one would refuse."""
    tools: Mapping[str, BaseTool] = getattr(agent, "function_map", {})
    wrong = _misspelt(agent, tools.values(), given)
    return {name: value for name, value in given.items() if name not in wrong}


def _misspelt(
    agent: object, tools: Iterable[BaseTool], given: Mapping[str, Any], known: Iterable[str] = ()
) -> dict[str, str]:
    """What is meant by the names that are almost ones that the reply has."""
    if not given:
        return {}
    ours = {*_ALWAYS, *known, *_taken_by(getattr(type(agent), hook, None) for hook in _HOOKS)}
    unknown = given.keys() - ours
    if unknown:
        unknown -= _taken_by(tool.call for tool in tools)
    meant = {name: _meant(name, given[name], ours) for name in sorted(unknown)}
    return {name: one for name, one in meant.items() if one}


def _meant(name: str, value: object, ours: Iterable[str]) -> str:
    if isinstance(value, Guard | Policy):
        return "approval"
    written = name.lower().strip("_")
    if max(_likeness(written, one) for one in _APPROVAL) >= _NEAR_APPROVAL:
        return "approval"
    nearest = max(sorted(ours), key=lambda one: _likeness(written, one))
    return nearest if _likeness(written, nearest) >= _NEAR else ""


def _likeness(written: str, name: str) -> float:
    return SequenceMatcher(None, written, name).ratio()


def _taken_by(functions: Iterable[Any]) -> set[str]:
    """The names of what functions take by name."""
    names: set[str] = set()
    for function in functions:
        if function is None:
            continue
        parameters = inspect.signature(function).parameters.values()
        names |= {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    return names - _NO_NAMES
