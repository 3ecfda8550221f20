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

# Nothing stands for these where text is shown: controls, a soft hyphen, marks of direction, halves of surrogate pairs.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

_TAG: Final = re.compile("[\U000e0000-\U000e007f]")
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


def written_out(text: str) -> str:
    """The text with all that a reader would not see written as its number, as code writes it; lines stay lines.

    Stricter than `without_invisible`: of characters without width only joiners and selectors stay as they are, where
    a script or an emoji needs them. What comes back as it was hides nothing.
    """
    text = _CONTROLS.sub(lambda found: _number(found[0]), text)
    return text if text.isascii() else _FOUND.sub(_shown, text)


def plain_line(text: str, between: str = " ") -> str:
    """One line in which nothing is hidden, for names and titles: no invisible characters, no controls, single spaces.

    Joiners stay where a script or an emoji needs them, and so do flags.

    Args:
        text: What somebody else called it.
        between: What controls and ends of lines become.
    """
    plain = without_invisible(text).text
    if plain.isprintable():  # nearly always, and a hundred times quicker than sign by sign
        return " ".join(plain.split())
    kept = (sign if sign.isprintable() or sign in _JOINERS or _TAG.match(sign) else between for sign in plain)
    return " ".join("".join(kept).split())


def _shown(found: re.Match[str]) -> str:
    if found["flag"]:
        return found[0]
    kept = [sign for sign in _kept(found) if sign in _JOINERS or _SELECTOR.match(sign)]
    shown: list[str] = []
    for sign in found[0]:
        is_kept = sign in kept and not (shown and _SELECTOR.match(sign))  # it would now stand after a digit
        if is_kept:
            kept.remove(sign)
        shown.append(sign if is_kept else _number(sign))
    return "".join(shown)


def _number(sign: str) -> str:
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


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
