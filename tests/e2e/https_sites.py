"""Two sites over HTTPS on this machine: one whose page shows another one in a frame, and Parlour's behind a proxy."""

from __future__ import annotations

import asyncio
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.certificates import certificate_for, mark_of

OUTER, INNER = "blog.example", "room.test"  # of two sites, as a browser counts them
LOCAL = ("blog.localhost", "room.localhost")  # so are these, and each browser takes them for this machine
# What Hugging Face writes there; without the escape a window that is opened from the frame shows no page of Parlour.
SANDBOX = (
    "allow-downloads allow-forms allow-modals allow-pointer-lock allow-popups allow-popups-to-escape-sandbox "
    "allow-same-origin allow-scripts allow-storage-access-by-user-activation"
)


@dataclass
class HttpsSites:
    """Both, at one port of 127.0.0.1, with a certificate of their own making.

    Args:
        to: Parlour's port; what goes there says by whom and how it was asked, as a proxy's word.
        folder: Where the certificate goes.
        frame: Further attributes of the frame, such as `allow="microphone"`.
        query: What follows Parlour's address in the frame.
        forget: Parts of `Set-Cookie` that do not come through, so that a browser takes a cookie for an older one.
        names: Of the two sites; `LOCAL` where a browser cannot be told where others are.
    """

    to: int
    folder: Path
    frame: str = ""
    query: str = ""
    forget: str = ""
    names: tuple[str, str] = (OUTER, INNER)
    port: int = 0
    mark: str = ""
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _thread: threading.Thread | None = None
    _server: asyncio.Server | None = None
    _lines: list[asyncio.WriteTransport] = field(default_factory=list[asyncio.WriteTransport])

    @property
    def outer(self) -> str:
        """The address of the page with the frame."""
        return f"https://{self.names[0]}:{self.port}/"

    @property
    def inner(self) -> str:
        """Parlour's own."""
        return f"https://{self.names[1]}:{self.port}/"

    def __enter__(self) -> Self:
        certificate = certificate_for(self.names[0], self.folder, self.names[1])
        self.mark = mark_of(certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "chat.pem")
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)  # Playwright's loop has this one
        self._thread.start()
        listening = asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=context)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        mine = asyncio.current_task()
        left = [task for task in asyncio.all_tasks() if task is not mine]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for line in self._lines:  # one that is encrypted waits for the browser's goodbye else
            line.abort()
        await asyncio.sleep(0)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of a connection, which ends with it."""
        self._lines.append(writer.transport)
        # Of connections that are cancelled at the end, asyncio would say that they were.
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                lines = head.rstrip().split("\r\n")
                host = next(line for line in lines if line.lower().startswith("host:"))
                if self.names[1] in host:
                    await self._relay(lines, reader, writer)
                else:
                    writer.write(self._page())
                    await writer.drain()
            finally:
                writer.close()

    def _page(self) -> bytes:
        source = escape(self.inner + self.query)
        page = f'<!doctype html><iframe src="{source}" sandbox="{SANDBOX}" {self.frame} width=1200 height=800></iframe>'
        kind = "Content-Type: text/html; charset=utf-8"
        return f"HTTP/1.1 200 OK\r\n{kind}\r\nConnection: close\r\n\r\n{page}".encode()

    async def _relay(self, lines: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kept = [line for line in lines if not line.lower().startswith(("connection:", "x-forwarded-"))]
        told = ["Connection: close", "X-Forwarded-Proto: https", "X-Forwarded-For: 203.0.113.9"]
        inner, behind = await asyncio.open_connection("127.0.0.1", self.to)
        self._lines.append(behind.transport)
        behind.write("\r\n".join([*kept, *told, "", ""]).encode("latin-1"))
        asked = asyncio.ensure_future(_hand_on(reader, behind))
        try:
            head = (await inner.readuntil(b"\r\n\r\n")).decode("latin-1")
            if self.forget:
                lines = head.splitlines(keepends=True)
                head = "".join(
                    line.replace(self.forget, "") if line.lower().startswith("set-cookie:") else line for line in lines
                )
            writer.write(head.encode("latin-1"))
            await _hand_on(inner, writer)
        finally:
            asked.cancel()
            behind.close()


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
