"""The MCP servers of this process, and the tools they bring."""

from __future__ import annotations

import asyncio
import atexit
import threading
from typing import TYPE_CHECKING, Any, ClassVar, Self

from core.bridge.sync import run, shared_loop
from core.errors import UnknownNameError
from core.mcp.as_tool import MCPTool
from core.mcp.session import Session
from core.mcp.settings import ServerSettings, servers_from

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from core.tools.base import ToolResult


class MCPClient:
    """One server; an async context manager.

        async with MCPClient("time", {"command": "mcp-server-time"}) as client:
            result = await client.call("get_current_time", {"timezone": "UTC"})

    Args:
        name: The server's name; its tools are named `name-tool`.
        server: `command`, `args`, `env` or `url`, `headers`, and the rest of `ServerSettings`.

    Raises:
        SettingsError: The settings are wrong.
    """

    def __init__(self, name: str, server: ServerSettings | Mapping[str, Any]) -> None:
        if not isinstance(server, ServerSettings):
            server = servers_from({"mcpServers": {name: {**server, "disabled": False}}})[name]
        self.name = name
        self.settings = server
        self.tools: list[MCPTool] = []
        self._session = Session(name, server)

    @property
    def is_open(self) -> bool:
        """Whether it is connected."""
        return self._session.is_open

    async def connect(self) -> None:
        """Start or reach the server and list its tools.

        Raises:
            McpError: It cannot be started, reached or understood.
        """
        await self._session.open()
        self.tools = [MCPTool(self._session, tool) for tool in self._session.tools]

    async def call(self, tool: str, arguments: dict[str, Any] | None = None) -> ToolResult:
        """Run a tool by the server's own name for it.

        Raises:
            UnknownNameError: The server has no such tool.
            McpError: The server failed.
        """
        for known in self.tools:
            if tool in (known.name, known.own_name):
                return await known.call(arguments or {})
        raise UnknownNameError(f"tool of the MCP server {self.name!r}", tool, [known.own_name for known in self.tools])

    async def aclose(self) -> None:
        """End the connection, and the process that was started for it."""
        await self._session.aclose()

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class MCPManager:
    """Connections that outlive the agents that use them: the same settings give the same connection.

    `MCPManager.shared()` is the one that agents use.
    """

    _shared: ClassVar[MCPManager | None] = None
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._clients: list[MCPClient] = []

    @classmethod
    def shared(cls) -> MCPManager:
        """The manager of this process; its servers end with it."""
        with cls._guard:
            if MCPManager._shared is None:
                MCPManager._shared = MCPManager()
                shared_loop()  # registered to end first, so that the servers are closed before it
                atexit.register(MCPManager._shared.close)
            return MCPManager._shared

    async def connect(self, config: Mapping[str, Any]) -> list[MCPTool]:
        """Reach all servers of `{"mcpServers": {...}}`, at the same time, and list their tools in order.

        Raises:
            SettingsError: The settings are wrong; no server is started.
            McpError: A server cannot be started, reached or understood; those just started are ended again.
        """
        wanted = servers_from(config)
        clients = [self._known(name, server) or MCPClient(name, server) for name, server in wanted.items()]
        fresh = [client for client in clients if client not in self._clients]
        outcomes = await asyncio.gather(*(client.connect() for client in fresh), return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures:
            await asyncio.gather(*(client.aclose() for client in fresh))
            raise failures[0]
        self._clients += fresh
        return [tool for client in clients for tool in client.tools]

    def init_config(self, config: Mapping[str, Any]) -> list[MCPTool]:
        """`connect`, from synchronous code."""
        return run(self.connect(config))

    async def aclose(self) -> None:
        """End all connections."""
        clients, self._clients = self._clients, []
        await asyncio.gather(*(client.aclose() for client in clients))

    def close(self) -> None:
        """`aclose`, from synchronous code."""
        run(self.aclose())

    def _known(self, name: str, server: ServerSettings) -> MCPClient | None:
        alive = (client for client in self._clients if client.is_open)
        return next((client for client in alive if client.name == name and client.settings == server), None)
