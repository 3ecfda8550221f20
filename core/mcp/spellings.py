"""How other programs write the settings of a server, brought to one form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

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


def plainly(raw: Mapping[str, Any]) -> dict[str, Any]:
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
