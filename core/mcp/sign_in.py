"""Who can be asked to sign in to a server, and where its tokens are kept.

A program in a terminal signs in with this machine's browser.
"""

from __future__ import annotations

import asyncio
import hmac
import sys
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from core.settings import terminal_language

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from mcp.client.auth import TokenStorage
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken


Ask: TypeAlias = Callable[[str], Awaitable[str]]


class SignIn:
    """Lets somebody sign in to the servers of a program.

    Args:
        ask: Is given the address of the page on which to sign in, and returns the whole address to which that page sent
            the browser back: it begins with `redirect_uri` and holds code and state. It is called on the shared loop,
            and has ten minutes. `None` where nobody is there; then only tokens that are kept are used.
        redirect_uri: Where the browser is sent back to: an `https` address, or `http` on this machine.
        storage: Where the tokens of a server are kept: called with its address, gives what the `mcp` package calls a
            `TokenStorage`. In memory if left out.
    """

    def __init__(
        self,
        ask: Ask | None,
        *,
        redirect_uri: str = "",
        storage: Callable[[str], TokenStorage] | None = None,
    ) -> None:
        self._ask = ask
        self._redirect_uri = redirect_uri
        self._storage = storage
        self._memory: dict[str, MemoryTokens] = {}

    @property
    def somebody_is_there(self) -> bool:
        """Whether anybody can be asked now."""
        return self._ask is not None

    def tokens(self, url: str) -> TokenStorage:
        """Where the tokens of the server at an address are kept."""
        if self._storage is not None:
            return self._storage(url)
        return self._memory.setdefault(url, MemoryTokens())

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[tuple[str, Ask]]:
        """While it is open, answers arrive at the first of these, and the second asks. Somebody must be there."""
        if self._ask is None:
            raise RuntimeError("nobody is there to be asked")
        yield self._redirect_uri, self._ask


class MemoryTokens:
    """The tokens of one server, until the program ends."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """What was kept last."""
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """As whom the program is registered."""
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep as whom the program is registered."""
        self._client = client_info


class KeptTokens:
    """The tokens of one server, as plain values somewhere else.

    Args:
        read: Gives what is kept: `tokens` and `client`, where there are any.
        write: Keeps one of the two.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[Mapping[str, Any]]],
        write: Callable[[str, Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        self._read = read
        self._write = write

    async def get_tokens(self) -> OAuthToken | None:
        """What was kept last."""
        from mcp.shared.auth import OAuthToken

        kept = (await self._read()).get("tokens")
        return OAuthToken.model_validate(kept) if kept else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep tokens."""
        await self._write("tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """As whom the owner is registered."""
        from mcp.shared.auth import OAuthClientInformationFull

        kept = (await self._read()).get("client")
        return OAuthClientInformationFull.model_validate(kept) if kept else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep as whom the owner is registered."""
        await self._write("client", client_info.model_dump(mode="json", exclude_none=True))


NOBODY = SignIn(None)


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
