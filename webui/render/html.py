"""Escaping for our own markup in `gr.Markdown(sanitize_html=False)` and in titles of bubbles."""

from __future__ import annotations

import html
import re

# Inside our markup the Markdown reader is still at work: its marks become entities, line breaks become spaces.
_MARKS = re.compile(r"[\\`*_\[\]{}()#+!|~$:.\-]")
_SPACES = re.compile(r"\s+")


def escaped(text: str) -> str:
    """Text as one line that neither HTML nor Markdown reads anything into; fit for attributes too."""
    line = _SPACES.sub(" ", text.replace("\0", "\ufffd"))
    return _MARKS.sub(lambda mark: f"&#{ord(mark[0])};", html.escape(line, quote=True))


def one_line(markup: str) -> str:
    """Our own markup without line breaks: a blank line would end the HTML block."""
    return _SPACES.sub(" ", markup).strip()
