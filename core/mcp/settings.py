"""The `mcpServers` JSON that everybody writes, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from core.errors import SettingsError

_TRANSPORTS = {
    "stdio": "stdio",
    "sse": "sse",
    "http": "streamable-http",
    "streamable-http": "streamable-http",
    "streamable_http": "streamable-http",
    "streamableHttp": "streamable-http",
}


class ServerSettings(BaseModel):
    """How to reach one MCP server: a command to start, or an address.

    Args:
        command: A program on this machine; it talks over its standard input and output.
        args: For the program.
        env: Added to the few variables that a server inherits (such as PATH); nothing else of ours reaches it.
        cwd: The folder it starts in.
        url: The address of a server that runs already.
        headers: Sent with every request to it.
        type: Left out, it follows from the rest; an address is taken for streamable HTTP unless it ends in `/sse`.
        timeout: Seconds for a call.
        connect_timeout: Seconds until the server must have answered for the first time.
        disabled: Whether to leave this server alone.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, SecretStr] = Field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, SecretStr] = Field(default_factory=dict)
    type: Literal["stdio", "sse", "streamable-http"] = "stdio"
    timeout: float = Field(default=60.0, gt=0, le=3600)
    connect_timeout: float = Field(default=30.0, gt=0, le=600)
    disabled: bool = False

    @model_validator(mode="before")
    @classmethod
    def _read(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        given: dict[str, Any] = dict(raw)  # pyright: ignore[reportUnknownArgumentType] - the door
        named = given.get("type") or given.pop("transport", None)
        if named:
            given["type"] = _TRANSPORTS.get(str(named), named)
        elif url := given.get("url"):
            given["type"] = "sse" if str(url).rstrip("/").endswith("/sse") else "streamable-http"
        if "env" in given:
            given["env"] = {key: str(value) for key, value in dict(given["env"] or {}).items()}
        return given

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.type == "stdio" and not (self.command or "").strip():
            raise ValueError("a server needs a command or a url")
        if self.type != "stdio" and not (self.url or "").startswith(("http://", "https://")):
            raise ValueError("the url must begin with http:// or https://")
        return self


def servers_from(config: Mapping[str, Any]) -> dict[str, ServerSettings]:
    """The servers of `{"mcpServers": {name: {...}}}`, without the disabled ones.

    Raises:
        SettingsError: Something is missing or wrong; the message names server and field.
    """
    given = config.get("mcpServers")
    if not isinstance(given, Mapping):
        raise SettingsError("The MCP settings need an object under mcpServers.", key="mcp_settings")
    servers: dict[str, ServerSettings] = {}
    for name, raw in given.items():  # pyright: ignore[reportUnknownVariableType] - the door
        shown = str(name)  # pyright: ignore[reportUnknownArgumentType]
        try:
            server = ServerSettings.model_validate(raw)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            said = first["msg"].removeprefix("Value error, ")
            where = f"MCP server {shown!r}" + (f", field {field!r}" if field else "")
            raise SettingsError(f"The settings of the {where} are wrong: {said}.", key="mcp_settings") from None
        if not server.disabled:
            servers[shown] = server
    return servers
