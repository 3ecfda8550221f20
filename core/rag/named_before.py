"""Which files a question is about that names none, but only goes on from one that does: "and about water?".

It is about the same ones, unless a word of it may mean others: then all are asked.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from core.rag.beyond_named import FILES, tells_of_others
from core.rag.named_files import files_named

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_FEWEST: Final = 2  # letters of a word of a name
_LONGEST: Final = 2_000  # letters of a question that only goes on; it has few
_OTHERS = re.compile(
    rf"\b(?:others?|another|all|both|each|every|else|which of|in which|{FILES})\b"
    r"|\b(?:alle[nrs]?|beide[nrs]?|jede[nrs]?|tous|toutes|deux|autres?|otr[oa]s?|tod[oa]s|ambos)\b"
    r"|都|全|每|各|两|哪|份|文件|文档|附件|资料"
)
_THIS = re.compile(rf"\b(?:this|that|the same) {FILES}\b")
_CJK: Final = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_HAN = re.compile(f"[{_CJK}]")
_WORDS = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")


def files_meant(questions: Sequence[str], names: Collection[str]) -> frozenset[str]:
    """The files that a question names, or else the ones before that it goes on from; none where it may be about any.

    Args:
        questions: The question, and before it those that it goes on from, the last one first.
        names: What the files are called, with their endings.
    """
    for at, question in enumerate(questions):
        if named := files_named(question, names):
            return frozenset() if any(_may_mean_others(one, named, names) for one in questions[:at]) else named
    return frozenset()


def _may_mean_others(question: str, named: Collection[str], names: Collection[str]) -> bool:
    """Whether a question that names no file may be about others than those that were named before it."""
    text = " ".join(unicodedata.normalize("NFKC", question[:_LONGEST]).casefold().split())
    if _OTHERS.search(_THIS.sub(" ", text)) or tells_of_others(text):
        return True
    said = set(_WORDS.findall(text))
    known = {word for name in named for word in _words_of(name)}
    return any(_is_said(word, said, text) for name in names for word in _words_of(name) if word not in known)


def _words_of(name: str) -> list[str]:
    """The words of a file's name, without its ending."""
    stem = PurePath(unicodedata.normalize("NFKC", name).casefold()).stem
    return [one for one in _WORDS.findall(stem) if len(one) >= _FEWEST]


def _is_said(word: str, said: Collection[str], text: str) -> bool:
    """Whether a question has a word of a name, also in the plural; of Chinese ones two letters in a row are one."""
    if _HAN.match(word):
        return any(word[at : at + 2] in text for at in range(len(word) - 1))
    return not {word, f"{word}s", word.removesuffix("s")}.isdisjoint(said)
