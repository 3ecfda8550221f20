"""Finds the first stop word in a text that grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class StopScanner:
    """Passes text on up to the first of `words`, wherever the chunks were cut.

    The beginning of a word is held back until it is clear whether the word follows; at the end of a reply it is text.
    """

    words: Sequence[str]
    stopped: bool = False
    _held: str = field(default="")

    def feed(self, text: str) -> str:
        """What is certain after more text."""
        if self.stopped:
            return ""
        text = self._held + text
        places = [place for word in self.words if (place := text.find(word)) >= 0]
        if places:
            self.stopped, self._held = True, ""
            return text[: min(places)]
        keep = max((_begun(text, word) for word in self.words), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def close(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        return held


def _begun(text: str, word: str) -> int:
    """How many characters at the end of `text` are the beginning of `word`."""
    return next((size for size in range(min(len(word) - 1, len(text)), 0, -1) if text.endswith(word[:size])), 0)
