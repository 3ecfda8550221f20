"""Names and descriptions that strangers wrote, made fit to be shown: no control characters, no endless lengths."""

from __future__ import annotations

import re
from hashlib import sha256

from core.messages.invisible import written_out

LONGEST_NAME = 128
LONGEST_DESCRIPTION = 10_000
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")


def one_line(text: str, most: int = LONGEST_NAME) -> str:
    """A name or message in one line: controls are written out, what is too long ends in "…"."""
    text = _ANSI.sub("", text[: most * 8])
    text = re.sub(r"[\r\n\t\u2028\u2029]+", " ", text)
    text = written_out(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def many_lines(text: str, most: int = LONGEST_DESCRIPTION) -> str:
    """A description: lines stay lines; hidden characters are written out, so that what a model reads can be seen."""
    text = _ANSI.sub("", text[: most * 2]).replace("\r\n", "\n").replace("\r", "\n")
    text = written_out(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def rule_name(server: str, tool: str) -> str:
    """`mcp:<server>:<tool>`, by which rules know a tool: printable, and another one for each tool.

    Where a name had to be changed for that, the end says which it was: else what is allowed to one tool would be
    allowed to every other whose name looks the same.
    """
    return f"mcp:{_one_of_a_kind(server)}:{_one_of_a_kind(tool)}"


def _one_of_a_kind(name: str) -> str:
    shown = one_line(name)
    return shown if shown == name else f"{shown}#{sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
