"""Servers as they were typed or pasted: read, checked, and put together with the secrets that are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from core.errors import SettingsError
from core.mcp.journal import one_line
from core.mcp.settings import ServerSettings

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
        name: What to call it.
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
        name: What to call it.
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
