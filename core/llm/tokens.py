"""How many tokens a text takes: counted with the Qwen vocabulary where it is at hand, else estimated."""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

_SPLIT: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPECIAL: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_COUNTED_UP_TO: Final = 20_000  # characters; beyond, an estimate from the first ones is near enough and never slow
_REMEMBERED_UP_TO: Final = 8_000
_WORD: Final = re.compile(r"[A-Za-zÀ-ÿ]+|[0-9]|[\u0370-\u2e7f]+|[\u2e80-\uffff\U00010000-\U0010ffff]|[^\w\s]+|\n+")


def count_tokens(text: str) -> int:
    """How many tokens `text` takes, at least roughly. Special tokens that were typed count as one each."""
    return _remembered(text) if len(text) <= _REMEMBERED_UP_TO else _count(text)


@lru_cache(maxsize=1024)
def _remembered(text: str) -> int:
    """Each turn counts the whole conversation again; its messages are the same."""
    return _count(text)


def _count(text: str) -> int:
    vocabulary = vocabulary_at_hand()
    sample = text[:_COUNTED_UP_TO]
    counted = len(vocabulary.encode(sample, allowed_special="all")) if vocabulary else estimate_tokens(sample)
    return counted if len(sample) == len(text) else counted * len(text) // len(sample) + 1


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
    spec = find_spec("dashscope")
    folders = spec.submodule_search_locations if spec else None
    files = [Path(folder) / "resources" / "qwen.tiktoken" for folder in folders or ()]
    file = next((file for file in files if file.is_file()), None)
    if file is None or find_spec("tiktoken") is None:
        return None
    import tiktoken

    lines = (line.split() for line in file.read_bytes().splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    special = {token: len(ranks) + n for n, token in enumerate(_SPECIAL)}
    return tiktoken.Encoding("Qwen", pat_str=_SPLIT, mergeable_ranks=ranks, special_tokens=special)
