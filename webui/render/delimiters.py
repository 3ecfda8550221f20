"""How formulas are marked on their way to the page.

Gradio cuts formulas out of the raw text before it reads the Markdown, code included: with `$` as a delimiter a shell
script loses its variables, and "$5 to $10" becomes mathematics. So `render.inline` finds the formulas and marks them
with letters of Unicode's private area, and those are the only delimiters that Gradio knows.
"""

from __future__ import annotations

INLINE = ("\ue000", "\ue001")
DISPLAY = ("\ue002", "\ue003")
MARKS = "".join((*INLINE, *DISPLAY))

LATEX_DELIMITERS: list[dict[str, str | bool]] = [
    {"left": DISPLAY[0], "right": DISPLAY[1], "display": True},
    {"left": INLINE[0], "right": INLINE[1], "display": False},
]

# Where something of ours stands in a model's text on its way through the Markdown: letters of the last plane, which
# nothing is written with.
_FIRST_NOTE, _NOTES = 0x10F000, 0xF00
NOTE = f"[{chr(_FIRST_NOTE)}-{chr(_FIRST_NOTE + _NOTES - 1)}]"


def note_mark(index: int) -> str:
    """The letter that stands for note `index`; nothing where there are too many."""
    return chr(_FIRST_NOTE + index) if index < _NOTES else ""


def note_index(mark: str) -> int:
    """Which note a letter stands for."""
    return ord(mark) - _FIRST_NOTE
