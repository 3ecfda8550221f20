"""Finds the line by which a model hands a question over, in text that still comes in."""

from __future__ import annotations

import re

_LINE = re.compile(r"[ \t>*#`_]*call[ \t*`_]*[:：][ \t*`_]*(?P<name>[^\n]*)", re.IGNORECASE)
_SPOKEN = re.compile(
    rf"[ \t>*#`_]*[^\s:：][^\n:：]{{0,40}}[:：]{_LINE.pattern}", re.IGNORECASE
)  # "Waiter: Call: Waiter"
_BEGINS = re.compile(r"[ \t>*#`_]*(?:c(?:a(?:l(?:l[ \t*`_]*)?)?)?)?", re.IGNORECASE)
_AROUND = " \t>*#`_"
_AFTER_CALL = re.compile(r"(?<=\Acall)[ \t*`_]+", re.IGNORECASE)


class CallLine:
    """Holds back what may become a line `Call: name`, and passes the rest on.

    Args:
        held: How many letters at the beginning are held back in any case: a sentence in front of the line is the
            router's own text too, and is not to be seen.
    """

    def __init__(self, held: int = 80) -> None:
        self.name: str | None = None  # what stands after `Call:`, once that is known
        self._first = held
        self._kept: list[str] = []
        self._short = ""  # the line that is held, without what may stand around the word in any number
        self._named = False  # whether that line is one, which only its end ends
        self._at_line_start = True

    def feed(self, text: str) -> str:
        """What is certainly no such line, after more text; nothing once there was one."""
        if self.name is not None:
            return ""
        if not self._first and self._goes_on(text):
            self._kept.append(text)
            return ""
        held = "".join([*self._kept, text])
        self._kept = [held]
        if self._finds(held, whole=False) or len(held) < self._first:
            return ""
        self._first = 0
        start = held.rfind("\n") + 1
        line = held[start:]
        may_be = (start or self._at_line_start) and (_BEGINS.fullmatch(line) or _LINE.fullmatch(line))
        passed, line = (held[:start], line) if may_be else (held, "")
        self._kept = [line] if line else []
        self._short, self._named = _shortened(line), bool(_LINE.fullmatch(line))
        self._at_line_start = passed.endswith("\n") or (not passed and self._at_line_start)
        return passed

    def close(self) -> str:
        """The rest, when no more text comes."""
        held, self._kept = "".join(self._kept), []
        return "" if self._finds(held, whole=True) else held

    def _goes_on(self, text: str) -> bool:
        """Whether the line that is held may still be one with more text, which says nothing of the line before."""
        if not self._kept or "\n" in text:
            return False
        if not self._named:
            short = _shortened(self._short + text)
            self._named = bool(_LINE.fullmatch(short))
            if not self._named and not _BEGINS.fullmatch(short):
                return False
            self._short = short
        return True

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


def _shortened(line: str) -> str:
    """The line as the patterns see it, without what they pass over."""
    return _AFTER_CALL.sub(" ", line.lstrip(_AROUND))
