"""Signing in with the browser of this machine, for a program in a terminal: the answer arrives at a loopback port.

As RFC 8252 describes it: the port is a free one, open for one answer and no longer than the question is.
"""

from __future__ import annotations

import asyncio
import hmac
import sys
import webbrowser
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from core.mcp.sign_in import SignIn
from core.settings import terminal_language

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from mcp.client.auth import TokenStorage

    from core.mcp.sign_in import Ask

_PATH = "/signed-in"
_NOTHING = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_LONGEST = 16 * 1024  # bytes of a request
_SECONDS = 10.0  # for its first lines
_SAID = {
    "en": ("Sign in on this page, which should be open in your browser:", "You can close this tab."),
    "zh": ("请在浏览器打开的页面中登录：", "可以关闭此标签页了。"),
}


class BrowserSignIn(SignIn):
    """Opens the browser of this machine, where the program runs in a terminal; else nobody is there.

    Args:
        storage: As of `SignIn`.
        show: Shows the address; prints it and opens the browser if left out.
    """

    def __init__(
        self,
        *,
        storage: Callable[[str], TokenStorage] | None = None,
        show: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(None, storage=storage)
        self._show = show

    @property
    def somebody_is_there(self) -> bool:
        """Whether the program can show an address: it was told how, or somebody sits at its terminal."""
        return self._show is not None or (sys.stdin.isatty() and sys.stderr.isatty())

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[tuple[str, Ask]]:
        """A port of this machine alone, until an answer has come or nobody waits for it any more."""
        back: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        expected: list[str] = []  # the state of what was asked

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            path = await _asked_for(reader)
            fits = bool(expected) and _is_answer(path, expected[0]) and not back.done()
            writer.write(_page() if fits else _NOTHING)
            if fits:
                back.set_result(path)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=_LONGEST)
        own = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        async def ask(address: str) -> str:
            expected.append(next(iter(parse_qs(urlsplit(address).query).get("state", [])), ""))
            await asyncio.to_thread(self._show or _in_browser, address)
            return own + await back

        try:
            yield own + _PATH, ask
        finally:
            server.close()


IN_BROWSER = BrowserSignIn()


async def _asked_for(reader: asyncio.StreamReader) -> str:
    """The path and query of a request; "" where it is none."""
    try:
        async with asyncio.timeout(_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
    except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return ""
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split()
    return words[1] if len(words) == 3 and words[0] == "GET" else ""


def _is_answer(path: str, state: str) -> bool:
    """Any page may knock at the port: only whoever knows the state is the service that was asked."""
    parts = urlsplit(path)
    given = next(iter(parse_qs(parts.query).get("state", [])), "")
    return parts.path == _PATH and bool(state) and hmac.compare_digest(given.encode(), state.encode())


def _in_browser(address: str) -> None:
    sys.stderr.write(f"{_SAID[terminal_language()][0]}\n{address}\n")
    sys.stderr.flush()
    webbrowser.open(address)


def _page() -> bytes:
    said = _SAID[terminal_language()][1].encode()
    head = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(said)}\r\nconnection: close\r\n\r\n"
    return f"HTTP/1.1 200 OK\r\ncache-control: no-store\r\n{head}".encode() + said
