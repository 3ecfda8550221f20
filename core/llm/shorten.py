"""Shortens a text to so many tokens by leaving out its middle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MARK: Final = "..."
_WINDOW: Final = 64


def shortened(text: str, limit: int, count: Callable[[str], int]) -> str:
    """`text` where it takes at most `limit` tokens, else its beginning and end with `...` between them.

    Args:
        text: Any text; a character that is made of several code points is never torn.
        limit: In tokens, as `count` counts them.
        count: How many tokens a text takes.
    """
    if count(text) <= limit:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_kept(text, middle)) <= limit:
            low = middle
        else:
            high = middle - 1
    return _kept(text, low)


def _kept(text: str, characters: int) -> str:
    front = boundary(text, (characters + 1) // 2)
    back = boundary(text, len(text) - characters // 2)
    return f"{text[:front]}{_MARK}{text[back:]}"


def boundary(text: str, at: int) -> int:
    """The nearest place at or before `at` that is not inside a character as a reader sees it."""
    if at <= 0 or at >= len(text) or (text[at].isascii() and text[at - 1].isascii()):
        return max(0, min(at, len(text)))
    import regex

    start = max(0, at - _WINDOW)
    pattern: Any = regex
    for found in pattern.finditer(r"\X", text[start : at + _WINDOW]):
        if start + found.end() > at:
            return start + found.start()
    return at
