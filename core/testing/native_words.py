"""What dialects of services with protocols of their own have in common."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from core.testing.script import Reply

Json = dict[str, Any]


def event(data: Mapping[str, Any], *, named: bool = True) -> bytes:
    """A server-sent event, with its name where the protocol names them."""
    name = f"event: {data['type']}\n" if named else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def told(reply: Reply) -> Json:
    """The error in a script's reply: `message`, `type` and `code`."""
    error = reply.error or {}
    return cast("Json", error.get("error") or error)


def dicts(given: object) -> list[Json]:
    """The dicts in a list; none where it is no list."""
    return (
        [cast("Json", one) for one in cast("list[Any]", given) if isinstance(one, dict)]
        if isinstance(given, list)
        else []
    )


def extra_field(body: Mapping[str, Any], known: Iterable[str]) -> str:
    """The first field that a service does not know; empty where it knows them all."""
    names = set(known)
    return next((name for name in body if name not in names), "")


def tools_of(functions: Iterable[Mapping[str, Any]], schema: str) -> list[Json]:
    """Tools as scripts read them.

    Args:
        functions: As the protocol has them.
        schema: Where each has its parameters.
    """
    named = (
        {"name": one.get("name"), "description": one.get("description"), "parameters": one.get(schema)}
        for one in functions
    )
    return [{"type": "function", "function": each} for each in named]
