"""An MCP server of an owner's as it stands: its state, its tools, and what of them was agreed to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from core.errors import ParlourError
    from core.mcp.commands import Resolved
    from core.mcp.settings import ServerSettings
    from core.storage.mcp_servers import McpServer
    from core.tools.base import BaseTool

State: TypeAlias = Literal["off", "confirm", "connecting", "ready", "failed"]
Trouble: TypeAlias = Literal["", "failed", "waits"]
Mark: TypeAlias = Literal["", "new", "changed"]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of a server.

    Args:
        tool: The tool itself.
        name: The server's own name for it.
        on: Whether it is offered, unless it is marked.
        mark: Whether it is to be looked at before it is offered: it is `new`, or its description has `changed`.
        print: Names what the server says of it now; empty for what Parlour itself brings with each server.
    """

    tool: BaseTool
    name: str
    on: bool
    mark: Mark
    print: str

    @property
    def whole_description(self) -> str:
        """All that the server says of it."""
        said = getattr(self.tool, "whole_description", "")
        return str(said or self.tool.description)


@dataclass(frozen=True, slots=True)
class OwnServer:
    """A server as it stands now.

    Args:
        kept: As the owner set it up.
        settings: How it is reached, with its secrets; `None` where they cannot be read any more.
        state: Its state; `confirm` waits for the owner to allow its command.
        error: Why it failed.
        command: What would be started; `None` for an address, or where there is no such program.
        print: Names the command, to allow it and no other.
        tools: Its tools.
        log: The last lines that it printed, without keys.
    """

    kept: McpServer
    settings: ServerSettings | None
    state: State
    error: ParlourError | None = None
    command: Resolved | None = None
    print: str = ""
    tools: tuple[OfferedTool, ...] = ()
    log: tuple[str, ...] = ()

    @property
    def marked(self) -> int:
        """How many of its tools are to be looked at."""
        return sum(1 for tool in self.tools if tool.mark)
