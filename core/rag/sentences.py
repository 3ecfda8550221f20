"""Where sentences end, in English, German and Chinese, and how many tokens a text has, by estimate."""

from __future__ import annotations

import re
from itertools import pairwise

# A run of stops is tried once, from its start: a file of a million dots must not cost a million times a million.
# Chinese ends need no space after them; others do, so that 3.14 and e.g. names of files stay whole.
_END = re.compile(
    r"[。！？；]+[”’」』）)\"']*"
    r"|(?<!\b[A-Z])(?<!\b(?:Dr|Mr|Ms|St|No|vs|al|cf))(?<!\b(?:Mrs|Fig|Eqs|etc|Inc|Ltd|e\.g|i\.e))"
    r"(?<![.!?])[.!?]++[\"')\]”’]*+(?=\s)"
    r"|\n+"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'“])(?:[A-Z]|Dr|Mr|Ms|Mrs|Prof|St|No|Nr|vs|al|cf|ca|Fig|Figs|Eq|Eqs|Sec|Ch|Vol|pp?|approx|e\.g|i\.e)\.$"
    r"|^\W*\d{1,3}(?:\.\d{1,3})*\.$"
)
_SECTION = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{1,3})+\.$")
_TAIL = 40  # letters in which it is looked for
_IDEOGRAPH = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_TOKENS_PER_IDEOGRAPH = 0.75
_TOKENS_PER_LETTER = 0.25


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of every sentence; together they cover the whole text, white space going with what precedes it."""
    cuts, passed = [0], 0  # white space is passed once, however many line ends are in it
    for end in _END.finditer(text):
        at = max(end.end(), passed)
        while at < len(text) and text[at].isspace():
            at += 1
        passed = at
        so_far = text[max(cuts[-1], end.end() - _TAIL) : end.end()]
        if at > cuts[-1] and not goes_on_after(so_far, text[at : at + 1]):
            cuts.append(at)
    if cuts[-1] < len(text):
        cuts.append(len(text))
    return list(pairwise(cuts))


def goes_on_after(text: str, letter: str) -> bool:
    """Whether the full stop at the end belongs to the number of a section, such as "1.2.", and ends no sentence.

    Args:
        text: The sentence so far.
        letter: What follows after the space; "" if nothing does.
    """
    number = _SECTION.search(text)
    if number is None or not letter:
        return False
    is_first = not any(sign.isalnum() for sign in text[: number.start()])
    return is_first or letter.islower() or ideographs(letter) > 0


def ends_in_abbreviation(text: str) -> bool:
    """Whether the full stop at the end belongs to a short form such as "Dr." or to the number of a list's item."""
    return bool(_ABBREVIATION.search(text))


def ideographs(text: str) -> int:
    """How many characters are Chinese or Japanese."""
    return 0 if text.isascii() else len(_IDEOGRAPH.findall(text))


def count_tokens(text: str) -> float:
    """An estimate that needs no tokenizer: four Latin letters a token, four Chinese characters three."""
    wide = ideographs(text)
    return wide * _TOKENS_PER_IDEOGRAPH + (len(text) - wide) * _TOKENS_PER_LETTER
