"""How many tokens a text takes: counted with the model's own vocabulary where one is at hand, else estimated."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from unicodedata import is_normalized

from core.llm.shorten import shortened
from core.llm.vocabularies import CL100K, O200K, QWEN, Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

# What a model's name says about its vocabulary; the first that fits counts.
_SPEAKERS: Final = (
    (re.compile(r"qwen(?!-?3\.[5-9])|qwq|qvq", re.IGNORECASE), QWEN),
    (re.compile(r"(?:^|/)(?:gpt-4(?!o|\.)|gpt-3\.5|gpt-35|text-embedding)", re.IGNORECASE), CL100K),
    (re.compile(r"(?:^|/)(?:gpt|chatgpt|o[134]\b)", re.IGNORECASE), O200K),
)

_COUNTED_UP_TO: Final = 2_000_000  # characters; beyond, an estimate from the first ones is near enough and never slow
_REMEMBERED: Final = 8_192
_WORD: Final = re.compile(r"[A-Za-zÀ-ÿ]+|[0-9]|[\u0370-\u2e7f]+|[\u2e80-\uffff\U00010000-\U0010ffff]|[^\w\s]+|\n+")


class Counter:
    """Counts tokens and cuts texts by them; what was counted once is remembered by the text, never with it.

    Args:
        vocabulary: What to count with, read when something has to be counted; none at all is an estimate.
        exact: Whether the counts are the model's own; otherwise they are an estimate.
        count: Counts in place of a vocabulary.

    Attributes:
        name: `qwen`, `cl100k`, `o200k`, `estimate`, or `own` for a model that counts by itself.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | None = None,
        *,
        exact: bool = False,
        count: Callable[[str], int] | None = None,
    ) -> None:
        self.name = vocabulary.name if vocabulary else "own" if count else "estimate"
        self.exact = exact
        self._vocabulary = vocabulary
        self._count = count or estimate_tokens
        self._bounded = count is None
        self._known: dict[tuple[int, int], int] = {}

    def count(self, text: str) -> int:
        """How many tokens `text` takes. Special tokens that were typed count as one each."""
        key = (len(text), hash(text))  # the text itself is not kept alive
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._counted(text)
            if len(self._known) > _REMEMBERED:
                with suppress(KeyError, StopIteration, RuntimeError):  # another thread made room
                    del self._known[next(iter(self._known))]
        return known

    def knows(self, text: str) -> bool:
        """Whether `text` was counted before, so that counting it again takes no time."""
        return (len(text), hash(text)) in self._known

    @property
    def is_ready(self) -> bool:
        """Whether counting can begin at once: there is no vocabulary to be read first, which takes a while."""
        return self._vocabulary is None or self._vocabulary.is_read

    def at_most(self, text: str) -> int:
        """A number that `count` never exceeds, had without counting: no token is shorter than a byte."""
        if text.isascii() and self._bounded:
            return len(text)
        if not self._bounded or not is_normalized("NFC", text):
            return self.count(text)
        return len(text.encode("utf-8", "surrogatepass"))

    def shortened(self, text: str, limit: int, *, both_ends: bool = True) -> str:
        """`text` in at most `limit` tokens: its beginning and, with `both_ends`, its end, `...` between them."""
        encoding = self._vocabulary.encoding if self._vocabulary else None
        return shortened(text, limit, self.count, encoding, both_ends=both_ends)

    def _counted(self, text: str) -> int:
        sample = text[:_COUNTED_UP_TO]
        counted = len(self._vocabulary.tokens(sample)) if self._vocabulary else self._count(sample)
        return counted if len(sample) == len(text) else counted * len(text) // len(sample) + 1


@lru_cache(maxsize=64)
def counter_for(model: str) -> Counter:
    """The counter for a model of this name.

    The counts are exact where the model's own vocabulary is at hand: Qwen's ships with the package of its service,
    those of GPT with other packages. For any other model the nearest vocabulary gives an estimate.
    """
    own = next((vocabulary for pattern, vocabulary in _SPEAKERS if pattern.search(model)), None)
    near = (CL100K, QWEN) if own is CL100K or own is O200K else (QWEN,)
    at_hand = next((each for each in (own, *near) if each is not None and each.file() is not None), None)
    return Counter(at_hand, exact=at_hand is not None and at_hand is own)


def count_tokens(text: str) -> int:
    """How many tokens `text` takes for Qwen, at least roughly."""
    return counter_for("qwen").count(text)


def estimate_tokens(text: str) -> int:
    """An estimate, mostly a little high: words by their length, each ideograph, digit and mark by itself."""
    return sum(_cost(found.group()) for found in _WORD.finditer(text))  # other threads go on in between


def _cost(piece: str) -> int:
    first = piece[0]
    if first >= "\U00010000":
        return 3
    if first >= "\u0370":
        return len(piece)
    return 1 + (len(piece) - 1) // 6


def vocabulary_at_hand() -> Any:
    """Qwen's vocabulary, read once; `None` where it is not at hand."""
    return QWEN.encoding
