"""A tool of an MCP server as a tool of ours."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from core.messages.content import ContentItem
from core.tools.base import BaseTool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_types import Tool

    from core.mcp.session import Session

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST_NAME = 64  # what model services accept


class MCPTool(BaseTool):
    """Runs on the server. What it does there is not known, so it counts as writing and reaching out.

    Args:
        session: The connection.
        tool: As the server lists it; an incomplete schema is completed.
    """

    writes = True
    reaches_out = True
    idempotent = False

    def __init__(self, session: Session, tool: Tool) -> None:
        self._session = session
        self.own_name = tool.name
        self.name = _NOT_IN_NAMES.sub("_", f"{session.name}-{tool.name}")[:_LONGEST_NAME]
        self.description = tool.description or tool.title or tool.name
        self.parameters = _completed(cast("Mapping[str, Any]", tool.input_schema))
        super().__init__({"timeout": session.settings.timeout, "name_for_human": tool.title or self.name})

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> ToolResult:
        """Run it.

        Raises:
            McpError: The server is gone, too slow, or breaks the protocol.
        """
        del kwargs
        return result_of(await self._session.call(self.own_name, self._verify_json_format_args(params)))


def result_of(answer: CallToolResult) -> ToolResult:
    """Text, pictures, sounds and files of an answer; `isError` marks the result as failed."""
    texts: list[str] = []
    items: list[ContentItem] = []
    for block in answer.content:
        match block:
            case TextContent():
                texts.append(block.text)
            case ImageContent():
                items.append(ContentItem(image=_data_uri(block.mime_type, block.data)))
            case AudioContent():
                items.append(ContentItem(audio=_data_uri(block.mime_type, block.data)))
            case ResourceLink():
                texts.append(f"{block.title or block.name}: {block.uri}")
            case EmbeddedResource(resource=TextResourceContents() as resource):
                texts.append(resource.text)
            case EmbeddedResource(resource=BlobResourceContents() as resource):
                items.append(ContentItem(file=_data_uri(resource.mime_type or "", resource.blob)))
            case _:
                texts.append(f"(something that cannot be shown: {block.type})")
    if not texts and answer.structured_content is not None:
        texts.append(json.dumps(answer.structured_content, ensure_ascii=False, indent=2))
    extra = {"failed": "tool_failed"} if answer.is_error else {}
    return ToolResult("\n".join(texts), tuple(items), extra=extra)


def _data_uri(media_type: str, data: str) -> str:
    return f"data:{media_type or 'application/octet-stream'};base64,{data}"


def _completed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of an object, whatever the server left out."""
    given = {key: value for key, value in schema.items() if key != "$schema"}
    properties = given.get("properties")
    known = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
    required = given.get("required")
    needed = [name for name in cast("list[Any]", required) if name in known] if isinstance(required, list) else []
    return {**given, "type": "object", "properties": known, "required": needed}
