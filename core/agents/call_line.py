"""Finds the line by which a model hands a question over, in text that still comes in."""

from __future__ import annotations

import re

_LINE = re.compile(r"[ \t>*#`_]*call[ \t*`_]*[:：][ \t*`_]*(?P<name>[^\n]*)", re.IGNORECASE)
_SPOKEN = re.compile(
    rf"[ \t>*#`_]*[^\s:：][^\n:：]{{0,40}}[:：]{_LINE.pattern}", re.IGNORECASE
)  # "Waiter: Call: Waiter"
_BEGINS = re.compile(r"[ \t>*#`_]*(?:c(?:a(?:l(?:l[ \t*`_]*)?)?)?)?", re.IGNORECASE)


class CallLine:
    """Holds back what may become a line `Call: name`, and passes the rest on.

    Args:
        held: How many letters at the beginning are held back in any case: a sentence in front of the line is the
            router's own text too, and is not to be seen.
    """

    def __init__(self, held: int = 80) -> None:
        self.name: str | None = None  # what stands after `Call:`, once that is known
        self._first = held
        self._held = ""
        self._at_line_start = True

    def feed(self, text: str) -> str:
        """What is certainly no such line, after more text; nothing once there was one."""
        self._held += text
        if self._finds(self._held, whole=False) or len(self._held) < self._first:
            return ""
        self._first = 0
        start, line = self._last_line()
        if (start or self._at_line_start) and (_BEGINS.fullmatch(line) or _LINE.fullmatch(line)):
            passed, self._held = self._held[:start], line
        else:
            passed, self._held = self._held, ""
        self._at_line_start = passed.endswith("\n") or (not passed and self._at_line_start)
        return passed

    def close(self) -> str:
        """The rest, when no more text comes."""
        if self._finds(self._held, whole=True):
            return ""
        passed, self._held = self._held, ""
        return passed

    def _last_line(self) -> tuple[int, str]:
        start = self._held.rfind("\n") + 1
        return start, self._held[start:]

    def _finds(self, text: str, *, whole: bool) -> bool:
        """Whether there is such a line; one that may go on counts only in a text that is whole."""
        if self.name is not None:
            return True
        lines = text.split("\n")
        ended = lines if whole else lines[:-1]
        for number, line in enumerate(ended):
            if not (number or self._at_line_start):
                continue
            match = _LINE.fullmatch(line)
            if match is None and not number and len(line) < self._first:  # small models begin with a name, as in a play
                match = _SPOKEN.fullmatch(line)
            if match is not None:
                self.name = match["name"].strip()
                return True
        return False
