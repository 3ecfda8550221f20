"""What is chosen about replies at one level: by the owner, or for a folder, a persona or a conversation.

What is kept may be older than this code, or edited by hand: what makes no sense there is left out when it is read, and
refused when it is to be kept.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import SettingsError
from core.messages.invisible import plain_line
from core.storage.conversations import clean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DOCUMENTS: Final = "documents"
"""Stands among tools for the documents of a conversation and its libraries."""
LONGEST: Final = 8_000
"""Characters of instructions; more would take the room of the conversation itself."""
EFFORTS: Final = ("off", "short", "long")
MOST_LIBRARIES: Final = 50
_MOST_TOOLS: Final = 500
_LONGEST_NAME: Final = 200

_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "temperature": (0, 2),
    "top_p": (0.01, 1),
    "max_tokens": (16, 1_000_000),
    "seed": (0, 2**31 - 1),
}
_WHOLE: Final = frozenset({"max_tokens", "seed"})
STEERED: Final = ("instructions", "parameters", "tools", "libraries")
"""What a level has a say in."""


@dataclass(frozen=True, slots=True)
class Level:
    """What is chosen at one level.

    Args:
        instructions: `None` where nothing is said.
        parameters: Only those that were chosen: `temperature`, `top_p`, `max_tokens`, `seed`, `effort`.
        tools: Tools and servers by their full names, and `documents`: whether they may be used.
        libraries: Ids of named libraries.
    """

    instructions: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: Mapping[str, bool] = field(default_factory=dict[str, bool])
    libraries: tuple[str, ...] = ()

    @classmethod
    def of(cls, kept: object) -> Level:
        """What was kept; whatever makes no sense is left out."""
        given = mapping_of(kept)
        found: dict[str, Any] = {}
        for name in STEERED:
            if name in given:
                with suppress(SettingsError):
                    found[name] = _CHECKS[name](given[name])
        for name in ("parameters", "tools"):
            if name not in found:  # one wrong value spoils none of the others
                found[name] = {}
                for one, value in mapping_of(given.get(name)).items():
                    with suppress(SettingsError):
                        found[name] |= _CHECKS[name]({one: value})
        return cls(**found)

    def as_dict(self) -> dict[str, Any]:
        """As it is kept: only what was chosen."""
        kept: dict[str, Any] = {"instructions": self.instructions} if self.instructions is not None else {}
        named = {"parameters": dict(self.parameters), "tools": dict(self.tools), "libraries": [*self.libraries]}
        return {**kept, **{name: value for name, value in named.items() if value}}


def changed(kept: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept, with a change: `instructions`, `parameters`, `tools` and `libraries`.

    Parameters and tools are changed one by one; `None` takes a choice back, as for a whole name.

    Raises:
        SettingsError: key `steering_long`: the instructions are too long; `steering_value`: another value is wrong.
    """
    return apply(kept, checked_change(change))


def checked_change(change: Mapping[str, Any]) -> dict[str, Any]:
    """A change without anything that cannot be kept; raises as `changed`."""
    found: dict[str, Any] = {}
    for name in STEERED:
        if name in change:
            value = change[name]
            found[name] = None if value is None else _CHECKS[name](value, taken_back=True)
    return found


def checked_instructions(text: object) -> str:
    """Instructions as they are kept.

    Raises:
        SettingsError: key `steering_long`; `steering_value` where it is no text.
    """
    if not isinstance(text, str):
        raise _wrong("instructions")
    plain = clean(text).strip()
    if len(plain) > LONGEST:
        raise SettingsError(
            f"The instructions have {len(plain):,} characters.",
            hint=f"Shorten them to {LONGEST:,}.",
            key="steering_long",
            n=f"{len(plain):,}",
            most=f"{LONGEST:,}",
        )
    return plain


def checked_parameters(given: object, *, taken_back: bool = False) -> dict[str, Any]:
    """Parameters as they are kept.

    Args:
        taken_back: Whether `None` may stand for "the service's own".

    Raises:
        SettingsError: key `steering_value`: a name is unknown, or a value none that any service takes.
    """
    if not isinstance(given, dict):
        raise _wrong("parameters")
    found: dict[str, Any] = {}
    for name, value in cast("dict[object, Any]", given).items():
        if value is None and taken_back and (name in _RANGES or name == "effort"):
            found[str(name)] = None
        elif name == "effort" and value in EFFORTS:
            found["effort"] = value
        elif name in _RANGES:
            found[str(name)] = _number(str(name), value)
        else:
            raise _wrong(str(name))
    return found


def _number(name: str, value: object) -> float:
    least, most = _RANGES[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise _wrong(name)
    if not least <= value <= most or (name in _WHOLE and value != int(value)):
        raise _wrong(name)
    return int(value) if name in _WHOLE else round(float(value), 3)


def _checked_instructions(given: object, *, taken_back: bool = False) -> str:
    del taken_back
    return checked_instructions(given)


def _checked_tools(given: object, *, taken_back: bool = False) -> dict[str, bool | None]:
    """Whether tools may be used, by name; `None` where that is left to the owner's list."""
    if not isinstance(given, dict) or len(cast("dict[str, Any]", given)) > _MOST_TOOLS:
        raise _wrong("tools")
    found: dict[str, bool | None] = {}
    for name, on in cast("dict[object, object]", given).items():
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            raise _wrong("tools")
        if not isinstance(on, bool) and not (on is None and taken_back):
            raise _wrong(plain_line(name, ""))
        found[name] = on
    return found


def _checked_libraries(given: object, *, taken_back: bool = False) -> tuple[str, ...]:
    del taken_back
    if not isinstance(given, list | tuple):
        raise _wrong("libraries")
    ids = cast("Sequence[object]", given)
    if len(ids) > MOST_LIBRARIES or not all(isinstance(one, str) and 0 < len(one) <= _LONGEST_NAME for one in ids):
        raise _wrong("libraries")
    return tuple(dict.fromkeys(cast("Sequence[str]", ids)))


_CHECKS: Final[Mapping[str, Any]] = {
    "instructions": _checked_instructions,
    "parameters": checked_parameters,
    "tools": _checked_tools,
    "libraries": _checked_libraries,
}


def apply(kept: Mapping[str, Any], checked: Mapping[str, Any]) -> dict[str, Any]:
    """`kept` with a change that was checked; names that are not ours stay as they are."""
    found = dict(kept)
    for name, value in checked.items():
        if isinstance(value, dict):
            whole = {**mapping_of(found.get(name)), **cast("dict[str, Any]", value)}
            value = {one: chosen for one, chosen in whole.items() if chosen is not None}  # noqa: PLW2901
        found[name] = [*cast("tuple[str, ...]", value)] if isinstance(value, tuple) else value
        if found[name] is None or found[name] in ({}, []):
            del found[name]
    return found


def mapping_of(kept: object) -> Mapping[str, Any]:
    """What was kept as names and values; empty where it is something else."""
    return cast("Mapping[str, Any]", kept) if isinstance(kept, dict) else {}


def _wrong(name: str) -> SettingsError:
    return SettingsError(
        f"{name[:80]!r} cannot be set to this.", hint="Choose another value.", key="steering_value", name=name[:80]
    )
