"""The `mcpServers` JSON, checked: other programs' spellings, what a command would really start, and fingerprints."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from core.errors import ServerUnreachableError, SettingsError
from core.settings import child_environment

if TYPE_CHECKING:
    from collections.abc import Collection

    from mcp_types import Tool


_PLACEHOLDER = re.compile(r"\$\{(?:[a-zA-Z]+:)?[A-Za-z_][\w.-]*(?::-(?P<default>[^}]*))?\}")
# Variables by which a program loads code that its command line does not show.
_LOADING = frozenset(
    {"BASH_ENV", "ENV", "SHELLOPTS", "PROMPT_COMMAND", "PS4", "GCONV_PATH", "NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE"}
    | {"PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PERL5OPT", "PERL5DB", "PERL5LIB", "RUBYOPT"}
    | {"RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS"}
    | {"GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "DOTNET_STARTUP_HOOKS", "BROWSER", "EDITOR", "VISUAL", "PAGER"}
)
_LOADING_BEGINNINGS = ("LD_", "DYLD_", "BASH_FUNC_")
_LISTS = {"args": '["srv.py"]', "include": '["search"]'}


class StaticClient(BaseModel):
    """As what the user has registered Parlour with the service that signs in to a server.

    Args:
        client_id: What the service calls it; some take the address of a document that describes it.
        client_secret: What the service gave with it, if anything.
        scopes: What to ask for; what the server says it wants where it is empty.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    client_id: str = Field(min_length=1)
    client_secret: SecretStr | None = None
    scopes: tuple[str, ...] = ()


class ServerSettings(BaseModel):
    """How to reach one MCP server: a command to start, or an address.

    Other programs' spellings are understood: see `core.mcp.settings`. A placeholder such as `${TOKEN}` is never filled
    from this process's environment: its default (`${TOKEN:-none}`) is taken, and without one it is refused.

    Args:
        command: A program on this machine; it talks over its standard input and output.
        args: For the program.
        env: Added to the few variables that a server inherits (such as PATH); nothing else of ours reaches it.
        cwd: The folder it starts in.
        url: The address of a server that runs already.
        headers: Sent with every request to it.
        oauth: As whom to sign in, for services with which no program can register by itself.
        type: Left out, it follows from the rest; an address is taken for streamable HTTP unless it ends in `/sse`.
        timeout: Seconds for a call.
        connect_timeout: Seconds until the server must have answered for the first time.
        disabled: Whether to leave this server alone.
        auto_approve: Tools by the server's own names that the JSON asks to run unasked. It is a wish, which whoever
            adds the server may grant; nothing here grants it.
        include: The only tools to offer, by the server's own names; all of them where it is empty.
        exclude: Tools never to offer.
        resources: Whether an agent of a program is offered two tools that list and read what the server holds; left
            out, it has the server's own tools and no others. The application always offers them.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, hide_input_in_errors=True)

    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, SecretStr] = Field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, SecretStr] = Field(default_factory=dict)
    oauth: StaticClient | None = None
    type: Literal["stdio", "sse", "streamable-http"] = "stdio"
    timeout: float = Field(default=60.0, gt=0, le=3600)
    connect_timeout: float = Field(default=30.0, gt=0, le=600)
    disabled: bool = False
    auto_approve: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    resources: bool = False

    @model_validator(mode="before")
    @classmethod
    def _read(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        given = canonical(cast("Mapping[str, Any]", raw))
        for name in ("command", "cwd", "url"):
            if isinstance(given.get(name), str):
                given[name] = _filled(given[name], name)
        if isinstance(given.get("args"), list | tuple):
            given["args"] = [_filled(value, "args") for value in given["args"]]
        for name in ("env", "headers", "oauth"):
            if isinstance(given.get(name), dict):
                given[name] = {key: _filled(value, f"{name}.{key}") for key, value in given[name].items()}
        return given

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.type == "stdio" and not (self.command or "").strip():
            raise ValueError("a server needs a command or a url")
        if self.type != "stdio" and not (self.url or "").startswith(("http://", "https://")):
            raise ValueError("the url must begin with http:// or https://")
        if refused := refused_variables(self.env):
            raise ValueError(f"the variable {refused[0]} would load other code into the server, so it is refused")
        if any("\0" in text for text in (self.command or "", *self.args, *self.env)):
            raise ValueError("a command holds no zero bytes")
        return self

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values of all variables and headers, and the secret of `oauth`, for whoever must not repeat them."""
        secret = self.oauth.client_secret if self.oauth is not None else None
        values = (*self.env.values(), *self.headers.values(), *((secret,) if secret is not None else ()))
        return tuple(value.get_secret_value() for value in values)

    @property
    def may_sign_in(self) -> bool:
        """Whether a user may be asked to sign in: at an address, for which no key was given."""
        return self.type != "stdio" and not any(name.lower() == "authorization" for name in self.headers)

    def revealed(self, name: Literal["env", "headers"]) -> dict[str, str]:
        """The variables or headers with their values, for the server alone."""
        given: Mapping[str, SecretStr] = getattr(self, name)
        return {key: value.get_secret_value() for key, value in given.items()}


