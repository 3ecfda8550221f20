"""What an MCP server answers, as tool results and messages; and its lists, page by page with an end."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from core.mcp.journal import one_line
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, USER, Message
from core.tools.base import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcp import Client
    from mcp_types import Prompt, Resource, ResourceTemplate, Tool

    from core.mcp.journal import ServerLog


_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")
_MOST_ITEMS = 32
_LONGEST_ADDRESS = 2000


def result_of(answer: CallToolResult) -> ToolResult:
    """Text, pictures, sounds and files of an answer; `isError` marks the result as failed."""
    texts, items = _sorted(answer.content)
    if not texts and answer.structured_content is not None:
        texts.append(json.dumps(answer.structured_content, ensure_ascii=False, indent=2))
    extra = {"failed": "tool_failed"} if answer.is_error else {}
    return ToolResult("\n".join(texts), tuple(items), extra=extra)


def result_of_reading(answer: ReadResourceResult) -> ToolResult:
    """What a resource holds."""
    texts, items = _sorted([EmbeddedResource(type="resource", resource=part) for part in answer.contents])
    return ToolResult("\n".join(texts), tuple(items))


def messages_of(prompt: GetPromptResult) -> list[Message]:
    """A prompt as messages of ours. A server's words are a user's or an assistant's, never the system's."""
    messages: list[Message] = []
    for given in prompt.messages:
        texts, items = _sorted([given.content])
        role = ASSISTANT if given.role == "assistant" else USER
        text = "\n".join(texts)
        whole = [*([ContentItem(text=text)] if text else []), *items]
        messages.append(Message(role, whole if items else text))
    return messages


def _sorted(blocks: Iterable[Any]) -> tuple[list[str], list[ContentItem]]:
    texts: list[str] = []
    items: list[ContentItem] = []
    left_out = 0
    for block in blocks:
        shown = _shown(block)
        if isinstance(shown, str):
            texts.append(shown)
        elif len(items) < _MOST_ITEMS:
            items.append(shown)
        else:
            left_out += 1
    if left_out:
        texts.append(f"({left_out} more files were left out)")
    return texts, items


def _shown(block: Any) -> str | ContentItem:
    """A part of an answer: its text, or what it is a picture, sound or file of."""
    match block:
        case TextContent():
            return block.text
        case ImageContent():
            uri = _data_uri(block.mime_type, block.data)
            return ContentItem(image=uri) if uri and uri.startswith("data:image/") else _unreadable("picture")
        case AudioContent():
            uri = _data_uri(block.mime_type, block.data)
            return ContentItem(audio=uri) if uri and uri.startswith("data:audio/") else _unreadable("sound")
        case ResourceLink():
            about = f" ({one_line(block.description, 500)})" if block.description else ""
            return f"{one_line(block.title or block.name)}: {one_line(str(block.uri), _LONGEST_ADDRESS)}{about}"
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return resource.text
        case EmbeddedResource(resource=BlobResourceContents() as resource):
            uri = _data_uri(resource.mime_type or "", resource.blob)
            if uri is None:
                return _unreadable("file")
            return ContentItem(image=uri) if uri.startswith("data:image/") else ContentItem(file=uri)
        case _:
            return f"(something that cannot be shown: {one_line(str(getattr(block, 'type', '')), 40)})"


def _data_uri(media_type: str, data: str) -> str | None:
    """The data as an address; `None` if they are none. The type comes from the server: only a plain one is taken."""
    plain = media_type.partition(";")[0].strip().lower()
    kind = plain if _MEDIA_TYPE.fullmatch(plain) else "application/octet-stream"
    if not data or not _BASE64.fullmatch(data):
        return None
    return f"data:{kind};base64,{data.strip()}"


def _unreadable(what: str) -> str:
    return f"(a {what} that cannot be read)"


_MOST_PAGES = 50  # of a list: a server that never ends its list is cut off
_MOST_LISTED = 1000


async def listed_tools(client: Client) -> tuple[Tool, ...]:
    """Its tools, as they are now."""
    if client.server_capabilities.tools is None:
        return ()
    return tuple(await _pages(client.list_tools, "tools", cache_mode="refresh"))


async def listed_resources(client: Client) -> list[Resource | ResourceTemplate]:
    """What can be read, and what by a pattern of addresses."""
    whole: list[Resource | ResourceTemplate] = list(await _pages(client.list_resources, "resources"))
    try:
        return whole + await _pages(client.list_resource_templates, "resource_templates")
    except MCPError:  # a server may know no patterns
        return whole


async def listed_prompts(client: Client) -> list[Prompt]:
    """Its prompts."""
    return await _pages(client.list_prompts, "prompts")


async def has_resources(client: Client, journal: ServerLog) -> bool:
    """Whether there is anything to read: many servers announce resources and have none."""
    if client.server_capabilities.resources is None:
        return False
    try:
        if (await client.list_resources()).resources:
            return True
        return bool((await client.list_resource_templates()).resource_templates)
    except MCPError as error:
        journal.note(f"What it offers to read cannot be listed: {error.message}")
        return False


async def _pages(list_page: Callable[..., Awaitable[Any]], field: str, **more: Any) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await list_page(cursor=cursor, **more)
        found += getattr(page, field)
        cursor = page.next_cursor
        if not cursor or len(found) >= _MOST_LISTED:
            break
    return found[:_MOST_LISTED]
