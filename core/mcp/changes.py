"""Hears that a server's tools are other ones, in both ways of saying so; lists them anew, soon and not too often."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp_types import ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp import Client

_APART = 0.5  # seconds between two lists: a server that says "changed" without end is not listed without end


class Changes:
    """Follows one connection.

    Args:
        refresh: Lists the tools anew.
    """

    def __init__(self, refresh: Callable[[], Awaitable[None]]) -> None:
        self._refresh = refresh
        self._heard = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def heard(self, message: object) -> None:
        """Takes every notification of the server."""
        if isinstance(message, ToolListChangedNotification):
            self._heard.set()

    def follow(self, client: Client) -> None:
        """Begin; newer servers want to be asked for such news."""
        self._tasks.append(asyncio.create_task(self._listing()))
        tools = client.server_capabilities.tools
        if tools is not None and tools.list_changed and client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            self._tasks.append(asyncio.create_task(self._listening(client)))

    async def aclose(self) -> None:
        """Follow no more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    async def _listing(self) -> None:
        while True:
            await self._heard.wait()
            self._heard.clear()
            await self._refresh()
            await asyncio.sleep(_APART)

    async def _listening(self, client: Client) -> None:
        try:
            subscription: Any
            async with client.listen(tools_list_changed=True) as subscription:
                async for _ in subscription:
                    self._heard.set()
        except (MCPError, RuntimeError, OSError, TimeoutError):
            return  # it does not tell after all, or is gone, which shows at the next call
