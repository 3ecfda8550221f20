"""What a question needs of documents: a passage, a part of them, the whole, or only which files there are.

Rules decide, from the words of the question, before anything is searched, and the model decides the rest: it has the
tool that reads all on offer, and where a question that counts or lists was answered from passages, it is told that they
are not all. A guess that goes too far costs time; one that does not go far enough finds passages, as any question does.
Why no vectors decide: docs/decisions.md.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

from core.rag.scope_part import APART, Part, heading_in, part_in

Need: TypeAlias = Literal["passage", "part", "whole", "files"]

_SEEN: Final = 400
"""Letters at either end of a question that are looked at: what is pasted between them says nothing of what is asked."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a question needs.

    Args:
        part: Where it needs a part.
        plain: Whether it asks for a summary and nothing else, so that one that was made before answers it as well.
        lists: Whether it asks for each of something, or how many there are.
    """

    need: Need = "passage"
    part: Part | None = None
    plain: bool = False
    lists: bool = False


def scope_of(question: str) -> Scope:
    """What the question needs, by its words."""
    return understood(_looked_at(question))


@lru_cache(256)
def understood(text: str) -> Scope:
    """What a question needs; kept for a while, for one reply asks several times.

    Args:
        text: All of a short question, with single spaces, or both ends of a long one.
    """
    plain = _says("plain", text)
    if _says("topic", text):
        return Scope("whole", None, plain)
    if _says("files", text):
        return Scope("files")
    lists = not plain and _says("listing", text) and not _says("retells", text)
    whole = _is_whole(text)
    part = part_in(text) or (heading_in(text) if whole or _says("all_of_it", text) else None)
    if part and part != APART:
        return Scope("part", part, plain, lists)
    if part or whole:
        return Scope("whole", None, plain, lists)
    return Scope(lists=lists and not _says("figure", text))


def exceeds_passages(question: str) -> bool:
    """Whether passages may be too little for it: it counts or lists something, or is about the whole."""
    scope = scope_of(question)
    return scope.lists or scope.need == "whole"


def is_of_topic(question: str) -> bool:
    """Whether it asks what the documents are about altogether: how they begin says that, too."""
    return _says("topic", _looked_at(question))


def _looked_at(question: str) -> str:
    return " ".join((question if len(question) <= 2 * _SEEN else f"{question[:_SEEN]} {question[-_SEEN:]}").split())


# ---- the whole of the documents


def _is_whole(text: str) -> bool:
    narrow = _says("narrow", text) or _says("narrow_zh", text)
    if _says("strong", text) or _says("strong_zh", text):
        return not narrow
    if not narrow and _is_about_nothing_else(text):
        return True
    if narrow or _says("yes_or_no", text) or _says("yes_or_no_zh", text):
        return False
    return _says("weak", text) or _says("weak_zh", text)


_WORD = re.compile(r"[a-z][a-z'’]*|\d+", re.IGNORECASE)


def _is_about_nothing_else(text: str) -> bool:
    """Whether all words are general ones: then the documents themselves are asked about."""
    if _says("follows_up", text) or not _says("matters", text):
        return False
    left = _rule("general_zh").sub("", text)
    if any(sign >= "\u3400" and sign.isalpha() for sign in left):
        return False
    words = [word.casefold() for word in _WORD.findall(left)]
    return (bool(words) or left != text) and _general().issuperset(words)


# ---- the rules as they are written


_PARTS: Final = (
    *("norms", "owned", "held", "measures", "units", "places", "bound", "bound_zh", "plural"),
    *("row", "rows", "kind", "kinds", "rows_zh", "kinds_zh"),
    *("things", "asking", "sachen", "choses", "cosas"),
)
"""What stands in rules as `<name>`; one may stand in those before it."""


def make_ready() -> None:
    """Compile all rules, for which the first question would wait otherwise: a tenth of a second, or several."""
    for name in _lines().keys() - {"general", *_PARTS}:
        _rule(name)


def _says(name: str, text: str) -> bool:
    return _rule(name).search(text) is not None


@cache
def _rule(name: str) -> re.Pattern[str]:
    lines = "|".join(_lines()[name].split("\n"))
    for word in _PARTS:
        lines = lines.replace(f"<{word}>", f"(?:{'|'.join(_lines()[word].split(chr(10)))})")
    return re.compile(lines, re.IGNORECASE)


@cache
def _general() -> frozenset[str]:
    return frozenset(_lines()["general"].split())


@cache
def _lines() -> dict[str, str]:
    with Path(__file__).with_name("scope_rules.toml").open("rb") as file:
        lines = {name: lines.strip("\n") for name, lines in tomllib.load(file).items()}
    for one, several in (("row", "rows"), ("kind", "kinds")):
        words = lines[one].split()
        lines[one], lines[several] = "\n".join(words), "\n".join(map(_plural, words))
    return lines


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"
