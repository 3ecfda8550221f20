"""Characters that nobody sees and a model reads: hidden orders in a text are taken out, what writing needs stays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

# The flags of England, Scotland and Wales: a black flag, its region in tag characters, and their end. No other such
# sequence is in general use, and any letters could be hidden in one.
_TAGGED: Final = {"gbeng", "gbsct", "gbwls"}
_FLAGS: Final = "|".join("\U0001f3f4" + "".join(chr(0xE0000 + ord(one)) for one in each) for each in sorted(_TAGGED))
_FLAG: Final = f"(?:{_FLAGS})\U000e007f"

# Tag characters, embeddings and overrides of the writing direction, isolates, deprecated format controls, annotations
# between lines, and code points that are reserved for more of the kind.
_NEVER: Final = "\u202a-\u202e\u2066-\u206f\ufff0-\ufffb\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
_JOINERS: Final = "\u200c\u200d"
# Alone these have a meaning: a place to break a line, a joiner, a mark of direction, a soft hyphen; in a row they have
# none, and any text can be written in them.
_ALONE: Final = (
    f"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b{_JOINERS}\u200e\u200f\u2060-\u2064\u3164\ufeff\uffa0"
)
_SELECTORS: Final = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"

_SUSPECT: Final = re.compile(f"[{_NEVER}{_ALONE}{_SELECTORS}]")
_FOUND: Final = re.compile(f"(?P<flag>{_FLAG})|[{_NEVER}{_ALONE}{_SELECTORS}]+")
_REMOVED: Final = re.compile(f"[{_NEVER}]")
_SELECTOR: Final = re.compile(f"[{_SELECTORS}]")
# Letters whose look no selector changes: a selector after each of them would carry a text.
_PLAIN: Final = re.compile(r"[A-Za-z\s!\"$%&'()+,\-./:;<=>?@\[\\\]^_`{|}~]")


class Cleaned(NamedTuple):
    """A text, and how many characters were taken out of it."""

    text: str
    removed: int


def without_invisible(text: str) -> Cleaned:
    """The text without characters that cannot be seen and that no writing needs, in one pass.

    Taken out are tag characters (those of the flags of England, Scotland and Wales stay), embeddings, overrides and
    isolates of the writing direction, and rows of characters without width. One such character alone stays, for emoji,
    Persian and Indic scripts need joiners; so does a selector after what it can change.
    """
    if text.isascii() or _SUSPECT.search(text) is None:
        return Cleaned(text, 0)
    cleaned = _FOUND.sub(_kept, text)
    return Cleaned(cleaned, len(text) - len(cleaned))


def _kept(found: re.Match[str]) -> str:
    if found["flag"]:
        return found[0]
    row = _REMOVED.sub("", found[0])
    selector = row[:1] if _SELECTOR.match(row) else ""
    if selector and (not found.start() or _PLAIN.match(found.string[found.start() - 1])):
        selector, row = "", row[1:]
    rest = _SELECTOR.sub("", row[len(selector) :])
    if len(rest) > 1:
        rest = rest[0] if rest[0] in _JOINERS else ""
    return selector + rest


def noted(extra: Mapping[str, object] | None, removed: int) -> dict[str, object] | None:
    """What a message has in `extra`, with how many invisible characters were taken out of it; none where none were.

    Args:
        extra: As it is without that.
        removed: How many.
    """
    rest = {name: value for name, value in (extra or {}).items() if name != "invisible"}
    if removed:
        rest["invisible"] = removed
    return rest or None
