"""Which passages bear a sentence out, by the words that they share.

It is made to keep silent rather than to be wrong: a mark that does not hold is worse than none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.rag.search.terms import EMPTY_CHARACTERS, terms
from core.rag.sentences import ideographs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.document import Passage

_SHARE = 0.6  # of a sentence's words must stand in the passage
_SHARE_CHINESE = 0.5  # pairs of characters also span two words, so fewer of them come back
_NEARLY_ALL = 0.75  # of them, or a figure among them, and one word fewer is enough
_FEWEST = 3
_FEWEST_CHINESE = 4
_SECOND_ADDS = 0.2  # of the words, before a second passage is named too
_DENIAL = re.compile(
    r"\b(?:not|no|n't|cannot|can't|doesn't|don't|didn't|isn't)\b.{0,40}"
    r"\b(?:mention|contain|say|state|provide|specif|include|find|found|information|know|sure|answer)"
    r"|没有(?:提|说|给|包含|找到|相关)|未(?:提|说明|找到|包含)|无法|不(?:知道|清楚|确定)|沒有(?:提|說|給|包含|找到|相關)|無法",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"\s*(?:[-*+>]\s+|\d{1,3}[.)、]\s*)+")


class Support:
    """Compares sentences with passages, numbered from 1.

    Args:
        passages: As they were put before the model.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._words = [_words(f"{passage.heading}\n{passage.text}") for passage in passages]

    def numbers(self, sentence: str) -> list[int]:
        """The passages that bear the sentence out, the best first, two at most; none if in doubt."""
        if not self._words or _DENIAL.search(sentence) or sentence.rstrip().endswith((":", "：", "?", "？")):
            return []
        said = _words(_ORDINAL.sub("", sentence, count=1))
        is_chinese = ideographs(sentence) * 2 > len(sentence)
        share, fewest = (_SHARE_CHINESE, _FEWEST_CHINESE) if is_chinese else (_SHARE, _FEWEST)
        figures = {word for word in said if any(letter.isdigit() for letter in word)}
        shared = [said & words for words in self._words]
        order = sorted(range(len(shared)), key=lambda at: (-len(shared[at]), at))
        best = shared[order[0]]
        # A wrong figure is what models invent most: one that the passage does not have speaks against it.
        needed = fewest - 1 if figures or len(best) >= _NEARLY_ALL * len(said) else fewest
        if len(best) < needed or len(best) < share * len(said) or not figures <= best | self._all(shared, order[1:2]):
            return []
        numbers = [order[0] + 1]
        for at in order[1:2]:
            added = shared[at] - best
            if len(added) >= 2 and len(added) >= _SECOND_ADDS * len(said):
                numbers.append(at + 1)
        named = self._all(shared, [number - 1 for number in numbers])
        return numbers if figures <= named else []

    @staticmethod
    def _all(shared: Sequence[set[str]], which: Sequence[int]) -> set[str]:
        return set[str]().union(*(shared[at] for at in which))


def _words(text: str) -> set[str]:
    """What carries meaning: stems, figures, and pairs of Chinese characters without the empty ones."""
    return {
        term for term in terms(text) if (len(term) > 1 or term.isdigit()) and not EMPTY_CHARACTERS.intersection(term)
    }
