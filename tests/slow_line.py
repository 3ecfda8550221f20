"""A line between a client and a server of this machine that can be held up: what comes in waits until it is let on."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self


class SlowLine:
    """Hands bytes on to a port of 127.0.0.1, both ways.

    Args:
        to: The port.

    Attributes:
        port: Where it listens.
        seconds: How much later each piece arrives than it would.
        held: Whether nothing arrives at all.
    """

    def __init__(self, to: int) -> None:
        self.to, self.port = to, 0
        self.seconds, self.held = 0.0, False
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._line, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _line(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", self.to)
        for pair in ((reader, there[1]), (there[0], writer)):
            task = asyncio.create_task(self._hand_on(*pair))
            self._lines.add(task)
            task.add_done_callback(self._lines.discard)

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            try:
                while data := await reader.read(1 << 16):
                    await asyncio.sleep(self.seconds)
                    while self.held:
                        await asyncio.sleep(0.01)
                    writer.write(data)
                    await writer.drain()
            finally:
                writer.close()
