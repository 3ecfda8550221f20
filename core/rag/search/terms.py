"""Index terms: stemmed English words, and Chinese characters one by one and in pairs.

Chinese writing has no spaces; pairs of neighbours find as well as a dictionary does, and need none.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(f"[{_UNSPACED}]+|[^\\W_{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
# What is looked behind from stands first: it is rare, and found fast.
_POSSESSIVE = re.compile(r"['’](?<=\w.)s\b")
_THOUSANDS = re.compile(r",(?<=\d,)(?=\d{3}\b)")
_LONGEST = 64  # letters; longer ones are no words, but would fill the index

STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are aren as at be because been before being below between
    both but by can cannot could couldn did didn do does doesn doing don down during each few for from further had
    hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself
    just me more most my myself no nor not now of off on once only or other our ours ourselves out over own s same
    she should shouldn so some such t than that the their theirs them themselves then there these they this those
    through to too under until up very was wasn we were weren what when where which while who whom why will with won
    would wouldn you your yours yourself yourselves
    """.split()  # noqa: SIM905 - a list of 150 strings is no easier to read
)
# Characters that mean nothing on their own, and those that stand in every text: alone they only cost time.
EMPTY_CHARACTERS = frozenset(
    "的了是在和与與及也都就而且并並把被对對于於从從到为為以其之这這那有个個们們哪什么麼谁誰何几幾吗嗎呢吧多少"
)
_COMMON_CHARACTERS = EMPTY_CHARACTERS | frozenset("不上中下人一大年国國出来來时時后後用地会會可他她它你我")


def terms(text: str) -> list[str]:
    """The terms of a text in order, with repeats; stop words are left out."""
    found: list[str] = []
    for run in _runs(text):
        if _IS_UNSPACED.match(run):
            found += _of_characters(run, pairwise(run))
        elif run not in STOP_WORDS:
            found.append(_of_word(run))
    return found


def distinct_terms(text: str) -> set[str]:
    """The terms of a text, each once: what is repeated is looked at once, so that this is faster."""
    found: set[str] = set()
    for run in set(_runs(text)):
        if _IS_UNSPACED.match(run):
            found.update(_of_characters(set(run), set(pairwise(run))))
        elif run not in STOP_WORDS:
            found.add(_of_word(run))
    return found


def begun_word(text: str) -> str:
    """The letters that a text ends with, as terms are written, but no stem; empty after a Chinese character."""
    run = (_runs(text) or [""])[-1]
    if _IS_UNSPACED.match(run):
        return ""
    return _without_accents(run)[:_LONGEST]


def _runs(text: str) -> list[str]:
    """The words, and what is written without spaces between words."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _RUN.findall(_THOUSANDS.sub("", _POSSESSIVE.sub("", folded)))


def _of_characters(letters: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [letter for letter in letters if letter not in _COMMON_CHARACTERS] + [
        first + second for first, second in pairs if first not in EMPTY_CHARACTERS or second not in EMPTY_CHARACTERS
    ]


def _of_word(word: str) -> str:
    return _stem(word) if word.isalpha() else word[:_LONGEST]


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    """A word's stem, without accents."""
    stem: str = _stemmer().stemWord(_without_accents(word)[:_LONGEST])
    return stem


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    return "".join(letter for letter in unicodedata.normalize("NFKD", word) if not unicodedata.combining(letter))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    library: Any = import_module("snowballstemmer")
    return library.stemmer("english")
