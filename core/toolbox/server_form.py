"""An owner's MCP server as it was typed or pasted, and as it stands: its state, its tools, what was agreed to."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from core.errors import McpError, SettingsError
from core.mcp.journal import one_line
from core.mcp.settings import ServerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.errors import ParlourError
    from core.mcp.servers import OwnerServers, Server
    from core.mcp.settings import Resolved
    from core.storage.mcp_servers import McpServer, McpServerStore
    from core.tools.base import BaseTool


_LONGEST = 256 * 1024
_LONGEST_NAME = 60
_MOST = 40  # servers pasted at once
_AROUND = ("mcpServers", "servers", "context_servers", "mcp")
_SECRET = ("env", "headers")
_OFTEN = {
    "server_nowhere": re.compile(r"needs a command or a url"),
    "server_scheme": re.compile(r"must begin with http"),
    "server_hijack": re.compile(r"the variable (\S+) would load"),
    "server_placeholder": re.compile(r"the placeholder (\S+?):"),
}
_OTHERS: tuple[str, ...] = ("command", "args", "cwd", "url", "type", "timeout", "connect_timeout", "include", "exclude")


@dataclass(frozen=True, slots=True)
class ServerDraft:
    """A server that somebody wants to have.

    Args:
        settings: What `ServerSettings` takes, with its secrets, fit for JSON.
        enabled: Whether it is to be used.
        wishes: The tools that it asks to run unasked, which is not granted.
    """

    name: str
    settings: Mapping[str, Any]
    enabled: bool = True
    wishes: tuple[str, ...] = ()


def pasted(text: str) -> list[ServerDraft]:
    """The servers of pasted JSON: `{"mcpServers": {…}}`, its inside, or a single named entry of it.

    Raises:
        SettingsError: key `server_json`: it is no JSON (details `line`, `column`); `server_json_long`: it is too long;
            `server_json_twice`: a name stands twice in one of its objects; `server_json_none`: there is no server in
            it; `server_name_taken`: two have one name; else as `checked`.
    """
    if len(text) > _LONGEST:
        most = _LONGEST // 1024
        raise SettingsError(f"This is longer than {most} kB.", hint="Paste less.", key="server_json_long", most=most)
    found = _entries(_parsed(text.strip()))
    if not found or len(found) > _MOST:
        hint = 'Paste what stands under "mcpServers".'
        raise SettingsError("There is no MCP server in this.", hint=hint, key="server_json_none")
    drafts = [checked(str(name), entry) for name, entry in found.items()]
    folded = [draft.name.casefold() for draft in drafts]
    twice = next((draft.name for draft in drafts if folded.count(draft.name.casefold()) > 1), "")
    if twice:
        raise SettingsError(f"Two servers are named {twice!r}.", key="server_name_taken", name=twice)
    return drafts


def checked(name: str, entry: object, kept: Mapping[str, Any] | None = None) -> ServerDraft:
    """One server.

    Args:
        entry: Its settings, as `mcpServers` writes them.
        kept: Its settings so far: a variable or header whose value is `None` keeps the value that it has there.

    Raises:
        SettingsError: key `server_name`, `server_nowhere`, `server_scheme`, `server_hijack`, `server_placeholder` or
            `server_wrong`; no value of a variable or header stands in it.
    """
    shown = name.strip()
    if not shown or len(shown) > _LONGEST_NAME or not shown.isprintable():
        raise SettingsError("A server needs a name of one line.", hint="Type a short one.", key="server_name")
    if not isinstance(entry, Mapping):
        raise _wrong(shown, "it is not an object")
    given = dict(cast("Mapping[str, Any]", entry))
    for field in _SECRET:
        given[field] = _whole(given.get(field), field, kept, given)
    try:
        settings = ServerSettings.model_validate(given)
    except (ValidationError, TypeError, AttributeError) as error:
        raise _complaint(shown, error) from None  # without its cause, which would show what was given
    texts = [value for field in _SECRET for pair in settings.revealed(field).items() for value in pair]
    if any(not value.isprintable() for value in (*texts, settings.url or "", settings.cwd or "")):
        raise _wrong(shown, "a variable, header or address is not one line")
    return ServerDraft(shown, fit_for_json(settings), not settings.disabled, settings.auto_approve)


def fit_for_json(settings: ServerSettings) -> dict[str, Any]:
    """What is to be kept of settings. Which tools they ask to run unasked is not: that is the owner's to say."""
    unused = {"url"} if settings.type == "stdio" else {"command", "args", "cwd"}
    plain = settings.model_dump(mode="json", include=set(_OTHERS) - unused, exclude_defaults=True)
    secret: dict[str, Any] = {field: settings.revealed(field) for field in _SECRET}
    if settings.oauth is not None:
        own = settings.oauth.client_secret
        secret["oauth"] = {
            **settings.oauth.model_dump(mode="json", exclude_defaults=True),
            **({"client_secret": own.get_secret_value()} if own is not None else {}),
        }
    return {**plain, **{field: values for field, values in secret.items() if values}}


