"""Questions for several rows with the highest or lowest values, put as the question for one, and how many they are."""

from __future__ import annotations

import re
from typing import Final

from core.rag.numerals import number_of_han

_WORDS: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_GERMAN: Final = ("zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn")
_N: Final = rf"(?P<n>[2-9]|10|{'|'.join((*_WORDS, *_GERMAN))})"
_BEST: Final = r"(?:largest|biggest|greatest|highest|smallest|lowest|(?:größt|höchst|kleinst|niedrigst|geringst)en)"
_ENGLISH: Final = (
    (re.compile(rf"\btop {_N}\b", re.IGNORECASE), "highest"),
    (re.compile(rf"\b{_N} (?P<best>{_BEST})\b", re.IGNORECASE), r"\g<best>"),
    (re.compile(rf"\b(?P<best>{_BEST}) {_N}\b", re.IGNORECASE), r"\g<best>"),
    (re.compile(rf"\bwhich {_N}\b", re.IGNORECASE), "which"),
    (re.compile(rf"\bwelche {_N}\b", re.IGNORECASE), "welche"),
    (re.compile(rf"\bdie {_N} (?=[^?]* mit (?:dem|der|den) {_BEST}\b)", re.IGNORECASE), "die "),
    (re.compile(rf"\bthe {_N} (?=[^?]* with the {_BEST}\b)", re.IGNORECASE), "the "),
)
_ASKS_WHICH: Final = frozenset({"which", "welche"})
_BEGINS: Final = re.compile(r"^\W*(?:(?:what|which|who)(?: are|'re|’re|'s|’s| is)|list|name)\b", re.IGNORECASE)
_HAN: Final = r"(?P<n>[2-9]|10|[两二三四五六七八九十])"
_UNIT: Final = r"[个名位笔条张份项家件]"
_CHINESE: Final = (
    (re.compile(rf"(?P<best>最[高大低小多少])的?前?{_HAN}{_UNIT}"), r"\g<best>的"),
    (re.compile(rf"(?:排名)?前{_HAN}{_UNIT}?的?"), "最高的"),
)
_WHICH: Final = re.compile(rf"哪{_HAN}{_UNIT}")
_ENDS: Final = re.compile(rf"(?:分别)?[是有]?(?:哪些|哪几{_UNIT}|什么)?[？?。\s]*$")


def for_one(question: str) -> tuple[str, int]:
    """The question as it would be asked for one row, and how many it asks for: 1 where it names no number, to 10.

    "The three largest orders by amount" becomes the largest of them, 3.
    """
    for pattern, one in _ENGLISH:
        if found := pattern.search(question):
            said = pattern.sub(one, question, count=1)
            begins = one in _ASKS_WHICH or _BEGINS.match(said) is None
            said = said if begins else _BEGINS.sub("what is", said)
            names_it = one in _ASKS_WHICH or re.match(
                r"\W*(?:please |show|give|find|tell|the|what)\b", said, re.IGNORECASE
            )
            return said if names_it else f"the {said}", _number(found["n"])
    if found := _WHICH.search(question):
        return _WHICH.sub("哪个", question, count=1), _number(found["n"])
    for pattern, one in _CHINESE:
        if found := pattern.search(question):
            return f"{_ENDS.sub('', pattern.sub(one, question, count=1))}是哪一个", _number(found["n"])
    return question, 1


def _number(said: str) -> int:
    if said.isdecimal():
        return int(said)
    word = said.casefold()
    if word in _GERMAN:
        return _GERMAN.index(word) + 2
    return _WORDS.index(word) + 2 if word in _WORDS else int(number_of_han(said) or 2)
