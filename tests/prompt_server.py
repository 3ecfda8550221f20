"""A server of tests that ends when it is told to, and not at its next tick."""

from __future__ import annotations

import asyncio
import socket

import uvicorn

_TICK = 0.005  # seconds


class PromptServer(uvicorn.Server):
    """Looks every few milliseconds whether it is to end, and with `force_exit` waits for nobody then."""

    async def main_loop(self) -> None:
        """Serve until it is told to end."""
        await self.on_tick(0)
        while not self.should_exit:
            await asyncio.sleep(_TICK)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what is open."""
        if not self.force_exit:
            await super().shutdown(sockets)
            return
        for server in self.servers:
            server.close()
        for one in sockets or []:
            one.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(_TICK)
