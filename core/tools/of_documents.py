"""Results that are words of documents: who has none of these is not to read them beside what a reply cites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.errors import ParlourError
from core.tools.catalog import TOOL_REGISTRY

if TYPE_CHECKING:
    from core.messages.message import Message
    from core.tools.base import BaseTool, ToolResult

_MARK: Final = "of_documents"  # in a result's `extra`


def mark_of_documents(tool: BaseTool | None, result: ToolResult) -> dict[str, Any]:
    """What the `extra` of a result says where it is words of documents, and no passages tell which.

    Args:
        tool: The tool; `None` where there is none of that name.
        result: What it gave.
    """
    return {_MARK: True} if tool is not None and tool.of_documents and not result.passages else {}


def is_of_documents(result: Message) -> bool:
    """Whether a result is words of documents: its mark says so, or, where it is an older one, the tool of its name."""
    return bool((result.extra or {}).get(_MARK)) or _says_so(result.name or "")


def _says_so(name: str) -> bool:
    try:
        return name in TOOL_REGISTRY and TOOL_REGISTRY[name].of_documents
    except ParlourError:  # its package is gone, and nothing else tells
        return True
