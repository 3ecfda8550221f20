"""Shortens a text to so many tokens by leaving out its middle, or its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from unicodedata import is_normalized

if TYPE_CHECKING:
    from collections.abc import Callable

_MARK: Final = "..."
_ATTEMPTS: Final = 4
_FARTHEST: Final = 512
_FIRST_IDEOGRAPH: Final = "\u4e00"
_LAST_IDEOGRAPH: Final = "\u9fff"


def shortened(
    text: str, limit: int, count: Callable[[str], int], encoding: Any = None, *, both_ends: bool = True
) -> str:
    """`text` where it takes at most `limit` tokens, else its beginning and end with `...` between them.

    Args:
        text: Any text; a character that is made of several code points is never torn.
        limit: In tokens, as `count` counts them; zero and less leave nothing.
        count: How many tokens a text takes.
        encoding: The vocabulary, where there is one: the cut then falls between its tokens.
        both_ends: Otherwise the beginning alone is kept, without a mark.
    """
    if limit <= 0:
        return ""
    if count(text) <= limit:
        return text
    mark = _MARK if both_ends and limit > count(_MARK) else ""
    if encoding is not None and is_normalized("NFC", text) and _is_whole(text):
        tokens: list[int] = encoding.encode(text, allowed_special="all")
        for room in range(limit, max(0, limit - _ATTEMPTS), -1):  # what is cut apart may count as more than before
            cut = _by_tokens(text, tokens, room, mark, encoding)
            if count(cut) <= limit:
                return cut
    return _by_search(text, limit, mark, count)


def _is_whole(text: str) -> bool:
    """Whether no half of a surrogate pair is in it, which a vocabulary would replace."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _by_tokens(text: str, tokens: list[int], limit: int, mark: str, encoding: Any) -> str:
    """The first and last tokens, the larger half at the end; a torn character is left out at both sides."""
    room = max(0, limit - (len(encoding.encode(mark)) if mark else 0))
    first = room // 2 if mark else room
    last = room - first if mark else 0
    front = boundary(text, len(_text(encoding, tokens[:first])))
    back = boundary(text, len(text) - len(_text(encoding, tokens[len(tokens) - last :])), forward=True)
    return f"{text[:front]}{mark}{text[max(front, back) :]}" if mark else text[:front]


def _text(encoding: Any, tokens: list[int]) -> str:
    return encoding.decode_bytes(tokens).decode("utf-8", "ignore")


def _by_search(text: str, limit: int, mark: str, count: Callable[[str], int]) -> str:
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_torn(text, middle, mark)) <= limit:
            low = middle
        else:
            high = middle - 1
    while low and count(_kept(text, low, mark)) > limit:  # whole characters take less, but for a rare vocabulary
        low -= max(1, low // 8)
    return _kept(text, low, mark)


def _torn(text: str, characters: int, mark: str) -> str:
    """Like `_kept`, with characters torn that are made of several."""
    return f"{text[: (characters + 1) // 2]}{mark}{text[len(text) - characters // 2 :]}" if mark else text[:characters]


def _kept(text: str, characters: int, mark: str) -> str:
    if not mark:
        return text[: boundary(text, characters)]
    front = boundary(text, (characters + 1) // 2)
    back = boundary(text, len(text) - characters // 2, forward=True)
    return f"{text[:front]}{mark}{text[max(front, back) :]}"


def boundary(text: str, at: int, *, forward: bool = False) -> int:
    """The nearest place at or before `at`, or after it, that is not inside a character as a reader sees it."""
    if at <= 0 or at >= len(text) or _apart(text, at):
        return max(0, min(at, len(text)))
    import regex

    start = next((place for place in range(at - 1, max(0, at - _FARTHEST), -1) if _apart(text, place)), 0)
    end = next((place for place in range(at + 1, min(len(text), at + _FARTHEST)) if _apart(text, place)), len(text))
    pattern: Any = regex
    for found in pattern.finditer(r"\X", text[start:end]):
        if start + found.end() > at:
            inside = start + found.start() < at
            return start + (found.end() if inside and forward else found.start())
    return at


def _apart(text: str, at: int) -> bool:
    """Whether two characters begin before and at this place for certain: plain letters or marks, or two ideographs."""
    before, after = text[at - 1], text[at]
    if after.isascii() and before.isascii():
        return (before, after) != ("\r", "\n")
    return _FIRST_IDEOGRAPH <= before <= _LAST_IDEOGRAPH and _FIRST_IDEOGRAPH <= after <= _LAST_IDEOGRAPH
