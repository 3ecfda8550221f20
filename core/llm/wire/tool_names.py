"""Names of tools as services take them: letters of ASCII, digits, `_` and `-`, at most 64."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_FINE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST: Final = 64


class ToolNames:
    """Two-way table of the names that have to change; most conversations have none.

    Args:
        names: The tools on offer. A name met later gets its place when it is asked for.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._sent: dict[str, str] = {}
        self._given: dict[str, str] = {}
        known = list(names)
        self._taken = {name for name in known if _FINE.fullmatch(name)}
        for name in known:
            self.sent(name)

    def sent(self, name: str) -> str:
        """The name that goes to the service."""
        if _FINE.fullmatch(name):
            return name
        if name not in self._sent:
            plain = _OTHER.sub("_", name).strip("_")[:_LONGEST] or "tool"
            free, number = plain, 1
            while free in self._taken:
                number += 1
                end = f"_{number}"
                free = plain[: _LONGEST - len(end)] + end
            self._taken.add(free)
            self._sent[name], self._given[free] = free, name
        return self._sent[name]

    def given(self, name: str) -> str:
        """The tool's own name for one that the service used."""
        return self._given.get(name, name)
