"""What every renderer uses: the marks of formulas and notes, escaping, and the note on invisible characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webui.words import Words

# Gradio cuts formulas out of the raw text before it reads the Markdown, code included: with `$` as a delimiter a shell
# script loses its variables, and "$5 to $10" becomes mathematics. So `render.markdown` finds the formulas and marks
# them with letters of Unicode's private area, and those are the only delimiters that Gradio knows.
INLINE = ("\ue000", "\ue001")
DISPLAY = ("\ue002", "\ue003")
MARKS = "".join((*INLINE, *DISPLAY))

LATEX_DELIMITERS: list[dict[str, str | bool]] = [
    {"left": DISPLAY[0], "right": DISPLAY[1], "display": True},
    {"left": INLINE[0], "right": INLINE[1], "display": False},
]

# Placeholders for our own notes while a model's text goes through the Markdown: letters of the last plane, which
# nothing is written with.
_FIRST_NOTE, _NOTES = 0x10F000, 0xF00
NOTE = f"[{chr(_FIRST_NOTE)}-{chr(_FIRST_NOTE + _NOTES - 1)}]"

# Our markup stands in `gr.Markdown(sanitize_html=False)` and in titles of bubbles, where the Markdown reader is still
# at work, so its marks become entities too.
_ENTITIES: dict[str, str | None] = {sign: f"&#{ord(sign)};" for sign in "&<>\"'\\`*_[]{}()#+!|~$:.-@%="}
_HALVES = dict.fromkeys(map(chr, range(0xD800, 0xE000)), "\ufffd")  # of surrogate pairs: nothing can be sent with one
_TABLE = str.maketrans({**_ENTITIES, **_HALVES, **dict.fromkeys(MARKS), "\0": None})
_KEPT = {**_TABLE, ord("\n"): "<br>", ord("\r"): None, ord("\x0b"): None, ord("\x0c"): None}
_SPACES = re.compile(r"\s+")


def escaped(text: str) -> str:
    """Text on one line that neither HTML nor Markdown reads anything into; fit for attributes too."""
    return _SPACES.sub(" ", text).translate(_TABLE)


def verbatim(text: str) -> str:
    """The same with spaces and line breaks kept, for text whose indents mean something; still one line of markup."""
    return text.translate(_KEPT)


def exact(text: str) -> str:
    """Every character of a text as it is, breaks and runs of spaces too, on one line; fit for attributes."""
    return "".join(sign if sign.isalnum() else f"&#{ord(sign)};" for sign in text)


def note_mark(index: int) -> str:
    """The placeholder of note `index`; nothing where there are too many."""
    return chr(_FIRST_NOTE + index) if index < _NOTES else ""


def note_index(mark: str) -> int:
    """The note that a placeholder stands for."""
    return ord(mark) - _FIRST_NOTE


def invisible_in(extra: Mapping[str, object] | None, words: Words) -> str:
    """The note on invisible characters that were removed from a message; empty where none were."""
    removed = (extra or {}).get("invisible")
    return invisible_note(removed, words) if isinstance(removed, int) else ""


def invisible_note(removed: int, words: Words) -> str:
    """The note on so many removed invisible characters."""
    return words("invisible.removed" if removed > 1 else "invisible.removed_one", n=removed) if removed > 0 else ""
