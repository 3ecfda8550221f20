"""Token counts and cuts by them: with the model's own vocabulary if an installed package has it, else estimated."""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from unicodedata import is_normalized, normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_ENDING: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACE: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_BEFORE: Final = r"[^\r\n\p{L}\p{N}]?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A vocabulary in the form of `tiktoken`.

    Args:
        name: What a counter calls it.
        package: Contains its file; never imported.
        places: Where in the package the file may be.
        special: Special tokens with their numbers; `None` for the next free one.
        composed: Whether texts are normalized to NFC first.
    """

    name: str
    package: str
    places: tuple[str, ...]
    split: str
    special: Mapping[str, int | None]
    composed: bool = False

    def file(self) -> Path | None:
        """Its file, if the package and `tiktoken` are installed."""
        spec = find_spec(self.package) if find_spec("tiktoken") else None
        folders = spec.submodule_search_locations if spec else None
        files = [Path(folder) / place for folder in folders or () for place in self.places]
        return next((file for file in files if file.is_file()), None)

    @cached_property
    def encoding(self) -> Any:
        """The encoding, loaded once; `None` if there is no file."""
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
# The file names are those of tiktoken's cache: digests of their addresses.
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


# The vocabulary by the model's name; the first match counts.
_BY_NAME: Final = (
    (re.compile(r"qwen(?!-?3\.[5-9])|qwq|qvq", re.IGNORECASE), QWEN),
    (re.compile(r"(?:^|/)(?:gpt-4(?!o|\.)|gpt-3\.5|gpt-35|text-embedding)", re.IGNORECASE), CL100K),
    (re.compile(r"(?:^|/)(?:gpt|chatgpt|o[134]\b)", re.IGNORECASE), O200K),
)

_COUNTED_UP_TO: Final = 2_000_000  # characters; beyond, an estimate from the first ones is near enough and never slow
_REMEMBERED: Final = 8_192
_WORD: Final = re.compile(r"[A-Za-zÀ-ÿ]+|[0-9]|[\u0370-\u2e7f]+|[\u2e80-\uffff\U00010000-\U0010ffff]|[^\w\s]+|\n+")


class Counter:
    """Counts tokens and cuts texts by them; counts are cached by the hash of the text.

    Args:
        vocabulary: Loaded at the first count; without one, counts are estimates.
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
        """Whether the count of `text` is cached."""
        return (len(text), hash(text)) in self._known

    @property
    def is_ready(self) -> bool:
        """Whether counting can begin at once, without loading a vocabulary."""
        return self._vocabulary is None or self._vocabulary.is_read

    def at_most(self, text: str) -> int:
        """An upper bound of `count`, mostly without counting: no token is shorter than a byte."""
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
    own = next((vocabulary for pattern, vocabulary in _BY_NAME if pattern.search(model)), None)
    near = (CL100K, QWEN) if own is CL100K or own is O200K else (QWEN,)
    available = next((each for each in (own, *near) if each is not None and each.file() is not None), None)
    return Counter(available, exact=available is not None and available is own)


def count_tokens(text: str) -> int:
    """The tokens of `text` for Qwen, at least roughly."""
    return counter_for("qwen").count(text)


def estimate_tokens(text: str) -> int:
    """An estimate, mostly a little high: words by their length, each ideograph, digit and mark by itself."""
    return sum(_cost(found.group()) for found in _WORD.finditer(text))  # lets other threads run in between


def _cost(piece: str) -> int:
    first = piece[0]
    if first >= "\U00010000":
        return 3
    if first >= "\u0370":
        return len(piece)
    return 1 + (len(piece) - 1) // 6


def qwen_encoding() -> Any:
    """Qwen's encoding, loaded once; `None` if there is no file."""
    return QWEN.encoding


_MARK: Final = "..."
_ATTEMPTS: Final = 4
_FARTHEST: Final = 512
_FIRST_IDEOGRAPH: Final = "\u4e00"
_LAST_IDEOGRAPH: Final = "\u9fff"


