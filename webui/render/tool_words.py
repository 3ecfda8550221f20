"""What a tool is called and what is said of it: the page's own words (`tool.…`, `tools.about.…`), else its class's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import ParlourError
from core.tools.catalog import TOOL_REGISTRY

if TYPE_CHECKING:
    from core.tools.base import BaseTool
    from webui.words import Words


def label_of(name: str, words: Words) -> str:
    """The label of a tool; "" for one that is known by its name alone."""
    if f"tool.{name}" in words:
        return words(f"tool.{name}")
    kind = _class_of(name)
    return (kind.labels.get(words.spoken) or kind.labels.get("en") or "") if kind is not None else ""


def about_of(name: str, words: Words) -> str:
    """What a tool does, in a sentence; what a model is told where there is none for people, "" for an unknown tool."""
    if f"tools.about.{name}" in words:
        return words(f"tools.about.{name}")
    kind = _class_of(name)
    return (kind.about.get(words.spoken) or kind.about.get("en") or kind.description) if kind is not None else ""


def _class_of(name: str) -> type[BaseTool] | None:
    try:
        return TOOL_REGISTRY.get(name)
    except ParlourError:  # a package that it needs is not installed
        return None
