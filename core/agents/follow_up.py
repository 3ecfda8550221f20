"""Questions that only make sense after the one before, such as "and the second one?" or "那第二条呢？".

Whether a question is one is decided by its words: it is short, has hardly any of its own, and points back or leaves
something out. Then it is searched for together with what it goes on from.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from core.messages.message import USER
from core.rag.search.terms import terms
from core.rag.sentences import ideographs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.messages.message import Message

_MOST_WORDS = 12
_MOST_IDEOGRAPHS = 24
_MOST_OWN = 2  # words that say what is meant: with more of them a question stands on its own
_MOST_OWN_IDEOGRAPHS = 6
_MOST_BACK = 3  # questions that are gone back to
_LONGEST = 300  # letters of an earlier question
_POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|that|this|these|those|ones?|he|him|his|she|hers?|there|former|latter|same"
    r"|others?|another|such|instead|either|neither|both)\b"
    r"|^\W*(?:and|but|so|or|then|else|also|what about|how about|what if|what else|how so|how come|why|more|again)\b"
    r"|[它他她其该此]|这|那|上述|前者|后者|另外|其他|其余"
    r"|^\W*(?:还有|以及|为什么|怎么|具体|继续|如果|要是|再)"
    r"|呢\W*$",
    re.IGNORECASE,
)
# What says how one asks, or which of several is meant, and not what about.
_GENERAL = (
    "first second third fourth fifth last next previous one two three four five number part point item section "
    "page clause paragraph row column line sentence example detail thing way case kind type reason rest else "
    "explain tell say mean describe show give list name elaborate continue know think please much many long often "
    "far big exactly really ok okay yes also too still again instead only another like happen apply go say true "
    "above below former latter other others same different mean means let us get got have make"
)
_GENERAL_ZH = re.compile(
    r"第?[一二三四五六七八九十两\d]+[条个项点部分章节页段句种次行位]?|最后|下一|上一|前一|后一|那么|那|这|它们?|他们?|她们?|其中?|该|此"
    r"|什么|为什么|怎么样?|怎样|如何|多少钱?|多久|多长|哪里?|哪些|几|是不是|有没有|能不能|可以|还有|以及|另外|其他|其余|上述|前者|后者"
    r"|[以之][前后内]|具体|详细|说明|解释|介绍|继续|举例|例子|意思|时候|情况|原因|方面|内容|如果|要是|的话|请问?|告诉|我们?|你们?|您|再|也|都|又|还|就"
    r"|[的了是在和与有呢吗吧啊么个些说讲问要会对不]"
)


def asked_together(messages: Sequence[Message]) -> list[str]:
    """The last question, after the earlier ones that it goes on from; itself alone where it needs none.

    Args:
        messages: The conversation, the question last.
    """
    questions = [text for message in messages if message.role == USER and (text := message.get_text_content().strip())]
    if not questions:
        return []
    at = len(questions) - 1
    together = [questions[at]]
    while at > 0 and len(together) <= _MOST_BACK and needs_more(questions[at]):
        at -= 1
        together.insert(0, questions[at][:_LONGEST])
    return together


def needs_more(question: str) -> bool:
    """Whether a question says too little on its own to be searched for."""
    if len(question) > _LONGEST:
        return False
    wide = ideographs(question)
    if wide * 3 > sum(map(str.isalnum, question)):
        own = sum(map(str.isalnum, _GENERAL_ZH.sub("", question)))
        fits, most = wide <= _MOST_IDEOGRAPHS, _MOST_OWN_IDEOGRAPHS
    else:
        own = len(own_words(question))
        fits, most = len(question.split()) <= _MOST_WORDS, _MOST_OWN
    return fits and (own == 0 or (own <= most and bool(_POINTS_BACK.search(question))))


def own_words(question: str) -> set[str]:
    """What a question in English names, beyond how it asks."""
    return {term for term in terms(question) if not term.isdigit()} - _general()


@cache
def _general() -> frozenset[str]:
    return frozenset(terms(_GENERAL))


def names_something(question: str) -> bool:
    """Whether a follow-up has words of its own that can be searched for."""
    return bool(own_words(_GENERAL_ZH.sub(" ", question)))
