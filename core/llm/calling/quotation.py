"""Tells whether a place in a growing Markdown text is quotation: a code fence, or inline code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^\n]*)\Z")

_TICKS = re.compile("`+")


@dataclass(slots=True)
class Quotation:
    """Add the text as it comes; lines are only read when somebody asks."""

    _new: list[str] = field(default_factory=list[str])
    _fence: str = ""

    def add(self, text: str) -> None:
        """More text, from where the last ended."""
        self._new.append(text)

    def new_line(self) -> None:
        """What comes next begins a line: something else stood in between."""
        if self._new:
            self._new.append("\n")

    def holds(self) -> bool:
        """Whether what follows is quoted."""
        line = self._line()
        open_code = len(_TICKS.findall(line)) % 2 == 1
        return bool(self._fence) or open_code or _FENCE.match(line) is not None

    def at_line_start(self) -> bool:
        """Whether nothing but white space stands before what follows on its line."""
        return not self._line().strip()

    def _line(self) -> str:
        """Read all whole lines; the rest of the last one stays."""
        *whole, line = "".join(self._new).split("\n")
        for each in whole:
            self._read(each)
        self._new = [line]
        return line

    def _read(self, line: str) -> None:
        found = _FENCE.match(line)
        if found is None:
            return
        marks, said = found.groups()
        if not self._fence:
            self._fence = "" if marks[0] in said else marks
        elif marks.startswith(self._fence) and not said.strip():
            self._fence = ""
