"""The `mcpServers` JSON that everybody writes, checked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from core.errors import SettingsError
from core.mcp.spellings import plainly

_PLACEHOLDER = re.compile(r"\$\{(?:[a-zA-Z]+:)?[A-Za-z_][\w.-]*(?::-(?P<default>[^}]*))?\}")
# Variables by which a program loads code that its command line does not show.
_LOADING = frozenset(
    {"BASH_ENV", "ENV", "SHELLOPTS", "PROMPT_COMMAND", "PS4", "GCONV_PATH", "NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE"}
    | {"PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PERL5OPT", "PERL5DB", "PERL5LIB", "RUBYOPT"}
    | {"RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS"}
    | {"GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "DOTNET_STARTUP_HOOKS", "BROWSER", "EDITOR", "VISUAL", "PAGER"}
)
_LOADING_BEGINNINGS = ("LD_", "DYLD_", "BASH_FUNC_")


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

    Other programs' spellings are understood: see `core.mcp.spellings`. A placeholder such as `${TOKEN}` is never filled
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
        given = plainly(cast("Mapping[str, Any]", raw))
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
        config: The JSON, read.
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
        where = f"MCP server {shown!r}" + (f", field {field!r}" if field else "")
        # Without its cause, which would show what was given.
        raise SettingsError(f"The settings of the {where} are wrong: {said}.", key="mcp_settings", name=shown) from None


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
