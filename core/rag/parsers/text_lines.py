"""Printed lines become running text, or stay lines where each says something of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.rag.parsers.base import is_ideograph

if TYPE_CHECKING:
    from collections.abc import Sequence

# A row of dots, or of spaces, is tried once, from its start.
_LEADER = re.compile(r"(?<!\s)(?:(?<![.·…])|(?=\s\s))\s*+(?:[.·…]\s?+){4,}+\s*+(\w{0,6}+)\s*+$")


def is_list(lines: Sequence[str]) -> bool:
    """Whether most of the lines end in dots that lead to a number, as in a table of contents."""
    return sum(bool(_LEADER.search(line)) for line in lines) * 2 > len(lines)


def listed(lines: list[str]) -> tuple[str, list[int]]:
    """Printed lines that stay lines, as in a table of contents, without the dots that lead to its numbers."""
    text = ""
    starts: list[int] = []
    for line in lines:
        text += "\n" if text else ""
        starts.append(len(text))
        text += " ".join(_LEADER.sub(r" \1", line).split())
    return text, starts


def joined(lines: list[str]) -> tuple[str, list[int]]:
    """Printed lines as running text, and where each starts in it.

    A word parted at a line's end is put together again; Chinese needs no space between lines.
    """
    text = ""
    starts: list[int] = []
    for line in (" ".join(line.split()) for line in lines):
        if text.endswith("-") and len(text) > 1 and text[-2].islower() and line[:1].islower():
            text = text[:-1]
        elif text and line and not (is_ideograph(text[-1]) and is_ideograph(line[0])):
            text += " "
        starts.append(len(text))
        text += line
    return text, starts
