"""An MCP server of an owner's as it stands: its state, its tools, and what of them was agreed to."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from core.errors import McpError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.errors import ParlourError
    from core.mcp.servers import Server, Servers
    from core.mcp.settings import Resolved, ServerSettings
    from core.storage.mcp_servers import McpServer, McpServerStore
    from core.tools.base import BaseTool

_LOG = logging.getLogger(__name__)

State: TypeAlias = Literal["off", "confirm", "connecting", "ready", "failed", "sign_in", "signing_in"]
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
        state: Its state; `confirm` waits for the owner to allow its command, `sign_in` for them to press the button,
            `signing_in` for an answer of the service that signs in.
        error: Why it failed.
        command: What would be started; `None` for an address, or where there is no such program.
        print: Names the command, to allow it and no other.
        tools: Its tools.
        log: The last lines that it printed, without keys.
        page: Where the owner signs in to it now; "" while no answer is waited for.
    """

    kept: McpServer
    settings: ServerSettings | None
    state: State
    error: ParlourError | None = None
    command: Resolved | None = None
    print: str = ""
    tools: tuple[OfferedTool, ...] = ()
    log: tuple[str, ...] = ()
    page: str = ""

    @property
    def marked(self) -> int:
        """How many of its tools are to be looked at."""
        return sum(1 for tool in self.tools if tool.mark)


def running_as(servers: Servers, kept: McpServer) -> Server | None:
    """What runs of a server."""
    return servers.known(kept.owner_id, kept.name)


def why_failed(server: Server) -> ParlourError | None:
    """Why it is not there; `None` where it did not fail."""
    if server.state != "failed":
        return None
    return server.failure or McpError(server.error)


def found_command(settings: ServerSettings) -> tuple[Resolved | None, str, ParlourError | None]:
    """The command on this machine, and what names it; nothing for an address."""
    if settings.type != "stdio":
        return None, "", None
    from core.mcp.settings import resolve_command

    try:
        command = resolve_command(settings)
    except McpError as error:
        return None, "", error
    whole = [command.program, list(command.args), settings.cwd or "", sorted(settings.env)]
    return command, sha256(json.dumps(whole).encode()).hexdigest(), None


def not_here() -> SettingsError:
    """Programs are not started for this owner."""
    hint = "Add a server that has an address."
    return SettingsError("Programs are started for the owner of this machine alone.", hint=hint, key="server_not_here")


def refusal(settings: ServerSettings, *, local: bool) -> SettingsError | None:
    """Why an owner may not have such a server, unless it is the owner of the machine (`local`).

    Where its name leads is seen when it is reached.
    """
    if local:
        return None
    if settings.type == "stdio":
        return not_here()
    return None if urlsplit(settings.url or "").scheme == "https" else _not_that_address()


def _not_that_address() -> SettingsError:
    hint = "Only the owner of the machine may use others."
    return SettingsError("The address is not one of the open internet.", hint=hint, key="server_address")


def state_of(server: Server, page: str) -> State:
    """Its state for its owner, who may be signing in to it on `page`."""
    if server.state == "connecting" and page:
        return "signing_in"
    return "sign_in" if server.state == "failed" and server.needs_sign_in else server.state


def trouble_of(standing: Sequence[OwnServer]) -> Trouble:
    """Whether one of those that are used has failed, or waits for its owner."""
    used = [one for one in standing if one.kept.enabled]
    if any(one.state == "failed" for one in used):
        return "failed"
    return "waits" if any(one.state in {"confirm", "sign_in"} or one.marked for one in used) else ""


async def offered_tools(store: McpServerStore, kept: McpServer, server: Server) -> tuple[OfferedTool, ...]:
    """Its tools. What it lists the first time is what the owner agrees to by adding it; later changes are shown."""
    prints = server.fingerprints if server.state == "ready" else {}
    agreed = kept.approved
    if prints and not agreed:
        agreed = (await store.set(kept.owner_id, kept.id, approved=prints)).approved
        server.approve(prints)
    found: list[OfferedTool] = []
    for tool in server.tools:
        name = str(getattr(tool, "own_name", tool.name))
        seen = str(getattr(tool, "fingerprint", ""))
        mark: Mark = "" if not seen or agreed.get(name) == seen else "changed" if name in agreed else "new"
        found.append(OfferedTool(tool, name, name not in kept.off, mark, seen))
    return tuple(found)


async def nobody(server: str, message: str, schema: dict[str, Any]) -> None:
    """A server may ask during a call, and the call says whom: outside of one nobody is asked."""
    del message, schema
    _LOG.info("The MCP server %r asks something while none of its tools runs; it is told no.", server)
