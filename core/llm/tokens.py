"""How many tokens a text takes: counted with the model's own vocabulary where one is at hand, else estimated."""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unicodedata import is_normalized, normalize

from core.llm.shorten import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

_QWEN_SPLIT: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CL100K_SPLIT: Final = _QWEN_SPLIT.replace(r"|\p{N}| ", r"|\p{N}{1,3}| ")
_QWEN_SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_CL100K_SPECIAL: Final = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}
_QWEN_PLACES: Final = ("resources/qwen.tiktoken",)
_CL100K_NAME: Final = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"  # what tiktoken calls its file, by its address
_CL100K_PLACES: Final = (
    f"litellm_core_utils/tokenizers/{_CL100K_NAME}",
    f"llms/tokenizers/{_CL100K_NAME}",
)
_SPEAKS_QWEN: Final = re.compile(r"qwen(?!-?3\.[5-9])|qwq|qvq", re.IGNORECASE)
_SPEAKS_CL100K: Final = re.compile(r"(?:^|/)(?:gpt-4(?!o|\.)|gpt-3\.5|gpt-35|text-embedding)", re.IGNORECASE)
_OPENAIS: Final = re.compile(r"(?:^|/)(?:gpt|chatgpt|o[134]\b)", re.IGNORECASE)

_COUNTED_UP_TO: Final = 2_000_000  # characters; beyond, an estimate from the first ones is near enough and never slow
_REMEMBERED: Final = 8_192
_WORD: Final = re.compile(r"[A-Za-zÀ-ÿ]+|[0-9]|[\u0370-\u2e7f]+|[\u2e80-\uffff\U00010000-\U0010ffff]|[^\w\s]+|\n+")


class Counter:
    """Counts tokens and cuts texts by them; what was counted once is remembered by the text, never with it.

    Args:
        name: The vocabulary: `qwen`, `cl100k`, `estimate`, or `own` for a model that counts by itself.
        exact: Whether the counts are the model's own; otherwise they are an estimate.
        load: Gives the vocabulary as `tiktoken` has it; called when something has to be counted.
        count: Counts in place of a vocabulary.
    """

    def __init__(
        self,
        name: str,
        *,
        exact: bool,
        load: Callable[[], Any] | None = None,
        count: Callable[[str], int] | None = None,
    ) -> None:
        self.name = name
        self.exact = exact
        self._load = load
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

    def at_most(self, text: str) -> int:
        """A number that `count` never exceeds, had without counting: no token is shorter than a byte."""
        if text.isascii() and self._bounded:
            return len(text)
        if not self._bounded or not is_normalized("NFC", text):
            return self.count(text)
        return len(text.encode("utf-8", "surrogatepass"))

    def shortened(self, text: str, limit: int, *, both_ends: bool = True) -> str:
        """`text` in at most `limit` tokens: its beginning and, with `both_ends`, its end, `...` between them."""
        return shortened(text, limit, self.count, self._encoding, both_ends=both_ends)

    @cached_property
    def _encoding(self) -> Any:
        return self._load() if self._load is not None else None

    def _counted(self, text: str) -> int:
        sample = text[:_COUNTED_UP_TO]
        counted = len(encoded(self._encoding, sample)) if self._encoding else self._count(sample)
        return counted if len(sample) == len(text) else counted * len(text) // len(sample) + 1


def encoded(encoding: Any, text: str) -> list[int]:
    """The tokens of a text in its composed form (NFC), as the vocabulary expects it."""
    return encoding.encode(normalize("NFC", text), allowed_special="all")


@cache
def counter_for(model: str) -> Counter:
    """The counter for a model of this name; its vocabulary is read when something has to be counted.

    Qwen's counts are exact where the vocabulary that ships with the package of its service is at hand, those of GPT-4
    and GPT-3.5 where a package brings `cl100k`. For any other model the nearest vocabulary gives an estimate.
    """
    own = bool(_SPEAKS_CL100K.search(model))
    if (own or _OPENAIS.search(model)) and _file("litellm", _CL100K_PLACES) is not None:
        return Counter("cl100k", exact=own, load=cl100k)
    if _file("dashscope", _QWEN_PLACES) is not None:
        return Counter("qwen", exact=bool(_SPEAKS_QWEN.search(model)), load=vocabulary_at_hand)
    return Counter("estimate", exact=False)


def count_tokens(text: str) -> int:
    """How many tokens `text` takes for Qwen, at least roughly."""
    return counter_for("qwen").count(text)


def estimate_tokens(text: str) -> int:
    """An estimate, mostly a little high: words by their length, each ideograph, digit and mark by itself."""
    return sum(_cost(piece) for piece in _WORD.findall(text))


def _cost(piece: str) -> int:
    first = piece[0]
    if first >= "\U00010000":
        return 3
    if first >= "\u0370":
        return len(piece)
    return 1 + (len(piece) - 1) // 6


@lru_cache(maxsize=1)
def vocabulary_at_hand() -> Any:
    """The vocabulary that ships with the package of Qwen's service; that package itself is never imported."""
    ranks = _ranks(_file("dashscope", _QWEN_PLACES))
    special = {token: len(ranks) + n for n, token in enumerate(_QWEN_SPECIAL)}
    return _encoding("Qwen", _QWEN_SPLIT, ranks, special)


@lru_cache(maxsize=1)
def cl100k() -> Any:
    """The vocabulary of GPT-4 where an installed package brings it; nothing is fetched."""
    return _encoding("cl100k_base", _CL100K_SPLIT, _ranks(_file("litellm", _CL100K_PLACES)), _CL100K_SPECIAL)


def _encoding(name: str, split: str, ranks: dict[bytes, int], special: dict[str, int]) -> Any:
    if not ranks:
        return None
    import tiktoken

    return tiktoken.Encoding(name, pat_str=split, mergeable_ranks=ranks, special_tokens=special)


def _file(package: str, places: tuple[str, ...]) -> Path | None:
    """The vocabulary's file in an installed package, where there is something to read it with."""
    spec = find_spec(package) if find_spec("tiktoken") else None
    folders = spec.submodule_search_locations if spec else None
    files = [Path(folder) / place for folder in folders or () for place in places]
    return next((file for file in files if file.is_file()), None)


def _ranks(file: Path | None) -> dict[bytes, int]:
    if file is None:
        return {}
    lines = (line.split() for line in file.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}