def _whole(values: object, field: str, kept: Mapping[str, Any] | None, given: Mapping[str, Any]) -> object:
    """Variables or headers, those without a value with the one that is kept.

    What is kept for one server goes to no other: where the address changed, its secrets are typed again.
    """
    if not isinstance(values, Mapping):
        return values or {}
    old: Mapping[str, Any] = (kept or {}).get(field) or {}
    if kept is None or not is_same_place(kept, given):
        old = {}
    pairs = cast("Mapping[Any, Any]", values).items()
    return {str(key).strip(): old.get(str(key).strip(), "") if value is None else value for key, value in pairs}


def is_same_place(kept: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether two settings lead to one server on the network."""
    one, other = str(kept.get("url") or ""), str(given.get("url") or "")
    try:
        places = [(parts.scheme, parts.hostname, parts.port) for parts in map(urlsplit, (one, other))]
    except ValueError:
        return False
    return places[0] == places[1]


def _parsed(text: str) -> object:
    """The JSON; where an inner part of a file was copied, the braces around it are added."""
    try:
        return json.loads(text, object_pairs_hook=_once_each)
    except RecursionError:
        raise _no_json(1, 1, "too deep") from None
    except json.JSONDecodeError as error:
        if text.startswith('"'):
            try:
                return json.loads("{" + text.rstrip().removesuffix(",") + "}", object_pairs_hook=_once_each)
            except (ValueError, RecursionError):
                pass
        raise _no_json(error.lineno, error.colno, error.msg) from None
    except ValueError:
        raise _no_json(1, 1, "a number is too long") from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of two values with one name JSON would keep the last without a word. Raises SettingsError."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            shown = one_line(name, _LONGEST_NAME)
            text = f"{shown!r} stands there twice."
            raise SettingsError(text, hint="Leave one of them out.", key="server_json_twice", name=shown)
        found[name] = value
    return found


def _entries(given: object) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        return {}
    outer = cast("Mapping[Any, Any]", given)
    for key in _AROUND:
        if isinstance(outer.get(key), Mapping):
            inner = cast("Mapping[Any, Any]", outer[key])
            return _entries(inner) if isinstance(inner.get("servers"), Mapping) else inner
    return outer if all(isinstance(value, Mapping) for value in outer.values()) else {}


def _complaint(name: str, error: Exception) -> SettingsError:
    """What is wrong, by a key of its own where it is wrong often."""
    if not isinstance(error, ValidationError):
        return _wrong(name, "they cannot be read")
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    said = str(first["msg"]).removeprefix("Value error, ")
    for key, sign in _OFTEN.items():
        if found := sign.search(said):
            what = found[1] if sign.groups else ""
            return SettingsError(f"{name!r}: {said}.", key=key, name=name, what=what)
    return _wrong(name, f"{field}: {said}" if field else said)


def _no_json(line: int, column: int, said: str) -> SettingsError:
    text = f"This is not JSON: line {line}, column {column}: {said}."
    return SettingsError(
        text, hint="Check commas, quotes and braces there.", key="server_json", line=line, column=column
    )


def _wrong(name: str, said: str) -> SettingsError:
    text = f"The settings of the MCP server {name!r} are wrong: {said}."
    return SettingsError(text, key="server_wrong", name=name, said=said)


_LOG = logging.getLogger(__name__)

State: TypeAlias = Literal["off", "confirm", "connecting", "ready", "failed", "sign_in", "signing_in"]
Trouble: TypeAlias = Literal["", "failed", "waits"]
Mark: TypeAlias = Literal["", "new", "changed"]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of a server.

    Args:
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


def running_as(servers: OwnerServers, kept: McpServer) -> Server | None:
    """What runs of a server."""
    return servers.known(kept.name)


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
        agreed = (await store.set(kept.id, approved=prints)).approved
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
