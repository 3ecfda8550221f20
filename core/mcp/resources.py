"""What a server offers to read, as two tools for the model: a list, and reading one of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from core.mcp.as_tool import model_name
from core.mcp.results import result_of_reading
from core.mcp.shown import one_line, rule_name
from core.tools.base import BaseTool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_types import Resource, ResourceTemplate

    from core.mcp.session import Session

_MOST_TOLD = 200
_LONGEST_ADDRESS = 2000
_NONE: Mapping[str, Any] = {"type": "object", "properties": {}, "required": []}
_URI: Mapping[str, Any] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "The resource's address, as the list gives it."}},
    "required": ["uri"],
}


class _OfServer(BaseTool):
    """Reads what a server holds. It changes nothing, as far as the server can be believed.

    Args:
        session: The connection.
        trusted: Whether the user believes the server.
    """

    own_name: ClassVar[str] = ""
    reaches_out = True

    def __init__(self, session: Session, *, trusted: bool = False) -> None:
        self._session = session
        self.server = session.name
        self.name = model_name(session.name, self.own_name)
        self.trusted = trusted
        super().__init__({"timeout": session.settings.timeout + 2.0})

    @property
    def full_name(self) -> str:
        """`mcp:<server>:<tool>`, by which rules know it."""
        return rule_name(self.server, self.own_name)


class ListResources(_OfServer):
    """Lists what a server offers to read."""

    own_name = "list_resources"
    description = "List what can be read on this server: each with its address."
    parameters = _NONE
    labels: ClassVar[Mapping[str, str]] = {"en": "List resources", "zh": "列出资源"}
    wishes: ClassVar[Mapping[str, str]] = {
        "en": "list what an MCP server offers to read",
        "zh": "列出 MCP 服务器可供读取的内容",
    }

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> ToolResult:
        """The list. Raises McpError."""
        del params, kwargs
        found = await self._session.resources()
        lines = [_line(resource) for resource in found[:_MOST_TOLD]]
        if len(found) > _MOST_TOLD:
            lines.append(f"({len(found) - _MOST_TOLD} more)")
        return ToolResult("\n".join(lines) or "There is nothing to read on this server.")


class ReadResource(_OfServer):
    """Reads one of it."""

    own_name = "read_resource"
    description = "Read something on this server by its address."
    parameters = _URI
    labels: ClassVar[Mapping[str, str]] = {"en": "Read a resource", "zh": "读取资源"}
    wishes: ClassVar[Mapping[str, str]] = {"en": "read something from an MCP server", "zh": "从 MCP 服务器读取内容"}

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> ToolResult:
        """What it holds. Raises McpError."""
        del kwargs
        return result_of_reading(await self._session.read(str(self._verify_json_format_args(params)["uri"])))


def resource_tools(session: Session, *, trusted: bool = False) -> list[BaseTool]:
    """Both, for a server that has resources and no tools of these names."""
    if not session.has_resources:
        return []
    settings = session.settings
    return [
        kind(session, trusted=trusted)
        for kind in (ListResources, ReadResource)
        if session.tool(kind.own_name) is None and kind.own_name not in settings.exclude and not settings.include
    ]


def _line(resource: Resource | ResourceTemplate) -> str:
    address = getattr(resource, "uri", None) or getattr(resource, "uri_template", "")
    words = [one_line(str(address), _LONGEST_ADDRESS), one_line(resource.title or resource.name)]
    if resource.mime_type:
        words.append(f"({one_line(resource.mime_type, 80)})")
    if resource.description:
        words.append(one_line(resource.description, 300))
    return " · ".join(words)
