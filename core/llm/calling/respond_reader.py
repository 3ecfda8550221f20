"""Reads the text of `{"name": "respond", "arguments": {"text": "…"}}` while it is still being written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_START = re.compile(r'\s*\{\s*"name"\s*:\s*"respond"\s*,\s*"arguments"\s*:\s*\{\s*"text"\s*:\s*"')
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u])")


@dataclass(slots=True)
class RespondReader:
    """Feed it the JSON; it gives the string's characters, escapes resolved, wherever the chunks were cut."""

    seen: str = ""
    found: bool = False
    _ended: bool = False

    def feed(self, text: str) -> str:
        """What the string gained; empty before it starts and after it ended."""
        if self._ended:
            return ""
        self.seen += text
        if not self.found:
            start = _START.match(self.seen)
            if start is None:
                return ""
            self.found = True
            self.seen = self.seen[start.end() :]
        return self._said()

    def _said(self) -> str:
        """Take what is certain from `seen`; an escape that is not whole yet stays there."""
        pieces: list[str] = []
        at = 0
        while at < len(self.seen):
            stop = next((i for i in range(at, len(self.seen)) if self.seen[i] in '"\\'), len(self.seen))
            pieces.append(self.seen[at:stop])
            at = stop
            if at == len(self.seen):
                break
            if self.seen[at] == '"':
                self._ended = True
                break
            escape = _ESCAPE.match(self.seen, at)
            if escape is None or _may_be_half_a_pair(escape.group(), self.seen[escape.end() :]):
                break
            pieces.append(_resolved(escape.group()))
            at = escape.end()
        self.seen = self.seen[at:]
        return "".join(pieces)


def _may_be_half_a_pair(escape: str, rest: str) -> bool:
    return len(escape) == 6 and escape[2:4].lower() in {"d8", "d9", "da", "db"} and len(rest) < 6


def _resolved(escape: str) -> str:
    try:
        text: str = json.loads(f'"{escape}"')
    except ValueError:
        return escape[1:]
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
