"""The MCP servers of this process, and the tools they bring."""

from __future__ import annotations

import asyncio
import atexit
import threading
from typing import TYPE_CHECKING, Any, ClassVar, Self

from core.bridge.sync import run, shared_loop
from core.errors import UnknownNameError
from core.mcp.results import messages_of, result_of_reading
from core.mcp.session import Session
from core.mcp.settings import ServerSettings, servers_from
from core.mcp.sign_in import IN_BROWSER
from core.mcp.tools import MCPTool, resource_tools, tools_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from mcp_types import Prompt, Resource, ResourceTemplate

    from core.mcp.forms import Elicit
    from core.mcp.journal import LogLine
    from core.mcp.sign_in import SignIn
    from core.messages.message import Message
    from core.tools.base import BaseTool, ToolResult


class MCPClient:
    """One server; an async context manager.

        async with MCPClient("time", {"command": "mcp-server-time"}) as client:
            result = await client.call("get_current_time", {"timezone": "UTC"})

    Args:
        name: The server's name; its tools are named `name-tool`.
        server: `command`, `args`, `env` or `url`, `headers`, and the rest of `ServerSettings`.
        trusted: Whether what it says of its tools is believed: those that say they only read then run unasked.
        approved: Fingerprints of tools (`MCPTool.fingerprint`) as they were agreed to, by the server's own names; one
            that is not among them, or has another now, is asked for before it runs.
        elicit: Asks the user what the server wants to know, see `Session`; left out, a server cannot ask.
        sign_in: How the user signs in where the server wants that. Left out, a program in a terminal opens the browser
            and listens on a port of this machine once; any other raises `SignInNeededError`.

    Raises:
        SettingsError: The settings are wrong.
    """

    def __init__(
        self,
        name: str,
        server: ServerSettings | Mapping[str, Any],
        *,
        trusted: bool = False,
        approved: Mapping[str, str] | None = None,
        elicit: Elicit | None = None,
        sign_in: SignIn = IN_BROWSER,
    ) -> None:
        if not isinstance(server, ServerSettings):
            server = servers_from({"mcpServers": {name: {**server, "disabled": False}}})[name]
        self.name = name
        self.settings = server
        self.tools: list[BaseTool] = []
        self._trusted = trusted
        self._approved = approved
        self._session = Session(name, server, elicit=elicit, sign_in=sign_in, changed=self._list)

    @property
    def is_open(self) -> bool:
        """Whether it is connected."""
        return self._session.is_open

    @property
    def keep_alive(self) -> bool:
        """Whether it was connected and not closed since; a server that died is started again by the next call."""
        return self._session.keep_alive

    @property
    def log(self) -> tuple[LogLine, ...]:
        """The last lines that the server wrote beside its answers, without keys."""
        return self._session.journal.lines

    async def connect(self) -> None:
        """Start or reach the server and list its tools.

        Raises:
            SignInNeededError: It wants a sign-in, and there is nobody who could, or it did not work.
            McpError: It cannot be started, reached or understood.
        """
        await self._session.open()
        self._list()

    async def call(self, tool: str, arguments: dict[str, Any] | None = None) -> ToolResult:
        """Run `tool`, by the server's own name for it, with `arguments`.

        Raises:
            UnknownNameError: The server has no such tool.
            McpError: The server failed.
        """
        own = [known for known in self.tools if isinstance(known, MCPTool)]
        for known in own:
            if tool in (known.name, known.own_name):
                return await known.call(arguments or {})
        raise UnknownNameError(f"tool of the MCP server {self.name!r}", tool, [known.own_name for known in own])

    async def resources(self) -> list[Resource | ResourceTemplate]:
        """What it offers to read; patterns of addresses are among it. Raises McpError."""
        return await self._session.resources()

    async def read(self, uri: str) -> ToolResult:
        """Read the resource at `uri`. Raises McpError."""
        return result_of_reading(await self._session.read(uri))

    async def prompts(self) -> list[Prompt]:
        """The prompts it offers. Raises McpError."""
        return await self._session.prompts()

    async def prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> list[Message]:
        """The prompt `name`, its blanks filled from `arguments`, as messages. Raises McpError."""
        return messages_of(await self._session.prompt(name, dict(arguments or {})))

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

    def _list(self) -> None:
        """Tools that are as they were stay the same objects."""
        old = {tool.name: tool for tool in self.tools if isinstance(tool, MCPTool)}
        fresh = tools_of(self._session, trusted=self._trusted, approved=self._approved)
        kept: list[BaseTool] = []
        for tool in fresh:
            same = old.get(tool.name)
            kept.append(same if same is not None and same.fingerprint == tool.fingerprint else tool)
        self.tools = [*kept, *resource_tools(self._session, trusted=self._trusted)]


class MCPManager:
    """Connections that outlive the agents that use them: the same settings give the same connection.

    `MCPManager.shared()` is the one that agents use.

    Args:
        sign_in: As of `MCPClient`, for all servers.
    """

    _shared: ClassVar[MCPManager | None] = None
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, *, sign_in: SignIn = IN_BROWSER) -> None:
        self._clients: list[MCPClient] = []
        self._sign_in = sign_in

    @classmethod
    def shared(cls) -> MCPManager:
        """The manager of this process; its servers end with it."""
        with cls._guard:
            if MCPManager._shared is None:
                MCPManager._shared = MCPManager()
                shared_loop()  # registered to end first, so that the servers are closed before it
                atexit.register(MCPManager._shared.close)
            return MCPManager._shared

    async def connect(self, config: Mapping[str, Any]) -> list[BaseTool]:
        """Reach all servers of `config`, `{"mcpServers": {...}}`, at the same time, and list their tools in order.

        Raises:
            SettingsError: The settings are wrong; no server is started.
            McpError: A server cannot be started, reached or understood; those just started are ended again.
        """
        wanted = servers_from(config)
        clients = [
            self._known(name, server) or MCPClient(name, server, sign_in=self._sign_in)
            for name, server in wanted.items()
        ]
        fresh = [client for client in clients if client not in self._clients]
        outcomes = await asyncio.gather(*(client.connect() for client in fresh), return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures:
            await asyncio.gather(*(client.aclose() for client in fresh))
            raise failures[0]
        self._clients += fresh
        return [tool for client in clients for tool in client.tools if _is_wanted(client, tool)]

    def init_config(self, config: Mapping[str, Any]) -> list[BaseTool]:
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
        alive = (client for client in self._clients if client.keep_alive)
        return next((client for client in alive if client.name == name and client.settings == server), None)


def _is_wanted(client: MCPClient, tool: BaseTool) -> bool:
    """An agent has a server's own tools; those that read its resources where the settings say so."""
    return client.settings.resources or isinstance(tool, MCPTool)