def servers_from(config: Mapping[str, Any], *, disabled: bool = False) -> dict[str, ServerSettings]:
    """The servers of `{"mcpServers": {name: {...}}}`; `servers` and `mcp`, as some programs call it, do as well.

    Args:
        disabled: Whether to give the disabled ones too.

    Raises:
        SettingsError: Something is missing or wrong; the message names server and field, and shows no value.
    """
    given = next((config[key] for key in ("mcpServers", "servers", "mcp") if key in config), None)
    if isinstance(given, Mapping) and "servers" in given and isinstance(given["servers"], Mapping):
        given = cast("Mapping[str, Any]", given)["servers"]
    if not isinstance(given, Mapping):
        raise SettingsError("The MCP settings need an object under mcpServers.", key="mcp_settings")
    servers: dict[str, ServerSettings] = {}
    for name, raw in cast("Mapping[str, Any]", given).items():
        server = _server(str(name), raw)
        if disabled or not server.disabled:
            servers[str(name)] = server
    return servers


def _server(name: str, raw: object) -> ServerSettings:
    shown = name[:80].encode("unicode_escape").decode("ascii") if not name.isprintable() else name[:80]
    try:
        return ServerSettings.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        if first["type"] == "tuple_type":
            said = f"it must be a list, such as {_LISTS.get(field, _LISTS['include'])}"
        where = f"MCP server {shown!r}" + (f", field {field!r}" if field else "")
        hint = _meant(cast("Mapping[str, Any]", raw)) if isinstance(raw, Mapping) else ""
        # Without its cause, which would show what was given.
        text = f"The settings of the {where} are wrong: {said}."
        raise SettingsError(text, hint=hint, key="mcp_settings", name=shown) from None


def _meant(raw: Mapping[str, Any]) -> str:
    """What the first misspelt field was meant to be; empty where none is misspelt."""
    known = [*ServerSettings.model_fields, *_NAMES]
    for name in raw:
        if name not in known and (near := get_close_matches(str(name), known, n=1, cutoff=0.6)):
            return f"Did you mean {near[0]!r} by {str(name)[:80]!r}?"
    return ""


def _filled(value: object, field: str) -> object:
    """Text without placeholders: each gives way to its default. Raises ValueError where there is none."""
    if not isinstance(value, str) or "${" not in value:
        return value

    def default(found: re.Match[str]) -> str:
        if found["default"] is None:
            raise ValueError(f"{field} holds the placeholder {found[0]}: write the value itself in its place")
        return found["default"]

    return _PLACEHOLDER.sub(default, value)


def refused_variables(names: Collection[str]) -> list[str]:
    """Those variables that would make a program load other code than its command line shows."""
    loud = {name: name.upper() for name in names}
    return [name for name, upper in loud.items() if upper in _LOADING or upper.startswith(_LOADING_BEGINNINGS)]


