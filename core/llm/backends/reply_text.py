"""Tokens to text as they come: no half character is shown, and no piece of a word to stop at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HALF: Final = "\ufffd"
_LONGEST_CHARACTER: Final = 8  # tokens: whatever takes more is no character that is still to come


@dataclass(slots=True)
class ReplyText:
    """The text of one reply.

    Args:
        decode: Tokens to text, as the model's vocabulary has it.
        stop: Words before which the reply ends.

    Attributes:
        count: How many tokens came.
        stopped: Whether a word to stop at came; nothing is taken any more then.
    """

    decode: Callable[[Sequence[int]], str]
    stop: tuple[str, ...] = ()
    count: int = 0
    stopped: bool = False
    _tokens: list[int] = field(default_factory=list[int])  # the last ones that are text, then those that are not yet
    _shown: int = 0  # how many of them are text
    _held: str = ""

    def add(self, token: int) -> str:
        """What may be shown after one token more."""
        self.count += 1
        self._tokens.append(token)
        return self._safe(self._decoded(whole=False))

    def close(self) -> str:
        """The rest, when no more tokens come."""
        rest = self._safe(self._decoded(whole=True))
        rest, self._held = rest + self._held, ""
        return rest

    def _decoded(self, *, whole: bool) -> str:
        """The new text. The tokens before it are decoded with it: the space between words depends on them."""
        before = self.decode(self._tokens[: self._shown])
        text = self.decode(self._tokens)
        waiting = len(self._tokens) - self._shown
        if not whole and (len(text) <= len(before) or (text.endswith(_HALF) and waiting < _LONGEST_CHARACTER)):
            return ""
        self._tokens = self._tokens[self._shown :]
        self._shown = len(self._tokens)
        return text[len(before) :]

    def _safe(self, more: str) -> str:
        """What of the text, with `more` at its end, is before any word to stop at; its beginnings are held back."""
        if self.stopped:
            return ""
        text = self._held + more
        found = [place for word in self.stop if (place := text.find(word)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)]
        keep = max((_overlap(text, word) for word in self.stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, word: str) -> int:
    """How many characters at the end of `text` begin `word`."""
    return next((size for size in range(min(len(word) - 1, len(text)), 0, -1) if text.endswith(word[:size])), 0)
