"""Reads the text of `{"name": "respond", "arguments": {"text": "…"}}` while it is still being written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

_BEFORE = ("{", '"name"', ":", '"respond"', ",", '"arguments"', ":", "{", '"text"', ":", '"')
"""What stands before the text, with any white space between."""
_SPACE = re.compile(r"\s*+")
_SPECIAL = re.compile(r'["\\]')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u])")
_LONGEST_ESCAPE = 12


@dataclass(slots=True)
class RespondReader:
    """Feed it the JSON; it gives the string's characters, escapes resolved, wherever the chunks were cut."""

    found: bool = False
    _kept: list[str] = field(default_factory=list[str])
    _rest: str = ""  # what was not read to its end
    _part: int = 0  # the one of `_BEFORE` that comes next
    _ended: bool = False

    @property
    def seen(self) -> str:
        """All of it, as long as the string has not begun."""
        return "".join(self._kept)

    def feed(self, text: str) -> str:
        """What the string gained; empty before it starts and after it ended."""
        if not self.found:
            self._kept.append(text)
        if self._ended:
            return ""
        text, at = self._rest + text, 0
        if not self.found:
            at = self._begin(text)
            if not self.found:
                return ""
        return self._said(text, at)

    def _begin(self, text: str) -> int:
        """Go on through what stands before the string; where that ends."""
        at = 0
        while self._part < len(_BEFORE):
            space = _SPACE.match(text, at)
            at = space.end() if space else at
            part = _BEFORE[self._part]
            if not text.startswith(part, at):
                self._rest = text[at : at + len(part)]
                self._ended = not part.startswith(self._rest)  # it is something else
                return at
            at += len(part)
            self._part += 1
        self.found, self._kept = True, []
        return at

    def _said(self, text: str, at: int) -> str:
        """Take what is certain; an escape that is not whole yet waits."""
        pieces: list[str] = []
        while at < len(text):
            special = _SPECIAL.search(text, at)
            stop = special.start() if special else len(text)
            pieces.append(text[at:stop])
            at = stop
            if special is None:
                break
            if text[at] == '"':
                self._ended = True
                break
            escape = _ESCAPE.match(text, at)
            if escape is None or _may_be_half_a_pair(escape.group(), len(text) - escape.end()):
                self._ended = escape is None and len(text) - at >= _LONGEST_ESCAPE  # it is none
                break
            pieces.append(_resolved(escape.group()))
            at = escape.end()
        self._rest = text[at:] if not self._ended else ""
        return "".join(pieces)


def _may_be_half_a_pair(escape: str, following: int) -> bool:
    return len(escape) == 6 and escape[2:4].lower() in {"d8", "d9", "da", "db"} and following < 6


def _resolved(escape: str) -> str:
    try:
        text: str = json.loads(f'"{escape}"')
    except ValueError:
        return escape[1:]
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
