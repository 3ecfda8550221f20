"""One MCP server: a task of its own opens, uses and closes the client."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from core.bridge.sync import shared_loop
from core.errors import McpError, ServerMisbehavedError, ServerUnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcp_types import CallToolResult, Tool
    from pydantic import SecretStr

    from core.mcp.settings import ServerSettings

T = TypeVar("T")

_CLOSING_SECONDS = 8.0
_LONGEST_QUOTE = 200
_SHORTEST_KEY = 8  # characters: shorter values (a port, "true") are no secrets
_MOST_PAGES = 50  # of a list of tools: a server that never ends its list is cut off
_CLOSED = -32000  # the SDK's code for a connection that is gone
_TIMED_OUT = -32001
_HTTP = httpx2.Timeout(30.0, read=300.0)  # a server may hold a stream of events open
_NETWORK = (OSError, EOFError, httpx2.HTTPError, anyio.BrokenResourceError, anyio.ClosedResourceError)
_FAILURES = (MCPError, *_NETWORK, RuntimeError, ValueError, BaseExceptionGroup)


class Session:
    """A connection to one server. Everything happens on the shared loop; callers may be on any thread or loop.

    Args:
        name: The server's name, for messages.
        settings: How to reach it.
    """

    def __init__(self, name: str, settings: ServerSettings) -> None:
        self.name = name
        self.settings = settings
        self.tools: tuple[Tool, ...] = ()
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._scope = anyio.CancelScope()

    @property
    def is_open(self) -> bool:
        """Whether the client is there; a server that has died shows at the next call."""
        return self._client is not None

    async def open(self) -> None:
        """Start or reach the server and list its tools.

        Raises:
            ServerUnreachableError: It cannot be started or reached, or does not answer in time.
            ServerMisbehavedError: It answers, but not in the protocol.
        """
        await self._on_loop(self._open)

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Run a tool. The call is cancelled on the server when the caller is.

        Raises:
            ServerUnreachableError: The connection is gone.
            ServerMisbehavedError: The answer breaks the protocol, comes too late, or is an error of the server.
        """
        return await self._on_loop(lambda: self._call(tool, arguments))

    async def aclose(self) -> None:
        """End the connection, and the process that was started for it."""
        await self._on_loop(self._close)

    # -- on the shared loop ---------------------------------------------------------------------------------------

    async def _open(self) -> None:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(ready), name=f"MCP server {self.name}")
        self._owner.add_done_callback(lambda task: _pass_on(task, ready))
        try:
            async with asyncio.timeout(self.settings.connect_timeout):
                await asyncio.shield(ready)
        except TimeoutError:
            raise self._unreachable(f"did not answer within {self.settings.connect_timeout:g} seconds") from None
        finally:
            if not ready.done() or ready.cancelled() or ready.exception() is not None:
                await self._close()

    async def _own(self, ready: asyncio.Future[None]) -> None:
        """Open the client, wait until it is to go, close it: in one task, as its cancel scopes demand."""
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log, self._scope:
            try:
                async with AsyncExitStack() as opened:
                    client = await _connected(self.settings, log, opened)
                    self.tools = await _listed(client)
                    self._client = client
                    if not ready.done():
                        ready.set_result(None)
                    await self._leave.wait()
            except _FAILURES as error:
                if not ready.done():
                    ready.set_exception(self._translated(error, _last_line(log)))
            finally:
                self._client = None

    async def _call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        if self._client is None:
            raise self._unreachable("is not connected")
        try:
            return await self._client.call_tool(tool, arguments, read_timeout_seconds=self.settings.timeout)
        except _FAILURES as error:
            failure = self._translated(error)
            if isinstance(failure, ServerUnreachableError):
                self._leave.set()  # the owner closes what is left; whoever wants the server again connects anew
            raise failure from error

    async def _close(self) -> None:
        owner = self._owner
        if owner is None or owner is asyncio.current_task():
            return
        connected = self._client is not None
        self._leave.set()
        if connected:
            await asyncio.wait({owner}, timeout=_CLOSING_SECONDS)
        if not owner.done():
            self._scope.cancel()
            await asyncio.wait({owner}, timeout=_CLOSING_SECONDS)

    # -- inside ---------------------------------------------------------------------------------------------------

    async def _on_loop(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        loop = shared_loop()
        if asyncio.get_running_loop() is loop:
            return await make()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), loop))

    def _unreachable(self, what: str, wrote: str = "") -> ServerUnreachableError:
        more = f" It wrote: {self._redacted(wrote)}" if wrote else ""
        hint = "Check its command, arguments and environment." if self.settings.command else "Check its address."
        return ServerUnreachableError(f"The MCP server {self.name!r} {what}.{more}", hint=hint, name=self.name)

    def _translated(self, error: BaseException, wrote: str = "") -> McpError:
        """The error as one of ours; `wrote` is the last that the server said on its error output."""
        inner = _innermost(error)
        if isinstance(inner, FileNotFoundError):
            return self._unreachable(f"cannot be started: there is no program {self.settings.command!r}")
        if isinstance(inner, _NETWORK) or (isinstance(inner, MCPError) and inner.code == _CLOSED):
            return self._unreachable("has ended or cannot be reached", wrote)
        if isinstance(inner, MCPError) and inner.code == _TIMED_OUT:
            seconds = f"{self.settings.timeout:g} seconds"
            return ServerMisbehavedError(f"The MCP server {self.name!r} did not answer in {seconds}.", name=self.name)
        said = str(inner.message if isinstance(inner, MCPError) else inner).partition("\n")[0]
        return ServerMisbehavedError(f"The MCP server {self.name!r} failed: {self._redacted(said)}", name=self.name)

    def _redacted(self, text: str) -> str:
        """The beginning of what a server says, without the keys it was given: log, page and model repeat it."""
        for secret in (*_revealed(self.settings.env).values(), *_revealed(self.settings.headers).values()):
            for key in (secret, secret.partition(" ")[2]):  # "Bearer …" is repeated without its first word too
                text = text.replace(key, "…") if len(key) >= _SHORTEST_KEY else text
        return text[:_LONGEST_QUOTE]


