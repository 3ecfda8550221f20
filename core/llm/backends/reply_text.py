"""Tokens to text as they come: no half character is shown, and no piece of a word to stop at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from core.llm.stop_scanner import StopScanner

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
    """

    decode: Callable[[Sequence[int]], str]
    stop: tuple[str, ...] = ()
    count: int = 0
    _tokens: list[int] = field(default_factory=list[int])  # the last ones that are text, then those that are not yet
    _shown: int = 0  # how many of them are text
    _stops: StopScanner = field(init=False)

    def __post_init__(self) -> None:
        self._stops = StopScanner(self.stop)

    @property
    def stopped(self) -> bool:
        """Whether a word to stop at came; nothing is taken any more then."""
        return self._stops.stopped

    def add(self, token: int) -> str:
        """What may be shown after one token more."""
        self.count += 1
        self._tokens.append(token)
        return self._stops.feed(self._decoded(whole=False))

    def close(self) -> str:
        """The rest, when no more tokens come."""
        rest = self._stops.feed(self._decoded(whole=True))
        return rest + self._stops.close()

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
