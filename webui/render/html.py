"""Escaping for our own markup, which stands in `gr.Markdown(sanitize_html=False)` and in titles of bubbles."""

from __future__ import annotations

import re

from webui.render.delimiters import MARKS

# Inside our markup the Markdown reader is still at work, so its marks become entities too.
_ENTITIES: dict[str, str | None] = {sign: f"&#{ord(sign)};" for sign in "&<>\"'\\`*_[]{}()#+!|~$:.-@%="}
_HALVES = dict.fromkeys(map(chr, range(0xD800, 0xE000)), "\ufffd")  # of surrogate pairs: nothing can be sent with one
_TABLE = str.maketrans({**_ENTITIES, **_HALVES, **dict.fromkeys(MARKS), "\0": None})
_KEPT = {**_TABLE, ord("\n"): "<br>", ord("\r"): None, ord("\x0b"): None, ord("\x0c"): None}
_SPACES = re.compile(r"\s+")


def escaped(text: str) -> str:
    """Text as one line that neither HTML nor Markdown reads anything into; fit for attributes too."""
    return _SPACES.sub(" ", text).translate(_TABLE)


def verbatim(text: str) -> str:
    """The same with its spaces kept, for text whose lines and indents mean something; still one line of markup."""
    return text.translate(_KEPT)


def exact(text: str) -> str:
    """Every sign of a text as it is, breaks and runs of spaces too, on one line of markup; fit for attributes."""
    return "".join(sign if sign.isalnum() else f"&#{ord(sign)};" for sign in text)