async def _connected(settings: ServerSettings, log: IO[str], opened: AsyncExitStack) -> Client:
    """A client that `opened` closes; every wait of it has an end."""
    if settings.type == "stdio":
        # The SDK hands down a few harmless variables (PATH, HOME …) and adds these; no key of ours is among them.
        environment = _revealed(settings.env)
        server = StdioServerParameters(
            command=settings.command or "", args=list(settings.args), env=environment, cwd=settings.cwd
        )
        transport: Any = stdio_client(server, errlog=cast("Any", log))
    elif settings.type == "sse":
        transport = sse_client(settings.url or "", headers=_revealed(settings.headers))
    else:
        http = await opened.enter_async_context(httpx2.AsyncClient(headers=_revealed(settings.headers), timeout=_HTTP))
        transport = streamable_http_client(settings.url or "", http_client=http)
    return await opened.enter_async_context(Client(transport, read_timeout_seconds=settings.timeout))


async def _listed(client: Client) -> tuple[Tool, ...]:
    found: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tuple(found)


def _revealed(secrets: Any) -> dict[str, str]:
    given = cast("dict[str, SecretStr]", dict(secrets))
    return {name: secret.get_secret_value() for name, secret in given.items()}


def _pass_on(owner: asyncio.Task[None], ready: asyncio.Future[None]) -> None:
    """Whoever waits for the server hears of an owner that ended before it was ready."""
    error = None if owner.cancelled() else owner.exception()
    if ready.done():
        return
    if error is None:
        ready.cancel()
    else:
        ready.set_exception(error)


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _last_line(log: IO[str]) -> str:
    log.seek(0, 2)
    log.seek(max(log.tell() - 2000, 0))
    lines = [line.strip() for line in log.read().splitlines() if line.strip()]
    return lines[-1] if lines else ""
