"""The keys among what owners typed to reach a server or a service: in its variables, its arguments, its address."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CALLED_KEY: Final = re.compile(r"key|token|secret|pass|cred|auth|cookie|session", re.IGNORECASE)
_NO_KEY: Final = re.compile(
    r"[A-Za-z]*|[\d.:]+|[a-z]{2}_[A-Z]{2}(?:\.[\w-]+)?|(?:~|\.{1,2})?/\S*|[A-Za-z]:\\\S*|https?://[^\s@?]+|[\w.+*-]+/[\w.+*-]+"
)
_ASSIGNED: Final = re.compile(r"-*(?P<name>[\w.-]+)(?:=|:\s*)(?P<value>.*)", re.DOTALL)
_RANDOM: Final = re.compile(  # and neither a package with its version nor the name of a model
    r"(?=.*\d)(?=.*[A-Za-z])\w{16,}|(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[\w-]{24,}|[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12}"
)


def among(pairs: Iterable[tuple[object, object]]) -> list[str]:
    """The values that may be keys: more than a word, a number, a place or a language, or called one."""
    named = ((str(name), str(value)) for name, value in pairs)
    return [value for name, value in named if _CALLED_KEY.search(name) or _NO_KEY.fullmatch(value) is None]


def in_address(address: str) -> list[str]:
    """Those of an address: who asks there, values of its query, and parts of its path that nobody could guess."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return []
    found = [unquote(one) for one in (parts.password or parts.username,) if one]
    found += among(parse_qsl(parts.query))
    return [*found, *(part for part in parts.path.split("/") if _RANDOM.fullmatch(part))]


def in_arguments(arguments: Sequence[object]) -> list[str]:
    """Those of a command line: what follows an option that is called so, or is assigned to such a name."""
    given = [str(one) for one in arguments]
    found = [value for option, value in pairwise(given) if option.startswith("-") and _CALLED_KEY.search(option)]
    for one in given:
        assigned = _ASSIGNED.fullmatch(one)
        if assigned is not None and _CALLED_KEY.search(assigned["name"]):
            found.append(assigned["value"])
        found += in_address(one) if "://" in one else [one] if _RANDOM.fullmatch(one) else []
    return [one for one in found if not one.startswith("-")]
