"""Words in one text, as lists that can be read."""

from __future__ import annotations


def listed(words: str) -> frozenset[str]:
    """The words of a text, each once."""
    return frozenset(words.split())


def in_order(words: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(words.split())
