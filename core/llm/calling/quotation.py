"""Tells whether a place in a growing Markdown text is quotation: a code fence, or inline code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^\n]*)\Z")

_TICKS = re.compile("`+")
_FEWEST = 3  # signs of a fence


@dataclass(slots=True)
class Quotation:
    """Add the text as it comes; lines are only read when somebody asks."""

    _new: list[str] = field(default_factory=list[str])  # what nobody has asked about yet
    _line: list[str] = field(default_factory=list[str])  # the last line so far
    _lead: str = ""  # its first signs after white space
    _runs: int = 0  # of ticks in it
    _in_run: bool = False  # whether it ends with one
    _fence: str = ""

    def add(self, text: str) -> None:
        """More text, from where the last ended."""
        self._new.append(text)

    def new_line(self) -> None:
        """What comes next begins a line: something else stood in between."""
        self._new.append("\n")

    def holds(self) -> bool:
        """Whether what follows is quoted."""
        self._catch_up()
        return bool(self._fence) or self._runs % 2 == 1 or self._lead in {"```", "~~~"}

    def at_line_start(self) -> bool:
        """Whether nothing but white space stands before what follows on its line."""
        self._catch_up()
        return not self._lead

    def _catch_up(self) -> None:
        text, self._new = "".join(self._new), []
        first, *others = text.split("\n")
        self._go_on(first)
        for each in others:
            self._read("".join(self._line))
            self._line, self._lead, self._runs, self._in_run = [], "", 0, False
            self._go_on(each)

    def _go_on(self, part: str) -> None:
        """More of the last line."""
        if not part:
            return
        self._line.append(part)
        self._runs += len(_TICKS.findall(part)) - (self._in_run and part[0] == "`")
        self._in_run = part[-1] == "`"
        if len(self._lead) < _FEWEST:
            self._lead = (self._lead + part if self._lead else part.lstrip())[:_FEWEST]

    def _read(self, line: str) -> None:
        found = _FENCE.match(line)
        if found is None:
            return
        marks, said = found.groups()
        if not self._fence:
            self._fence = "" if marks[0] in said else marks
        elif marks.startswith(self._fence) and not said.strip():
            self._fence = ""