_NAMES = {
    "serverUrl": "url",
    "httpUrl": "url",
    "baseUrl": "url",
    "environment": "env",
    "workingDirectory": "cwd",
    "autoApprove": "auto_approve",
    "alwaysAllow": "auto_approve",
    "includeTools": "include",
    "excludeTools": "exclude",
    "disabledTools": "exclude",
    "transport": "type",
    "transportType": "type",
}
_TRANSPORTS = {
    "stdio": "stdio",
    "local": "stdio",
    "sse": "sse",
    "http": "streamable-http",
    "remote": "",  # which of the two follows from the address
    "streamable-http": "streamable-http",
    "streamable_http": "streamable-http",
    "streamablehttp": "streamable-http",
    "http-stream": "streamable-http",
    "http_stream": "streamable-http",
}
_CALL_SECONDS = ("tool_timeout_sec", "timeoutSeconds", "timeout_seconds", "client_session_timeout_seconds")
_CALL_MILLISECONDS = ("timeoutMs", "timeout_ms", "requestTimeout")
_START_SECONDS = ("startup_timeout_sec", "startupTimeout")
_START_MILLISECONDS = ("initTimeout", "startup_timeout_ms", "connectTimeout", "connectTimeoutMs")
# A `timeout` without a unit is seconds in some programs and thousandths in others. Nobody waits longer than an hour
# for a call, and nobody gives a server less than four seconds, so the number itself tells.
_MOST_SECONDS = 3600.0