def shortened(
    text: str, limit: int, count: Callable[[str], int], encoding: Any = None, *, both_ends: bool = True
) -> str:
    """`text` where it takes at most `limit` tokens, else its beginning and end with `...` between them.

    Args:
        text: Any text; a grapheme of several code points is never torn.
        limit: In tokens, as `count` counts them; zero and less leave nothing.
        count: How many tokens a text takes.
        encoding: If given, the cut falls between its tokens.
        both_ends: Otherwise the beginning alone is kept, without a mark.
    """
    if limit <= 0:
        return ""
    if count(text) <= limit:
        return text
    mark = _MARK if both_ends and limit > count(_MARK) else ""
    if encoding is not None and is_normalized("NFC", text) and _is_whole(text):
        tokens: list[int] = encoding.encode(text, allowed_special="all")
        for room in range(limit, max(0, limit - _ATTEMPTS), -1):  # the parts may count as more than the whole
            cut = _by_tokens(text, tokens, room, mark, encoding)
            if count(cut) <= limit:
                return cut
    return _by_search(text, limit, mark, count)


def _is_whole(text: str) -> bool:
    """Whether it has no lone surrogates, which an encoding would replace."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _by_tokens(text: str, tokens: list[int], limit: int, mark: str, encoding: Any) -> str:
    """The first and last tokens, the larger half at the end; torn characters are dropped."""
    room = max(0, limit - (len(encoding.encode(mark)) if mark else 0))
    first = room // 2 if mark else room
    last = room - first if mark else 0
    front = boundary(text, len(_text(encoding, tokens[:first])))
    back = boundary(text, len(text) - len(_text(encoding, tokens[len(tokens) - last :])), forward=True)
    return f"{text[:front]}{mark}{text[max(front, back) :]}" if mark else text[:front]


def _text(encoding: Any, tokens: list[int]) -> str:
    return encoding.decode_bytes(tokens).decode("utf-8", "ignore")


def _by_search(text: str, limit: int, mark: str, count: Callable[[str], int]) -> str:
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_cut_anywhere(text, middle, mark)) <= limit:
            low = middle
        else:
            high = middle - 1
    while low and count(_cut_at_boundary(text, low, mark)) > limit:  # whole characters take less, with rare exceptions
        low -= max(1, low // 8)
    return _cut_at_boundary(text, low, mark)


def _cut_anywhere(text: str, characters: int, mark: str) -> str:
    """Like `_cut_at_boundary`, with characters torn that are made of several."""
    return f"{text[: (characters + 1) // 2]}{mark}{text[len(text) - characters // 2 :]}" if mark else text[:characters]


def _cut_at_boundary(text: str, characters: int, mark: str) -> str:
    if not mark:
        return text[: boundary(text, characters)]
    front = boundary(text, (characters + 1) // 2)
    back = boundary(text, len(text) - characters // 2, forward=True)
    return f"{text[:front]}{mark}{text[max(front, back) :]}"


def boundary(text: str, at: int, *, forward: bool = False) -> int:
    """The nearest grapheme boundary at or before `at`, or after it with `forward`."""
    if at <= 0 or at >= len(text) or _is_boundary(text, at):
        return max(0, min(at, len(text)))
    import regex

    start = next((place for place in range(at - 1, max(0, at - _FARTHEST), -1) if _is_boundary(text, place)), 0)
    end = next(
        (place for place in range(at + 1, min(len(text), at + _FARTHEST)) if _is_boundary(text, place)), len(text)
    )
    pattern: Any = regex
    for found in pattern.finditer(r"\X", text[start:end]):
        if start + found.end() > at:
            inside = start + found.start() < at
            return start + (found.end() if inside and forward else found.start())
    return at


def _is_boundary(text: str, at: int) -> bool:
    """Whether two characters begin before and at this place for certain: plain letters or marks, or two ideographs."""
    before, after = text[at - 1], text[at]
    if after.isascii() and before.isascii():
        return (before, after) != ("\r", "\n")
    return _FIRST_IDEOGRAPH <= before <= _LAST_IDEOGRAPH and _FIRST_IDEOGRAPH <= after <= _LAST_IDEOGRAPH
