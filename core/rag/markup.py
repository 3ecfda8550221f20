"""Follows Markdown letter by letter: which letters are code or formulas, and which lines are prose."""

from __future__ import annotations

import re

_FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_LIST = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_CLOSERS = {"(": ")", "[": "]"}


class Markup:
    """The state of a Markdown text that is still being written."""

    def __init__(self) -> None:
        self._line: list[str] = []
        self._has_bar = False
        self._fence = ""
        self._in_list = False
        self._after_blank = True
        self._ticks = 0  # backticks just read
        self._code = 0  # how many opened the code that we are in
        self._dollars = 0
        self._math = ""  # what ends the formula that we are in
        self._last = ""

    def is_literal(self, letter: str) -> bool:
        """Take in a letter; whether it belongs to code or a formula."""
        if letter == "\n":
            self._end_line()
            return bool(self._fence or self._math)
        self._line.append(letter)
        if self._fence:
            return True
        literal = self._is_code(letter) or self._is_math(letter)
        self._has_bar = self._has_bar or (letter == "|" and not literal)
        self._last = "" if self._last == "\\" else letter
        return literal or self._is_indented_code()

    def is_prose(self) -> bool:
        """Whether the line so far may carry a mark: no heading, table, code or formula."""
        start = "".join(self._line[:8]).lstrip()
        quoted = start.lstrip("> ")
        blocked = self._fence or self._has_bar or quoted.startswith(("#", "|", "```", "~~~")) or self._math == "$$"
        return not blocked and not self._is_indented_code()

    def _end_line(self) -> None:
        if not self._line and not self._fence and not self._dollars and not self._ticks:
            self._math, self._after_blank, self._code, self._last = "", True, 0, ""
            return
        line = "".join(self._line)
        bare = line.strip()
        if self._fence:
            if bare and set(bare) == {self._fence[0]} and len(bare) >= len(self._fence):
                self._fence = ""
        elif opening := _FENCE.match(line):
            self._fence = opening[1]
        else:
            self._settle("\n")
        if not bare or self._math == "$":
            self._math = ""
        if _LIST.match(line):
            self._in_list = True
        elif bare and not line.startswith((" ", "\t")) and self._after_blank:
            self._in_list = False
        self._after_blank = not bare
        self._line, self._has_bar, self._code, self._ticks, self._dollars, self._last = [], False, 0, 0, 0, ""

    def _is_indented_code(self) -> bool:
        if self._in_list or not self._after_blank or self._line[:1] not in ([" "], ["\t"]):
            return False
        start = "".join(self._line[:4])
        return start == "    " or start.startswith("\t")

    def _is_code(self, letter: str) -> bool:
        if letter == "`" and not self._math:
            self._ticks += 1
            return True
        if self._ticks:
            self._code = self._ticks if not self._code else (0 if self._code == self._ticks else self._code)
            self._ticks = 0
        return self._code > 0

    def _is_math(self, letter: str) -> bool:
        if self._last == "\\":
            if not self._math and letter in _CLOSERS:
                self._math = _CLOSERS[letter]
            elif letter == self._math:
                self._math = ""
            return True
        if letter == "$":
            self._dollars += 1
            return True
        self._settle(letter)
        return bool(self._math)

    def _settle(self, letter: str) -> None:
        """After dollars: two begin or end a formula of its own; one does, unless it is a price."""
        if self._dollars >= 2:
            self._math = "" if self._math == "$$" else (self._math or "$$")
        elif self._dollars == 1:
            if self._math == "$":
                self._math = ""
            elif not self._math and not letter.isspace() and not letter.isdigit():
                self._math = "$"
        self._dollars = 0