def canonical(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The settings under the names of `ServerSettings`; what is unknown stays, to be ignored there."""
    given: dict[str, Any] = {}
    for key, value in raw.items():
        name = _NAMES.get(key, key)
        if value is not None and (name == key or name not in raw):
            given[name] = value
    if isinstance(given.get("command"), list | tuple):  # program and arguments in one list
        whole = list(cast("list[Any]", given["command"]))
        given["command"], given["args"] = (whole[0] if whole else None), [*whole[1:], *given.get("args", ())]
    if isinstance(given.get("args"), list | tuple):
        given["args"] = [str(value) if isinstance(value, int | float) else value for value in given["args"]]
    if "type" in given or "url" in given:
        given["type"] = _transport(given, raw)
    for name in ("env", "headers"):
        if isinstance(given.get(name), Mapping):
            given[name] = {str(key): _text(value) for key, value in given[name].items()}
    given["oauth"] = _client(given.get("oauth", given.get("auth")))
    if raw.get("enabled") is False or raw.get("isActive") is False:
        given["disabled"] = True
    if isinstance(given.get("auto_approve"), bool):
        given["auto_approve"] = ["*"] if given["auto_approve"] else []
    _seconds(given, "timeout", _CALL_SECONDS, _CALL_MILLISECONDS)
    _seconds(given, "connect_timeout", _START_SECONDS, _START_MILLISECONDS)
    return given


def _transport(given: Mapping[str, Any], raw: Mapping[str, Any]) -> Any:
    named = given.get("type")
    known = _TRANSPORTS.get(str(named).lower(), named) if named else ""
    if known:
        return known
    if not given.get("url"):
        return "stdio"
    if "httpUrl" in raw:
        return "streamable-http"
    return "sse" if str(given["url"]).partition("?")[0].rstrip("/").endswith("/sse") else "streamable-http"


def _client(given: object) -> dict[str, Any] | None:
    """As whom to sign in; `None` where nothing is said of it, as programs do that register by themselves."""
    if not isinstance(given, Mapping):
        return None
    said = cast("Mapping[str, Any]", given)
    plain = {re.sub(r"[^a-z]", "", str(key).lower()): value for key, value in said.items() if value not in (None, "")}
    scopes = plain.get("scopes", plain.get("scope", ()))
    if not plain.get("clientid"):
        return None
    asked = scopes.split() if isinstance(scopes, str) else scopes
    return {"client_id": plain["clientid"], "client_secret": plain.get("clientsecret"), "scopes": asked}


def _text(value: object) -> object:
    """A variable as text: JSON's `true` and `8080` are written without quotes often enough."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value) if isinstance(value, int | float) else value


def _seconds(given: dict[str, Any], name: str, seconds: tuple[str, ...], thousandths: tuple[str, ...]) -> None:
    for other in seconds:
        if name not in given and _is_number(given.get(other)):
            given[name] = given[other]
    for other in thousandths:
        if name not in given and _is_number(given.get(other)):
            given[name] = given[other] / 1000
    if _is_number(given.get(name)) and given[name] > _MOST_SECONDS:
        given[name] = min(given[name] / 1000, _MOST_SECONDS)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


Risk: TypeAlias = Literal["inline_code", "shell", "fetches"]

# What a server inherits: enough to find programs and folders, on each system.
_INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TZ"),
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE"),
    *("SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
)
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh", "cmd", "powershell", "pwsh", "busybox"})
_INTERPRETERS = re.compile(r"(python|pypy|node|nodejs|deno|bun|ruby|perl|php|lua|osascript|tclsh)[\d.]*w?")
_FETCHING = frozenset({"npx", "uvx", "pipx", "bunx", "pnpx", "docker", "podman", "npm", "pnpm", "yarn", "uv"})
_CONTAINERS = frozenset({"docker", "podman"})  # their `-e` sets a variable
_INLINE = re.compile(r"-[a-zA-Z]*[cerp]|--(eval|exec|call|print|command)(=.*)?|eval", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Resolved:
    """A command as it would be started.

    Args:
        risks: `inline_code`: a program text is among the arguments; `shell`: a shell runs it; `fetches`: it may fetch
            the server from a package registry first.
    """

    program: str
    args: tuple[str, ...]
    risks: tuple[Risk, ...] = ()

    @property
    def line(self) -> str:
        """The command in one line, to be shown."""
        return " ".join([self.program, *(repr(arg) if not arg or " " in arg else arg for arg in self.args)])


def resolve_command(settings: ServerSettings) -> Resolved:
    """Find the program of a server, as it is then started. Nothing is run.

    Raises:
        ServerUnreachableError: There is no such program.
    """
    command = (settings.command or "").strip()
    path = environment_of(settings).get("PATH")
    found = shutil.which(command, path=path)
    if found is None:
        raise ServerUnreachableError(
            f"There is no program {command!r}.", hint="Check its command, arguments and environment.", command=command
        )
    return Resolved(str(Path(found).absolute()), settings.args, risks_of(command, settings.args))


def risks_of(command: str, args: Collection[str]) -> tuple[Risk, ...]:
    """What about a command deserves a second look."""
    words = [command, *args]
    if _base(command) == "env":  # runs what follows
        words = list(dropwhile(lambda word: "=" in word or word.startswith("-"), words[1:])) or words
    name = _base(words[0])
    found: list[Risk] = []
    is_program = name in _SHELLS or name in _FETCHING - _CONTAINERS or _INTERPRETERS.fullmatch(name)
    if is_program and any(_INLINE.fullmatch(word) for word in words[1:]):
        found.append("inline_code")
    if name in _SHELLS:
        found.append("shell")
    if name in _FETCHING:
        found.append("fetches")
    return tuple(found)


def environment_of(settings: ServerSettings) -> dict[str, str]:
    """All variables that a server gets: a few harmless ones of ours, and its own."""
    inherited = child_environment(_INHERITED)
    return {name: value for name, value in inherited.items() if not value.startswith("()")} | settings.revealed("env")


def _base(command: str) -> str:
    name = command.replace("\\", "/").rpartition("/")[2].lower()
    return name.removesuffix(".exe").removesuffix(".cmd").removesuffix(".bat")


def fingerprint(tool: Tool) -> str:
    """What a server says of a tool, in 32 letters: another description, schema or hint gives others."""
    said = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    told = {key: said.get(key) for key in ("name", "title", "description", "inputSchema", "annotations")}
    return sha256(json.dumps(told, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()[:32]
