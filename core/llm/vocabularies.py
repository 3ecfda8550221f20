"""Vocabularies of models, as installed packages bring them; nothing is ever fetched."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from unicodedata import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping

_ENDING: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACE: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_BEFORE: Final = r"[^\r\n\p{L}\p{N}]?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A vocabulary in the form of `tiktoken`.

    Args:
        name: What a counter calls it.
        package: Brings its file; it is never imported.
        places: Where in the package the file may be.
        split: How a text is parted before it is looked up.
        special: Tokens that stand for themselves; a number, or none for the next free one.
        composed: Whether texts are brought into their composed form (NFC) first.
    """

    name: str
    package: str
    places: tuple[str, ...]
    split: str
    special: Mapping[str, int | None]
    composed: bool = False

    def file(self) -> Path | None:
        """Its file, where the package is installed, and something to read it with."""
        spec = find_spec(self.package) if find_spec("tiktoken") else None
        folders = spec.submodule_search_locations if spec else None
        files = [Path(folder) / place for folder in folders or () for place in self.places]
        return next((file for file in files if file.is_file()), None)

    @cached_property
    def encoding(self) -> Any:
        """The vocabulary, read once; `None` where its file is not at hand."""
        file = self.file()
        if file is None:
            return None
        import tiktoken

        lines = (line.split() for line in file.read_bytes().splitlines() if line)
        ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
        free = iter(range(len(ranks), len(ranks) + len(self.special)))
        special = {token: next(free) if number is None else number for token, number in self.special.items()}
        return tiktoken.Encoding(self.name, pat_str=self.split, mergeable_ranks=ranks, special_tokens=special)

    @property
    def is_read(self) -> bool:
        """Whether it is in memory."""
        return "encoding" in self.__dict__

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text; special tokens that were typed are one each."""
        return self.encoding.encode(normalize("NFC", text) if self.composed else text, allowed_special="all")


def _brought_by_litellm(name: str) -> tuple[str, ...]:
    return f"litellm_core_utils/tokenizers/{name}", f"llms/tokenizers/{name}"


QWEN: Final = Vocabulary(
    "qwen",
    "dashscope",
    ("resources/qwen.tiktoken",),
    rf"{_ENDING}|{_BEFORE}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACE}",
    MappingProxyType(dict.fromkeys(("<|endoftext|>", "<|im_start|>", "<|im_end|>"))),
    composed=True,
)
# The names of the files are those under which tiktoken keeps them: made of the addresses that they came from.
CL100K: Final = Vocabulary(
    "cl100k",
    "litellm",
    _brought_by_litellm("9b5ad71b2ce5302211f9c61530b329a4922fc6a4"),
    rf"{_ENDING}|{_BEFORE}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACE}",
    MappingProxyType(
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        }
    ),
)
O200K: Final = Vocabulary(
    "o200k",
    "litellm",
    _brought_by_litellm("fb374d419588a4632f3f557e76b4b70aebbca790"),
    rf"{_BEFORE}{_UPPER}*{_LOWER}+{_ENDING}?|{_BEFORE}{_UPPER}+{_LOWER}*{_ENDING}?|\p{{N}}{{1,3}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACE}",
    MappingProxyType({"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
)
