"""Kinds of values that settings have: what is typed for them, and what it may be."""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Annotated, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode

_MACHINE = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_SERVER = re.compile(r"https?://[\w.-]{1,253}(?::\d{1,5})?/?")
_VISITED = re.compile(r"[A-Za-z0-9_.:\[\]-]{1,255}")


def _listed(given: object) -> object:
    """Names in a text: a JSON list as it stands, else one name after each comma."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    if text.startswith("["):
        try:
            return cast("object", json.loads(text))
        except ValueError as error:
            raise ValueError("must be names with commas between them, or a JSON list of them") from error
    return tuple(name for part in text.split(",") if (name := part.strip()))


Names: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]


def _as_visited(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names that a browser may send as the `Host`; of others none would ever come."""
    if not all(_VISITED.fullmatch(name) for name in names):
        raise ValueError("must be names such as chat.example.com, with commas between them, and no https:// or /path")
    return names


Hosts: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed), AfterValidator(_as_visited)]


def _as_servers(names: tuple[str, ...]) -> tuple[str, ...]:
    """Addresses of servers, each once."""
    if not all(_SERVER.fullmatch(name) for name in names):
        raise ValueError("must be addresses of servers such as http://sandbox:7860, with commas between them")
    return tuple(dict.fromkeys(name.rstrip("/") for name in names))


Servers: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed), AfterValidator(_as_servers)]


def _pair(given: object) -> object:
    """Two numbers in a text, or one that stands for both."""
    parts: list[object] = list(given.split(",")) if isinstance(given, str) else [given]
    if isinstance(given, list | tuple):
        parts = list(cast("list[object]", given))
    return tuple(parts * 2 if len(parts) == 1 else parts)


_AtLeastNone: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Pair: TypeAlias = Annotated[tuple[_AtLeastNone, _AtLeastNone], NoDecode, BeforeValidator(_pair)]


def check_host(host: str) -> str:
    """An address to listen on, as it is given.

    Raises:
        ValueError: It is neither an IP address nor the name of a machine.
    """
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError as error:
        if not _MACHINE.fullmatch(host):
            raise ValueError("must be an IP address such as 127.0.0.1, or the name of a machine") from error
    return host


def check_address(address: str | None) -> str | None:
    """The address of a service, as it is given.

    Raises:
        ValueError: It names no server that can be asked over HTTP.
    """
    if address is None or address == "dashscope":  # the one service that has a name of its own
        return address
    try:
        parts = urlsplit(address)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or re.search(r"\s", address):
        raise ValueError("must be an address such as http://127.0.0.1:8000/v1")
    return address


def is_said(name: str, value: str | None) -> bool:
    """Whether a variable holds anything of ours. Kubernetes sets `PARLOUR_PORT`, for a service named `parlour`."""
    of_a_service = name.upper().endswith("_PORT") and str(value).startswith(("tcp://", "udp://", "sctp://"))
    return bool(value and value.strip()) and not of_a_service
