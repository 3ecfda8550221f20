"""What a question needs of documents: a passage, a part of them, the whole, or only which files there are.

Rules and weights decide, from the words of the question, before anything is searched. What rules find is weighed with
the words (scope_weights.py), and where too few of these are known, as in other languages, rules alone decide. The model
decides the rest: it has the tool that reads all on offer, and where a question that counts or lists was answered from
passages, it is told that they are not all. A guess that goes too far costs time; one that does not go far enough finds
passages, as any question does. Why no vectors of a model decide: docs/decisions.md.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

from core.rag.prose import sentence_spans
from core.rag.scope_part import APART, Part, heading_in, other_part_in, part_in, simplified
from core.rag.scope_weights import Weights, loaded, weighed

Need: TypeAlias = Literal["passage", "part", "whole", "files"]

_SEEN: Final = 400
"""Letters at either end of a long question that are looked at, up to a blank line or a line's end: what is pasted there
says nothing of what is asked."""


_COURTESY: Final = re.compile(
    r"\W*(?:(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|day)|thanks|thank you|many thanks|cheers|best"
    r"|(?:best |kind )?regards|hallo|guten (?:tag|morgen|abend)|liebe[rs]?|danke|vielen dank|bonjour|merci|hola"
    r"|gracias)\b|(?:[你您]|大家)好|谢谢|多谢)[^.?!。？！]{0,40}\W*",
    re.IGNORECASE,
)
"""A greeting or thanks, which stand before or behind a question."""


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
    return understood(looked_at(question))


@lru_cache(256)
def understood(text: str) -> Scope:
    """What a question needs; kept for a while, for one reply asks several times.

    Args:
        text: All of a short question, with single spaces, or what asks at both ends of a long one.
    """
    return judged(text, loaded())


def judged(text: str, weights: Weights) -> Scope:
    """What a question needs, by the rules where they are sure, else by these weights.

    Args:
        text: As for `understood`.
        weights: What words and signs count.
    """
    ruled = by_rules(text)
    told = None if is_sure(text, ruled) else weighed(text, signs_in(text, ruled), weights)
    if told is None:
        return ruled
    asks_of_files = ruled.need != "whole" or not _says("retells", text)
    for need in sorted(told, key=lambda one: -told[one]):
        if need == "part":
            part = part_in(text) or heading_in(text) or other_part_in(text)
            if part == APART:
                return replace(ruled, need="whole", part=None)
            if part:
                return replace(ruled, need="part", part=part)
        elif need != "files" or asks_of_files:  # what is to be told in other words is no list of files
            return replace(ruled, need=cast("Need", need), part=None)
    return ruled


def is_sure(text: str, ruled: Scope) -> bool:
    """Whether the rules know it better than weights: the topic, a plain summary, or what goes on with an answer.

    Args:
        text: As for `understood`.
        ruled: What the rules alone say.
    """
    return _says("topic", text) or _says("follows_up", text) or (ruled.need == "whole" and ruled.plain)


def by_rules(text: str) -> Scope:
    """What a question needs by the rules alone.

    Args:
        text: As for `understood`.
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


def signs_in(text: str, ruled: Scope) -> list[str]:
    """The names of what is found in a question, for weights to weigh.

    Args:
        text: As for `understood`.
        ruled: What the rules alone say.
    """
    signs = [name for name in _signs() if _says(name, text)]
    signs += [f"{one}+{other}" for one, other in combinations((one for one in signs if one in _OF_FILES), 2)]
    signs.append(f"need={ruled.need}")
    if ruled.lists:
        signs.append("lists")
    if part := part_in(text):
        signs += ["part", f"unit={part.unit}"]
    if heading_in(text):
        signs.append("heading")
    if other_part_in(text):
        signs.append("other part")
    return signs


def exceeds_passages(question: str) -> bool:
    """Whether passages may be too little for it: it counts or lists something, or is about the whole."""
    scope = scope_of(question)
    return scope.lists or scope.need == "whole"


def is_of_topic(question: str) -> bool:
    """Whether it asks what the documents are about altogether: how they begin says that, too."""
    return _says("topic", looked_at(question))


def looked_at(question: str) -> str:
    """What of a question is read: all of a short one, what asks at both ends of a long one, with single spaces."""
    if len(question) <= 2 * _SEEN:
        return " ".join(question.split())
    ends = _parts(question.strip()[:_SEEN]), _parts(question.strip()[-_SEEN:])[::-1]
    asks = " ".join(_asking(parts[0]) for parts in ends)
    # Where neither asks, what stands behind a greeting or before thanks may: those of a letter that is pasted do not.
    return " ".join((asks if asks.strip() else " ".join(map(_asking, map(_beside_courtesy, ends)))).split())


def _parts(end: str) -> list[str]:
    """Its paragraphs, or its lines where there is no blank one."""
    return end.split("\n\n" if "\n\n" in end else "\n")


def _beside_courtesy(parts: list[str]) -> str:
    return next((one for one in parts if _COURTESY.fullmatch(one) is None), "")


def _asking(end: str) -> str:
    """The sentences of an end that ask, or all of it where its words are an instruction; "" where it is pasted text."""
    sentences = [end[start:stop].strip() for start, stop in sentence_spans(end)]
    asks = [one for one in sentences if one.endswith(("?", "？"))]
    return " ".join(asks) or (end if by_rules(" ".join(end.split())) != Scope() else "")


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


_OF_FILES: Final = frozenset(f"sign_{one}" for one in ("type", "file", "give", "you", "got", "meta"))
"""Signs of which two say more of files than each alone."""


def make_ready() -> None:
    """Compile all rules, for which the first question would wait otherwise: a tenth of a second, or several."""
    for name in _lines().keys() - {"general", *_PARTS}:
        _rule(name)
    loaded()


@lru_cache(256)
def _says(name: str, text: str) -> bool:
    return _rule(name).search(simplified(text)) is not None


@cache
def _rule(name: str) -> re.Pattern[str]:
    lines = "|".join(_lines()[name].split("\n"))
    for word in _PARTS:
        lines = lines.replace(f"<{word}>", f"(?:{'|'.join(_lines()[word].split(chr(10)))})")
    return re.compile(lines, re.IGNORECASE)


@cache
def _signs() -> tuple[str, ...]:
    """The rules that are a sign each, in their order."""
    return tuple(name for name in _lines() if name not in {"general", "general_zh", *_PARTS})


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
