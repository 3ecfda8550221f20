"""Every sentence of the page, in the reader's language. `fixed.py` holds what the browser itself chooses."""

from __future__ import annotations

from webui.words.words import LANGUAGES, Lang, Words, script_words

__all__ = ["LANGUAGES", "Lang", "Words", "script_words"]
