"""Whole lists of what a server offers, page by page and with an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp import Client
    from mcp_types import Prompt, Resource, ResourceTemplate, Tool

    from core.mcp.journal import Journal

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


async def has_resources(client: Client, journal: Journal) -> bool:
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
