"""Every sentence of the page, in the reader's language. `fixed.py` holds what the browser itself chooses."""

from __future__ import annotations

from webui.words.words import LANGUAGES, SCRIPT_WORDS, Lang, Words

__all__ = ["LANGUAGES", "SCRIPT_WORDS", "Lang", "Words"]
