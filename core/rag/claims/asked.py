"""What a sentence has from its question alone: words that no passage has prove nothing, however well they fit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.rag.attribution import words_of
from core.rag.claims.lists import listed
from core.rag.prose import ideographs
from core.rag.search.terms import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST = 600  # characters of a sentence that are looked at
_BETWEEN = 3  # words between a preposition and what it is of
_YES_OR_NO: Final = re.compile(
    r"\W*(?:(?:and|so|but|then|please|tell me),?\s+)*(?:(?:do|does|did|is|are|was|were|am|can|could|may|might|must"
    r"|shall|should|will|would|has|have|had)(?:n['’]t)?\b|whether\b|is it true\b)(?!.*\bor\b)"
    r"|.*(?:[吗嗎么麼][?？]?\W*\Z|是否|能否|可否|有没有|是不是|能不能|会不会|可不可以|要不要)",
    re.IGNORECASE | re.DOTALL,
)
# Who asks politely to be told something puts nothing forward by that.
_POLITE: Final = re.compile(
    r"\W*(?:(?:can|could|would|will) you (?:(?:please|kindly)(?: \w+)?|tell|show|explain|describe|list|give|name|say"
    r"|summari[sz]e|compare|remind|check)\b|do you (?:happen to )?know\b|(?:may|can|could) i (?:ask|know)\b)"
    r"(?: (?:me|us)\b)?"
    r"|(?:请问?[，,]?[你您]?(?:能不能|可不可以|能否|可否|可以|是否|能)?|[你您](?:能不能|可不可以|能否|可否|可以|是否|能)?"
    r"|(?:能不能|可不可以|能否|可否|可以|能)请?[你您]?)(?:[帮给为向]我们?)?"
    r"(?:告诉我?们?|说明|解释|介绍|列出|总结|概括|描述|知道|知不知道)(?:一下)?",
    re.IGNORECASE,
)
_WHETHER: Final = re.compile(r"\W*if\b", re.IGNORECASE)
_WHICH: Final = re.compile(r"什么|怎么|多么|为什么")
_PLACES: Final = listed(
    "at in by from of for with on through near under over into onto against during after before between as via"
)
# They say where in a document something stands: a passage need not name its own rows.
_PARTS: Final = frozenset(
    words_of("row column line cell table sheet page heading header title section paragraph document file")
    | {"一行", "一列", "一页", "表格", "表中", "表头", "标题", "行中", "列中", "页中", "文档", "文件"}
)
_WHICH_PART: Final = frozenset(words_of("first second third last top bottom") | {"第一", "第二", "第三"})
_TOKEN = re.compile(r"[^\W_]+(?:['-][^\W_]+)*|[,;:.!?()]")
_STOPS = frozenset(",;:.!?()")
_HAN_WORD = re.compile(r"[\u4e00-\u9fff]+")


def is_yes_or_no(question: str) -> bool:
    """Whether a question puts a sentence forward, to be confirmed or denied."""
    asked = question.strip()[:_MOST]
    if polite := _POLITE.match(asked):
        asked = asked[polite.end() :].rstrip("吗嗎么麼?？ ")
        return bool(_WHETHER.match(asked) or _YES_OR_NO.match(asked))
    if asked.rstrip("?？ ").endswith("么") and _WHICH.search(asked):
        return False
    return bool(_YES_OR_NO.match(asked))


def of_question_alone(sentence: str, said: set[str], asked: set[str], proved: set[str]) -> set[str]:
    """The words of a sentence that the question has and no passage.

    A pair of Chinese characters that spans two words which passages have is none, nor is a word that names a part of a
    document.

    Args:
        said: Its content words.
        asked: Those of the question.
        proved: Those of the passages, and of what tools said.
    """
    alone = (said & asked) - proved
    if parts := alone & _PARTS:
        alone -= parts | _WHICH_PART
    for run in _HAN_WORD.findall(sentence[:_MOST]) if alone else ():
        pairs = [run[at : at + 2] for at in range(len(run) - 1)]
        for before, pair, after in zip(pairs, pairs[1:], pairs[2:], strict=False):
            if pair in alone and before in proved and after in proved:
                alone.discard(pair)
    return alone


class Places:
    """What stands in passages after the same words: "park at the gate".

    Args:
        sentences: Those of the passages, each with the number of its passage.
    """

    def __init__(self, sentences: Iterable[tuple[str, int]]) -> None:
        self._after: dict[tuple[str, str], list[tuple[frozenset[str], str, int]]] = {}
        self._han: list[tuple[str, int]] = []
        for sentence, number in sentences:
            if ideographs(sentence):
                self._han.append((sentence, number))
            for key, _, words in _placed(sentence):
                self._after.setdefault(key, []).append((frozenset(words_of(words)), words, number))

    def instead(self, sentence: str, alone: set[str]) -> Iterator[tuple[str, str, int]]:
        """A word that only the question has, what passages have in its place, and the number of the passage."""
        said = words_of(sentence)
        for key, stem, words in _placed(sentence):
            if stem not in alone:
                continue
            others = self._after.get(key, [])
            if others and not any(one[0] & said for one in others):
                yield words.split()[0], others[0][1], others[0][2]
        for run in _HAN_WORD.findall(sentence[:_MOST]):
            yield from self._in_chinese(run, alone)

    def _in_chinese(self, run: str, alone: set[str]) -> Iterator[tuple[str, str, int]]:
        for at in range(1, len(run) - 3):
            before, word, after = run[at - 1], run[at : at + 2], run[at + 2 : at + 4]
            if word not in alone or run[at + 1 : at + 3] in alone:
                continue
            instead = re.compile(f"{before}([\u4e00-\u9fff]{{2}}){after}")
            for text, number in self._han:
                if (there := instead.search(text)) and not set(word) & set(there[1]):
                    yield word, there[1], number
                    break


def _placed(sentence: str) -> Iterator[tuple[tuple[str, str], str, str]]:
    """By the word before it and the preposition: the stem of the first word after it, and the words after it."""
    tokens = [one.casefold() for one in _TOKEN.findall(sentence[:_MOST])]
    for at, token in enumerate(tokens):
        if token not in _PLACES or at == 0:
            continue
        before = next((one for one in reversed(tokens[max(0, at - 2) : at]) if one not in STOP_WORDS), "")
        after: list[str] = []
        for one in tokens[at + 1 : at + 1 + 2 * _BETWEEN]:
            if one in _STOPS or (one in _PLACES and after):
                break
            if one not in STOP_WORDS:
                after.append(one)
        head, own = words_of(before), words_of(after[0]) if after else set[str]()
        if len(head) == 1 and len(own) == 1 and before not in _STOPS:
            yield (min(head), token), min(own), " ".join(after[:_BETWEEN])
